//! What is put aside before a restore, and how that ends.

use super::*;

#[test]
fn a_way_back_that_fails_loses_nothing() {
    let mut home = Home::between();
    home.write("half old");
    home.restart();
    // Version 1 was never ready, and the operator runs version 2 again.
    let chosen = choose(&home.device.versions, &home.config, 10, true);
    assert_runs(&chosen, &home.config, 2);
    home.cross(2).unwrap();
    assert_eq!(home.read(), "new");
    home.is_ready(2);
    assert_eq!((home.status().since.as_deref(), home.kept()), (Some("10.0.0"), 1));
    // And the way back is open as before.
    home.roll_back(true).unwrap();
    home.cross(1).unwrap();
    assert_eq!(home.read(), "old");
}

#[test]
fn a_second_way_back_keeps_what_the_first_has_put_aside() {
    let home = Home::new();
    home.serve(2);
    home.accept();
    home.update();
    home.device.versions.roll_back(&a(), Some(2), true, "").unwrap();
    home.cross(2).unwrap();
    home.write("half old");
    home.device.versions.roll_back(&a(), Some(1), true, "").unwrap();
    home.cross(1).unwrap();
    choose(&home.device.versions, &home.config, 10, true);
    home.cross(3).unwrap();
    assert_eq!(home.read(), "new");
}

#[test]
fn a_snapshot_that_is_lost_half_way_gives_way_to_what_was_put_aside() {
    let home = Home::new();
    home.update();
    home.roll_back(true).unwrap();
    let name = format!("weir-data-{}", home.status().snapshots[0].hash);
    // The restore fails, and the file goes.
    let path = home.data();
    home.device.versions.change(&a(), |record| {
        let snapshot = record.data.snapshots[0].clone();
        record.data.due = Some(Due { snapshot, is_undone: false });
    });
    let aside = home.device.versions.state.as_ref().unwrap();
    let written = aside.write_data(0, |to| to.write_all(b"new").map_err(|error| error.to_string())).unwrap();
    let snapshot = DataSnapshot {
        hash: written.hash.to_string(),
        bytes: 3,
        taken: SystemTime::now(),
        since: Some("10.0.0".to_owned()),
        before: 1,
    };
    aside.place_data(written, |_| unreachable!("there is room")).unwrap();
    home.device.versions.change(&a(), |record| record.data.aside = Some(Aside { snapshot, back: 1 }));
    fs::write(&path, "").unwrap();
    fs::remove_file(home.device.path(&name)).unwrap();
    assert!(home.cross(1).unwrap_err().is_held);
    assert_eq!(home.read(), "new");
    home.cross(2).unwrap();
}

#[test]
fn what_was_put_aside_ends_with_any_version_that_is_ready() {
    let home = Home::between();
    // Version 1 is never ready, and a repaired one is.
    let repaired = home.serve(3).number.unwrap();
    assert_eq!((home.status().put_aside, home.read().as_str()), (None, "old"));
    home.accept();
    home.write("months");
    let next = home.serve(11).number.unwrap();
    assert!(next > repaired);
    assert_eq!(home.read(), "months");
}

#[test]
fn a_restore_that_is_no_longer_possible_gives_way_to_what_was_put_aside() {
    let home = Home::new();
    home.update();
    home.roll_back(true).unwrap();
    let snapshot = home.status().snapshots[0].clone();
    home.cross(1).unwrap();
    // As if the power was cut, and the snapshot can no longer be put back.
    home.device.versions.change(&a(), |record| {
        let snapshot = DataSnapshot { hash: "it cannot be parsed".to_owned(), ..snapshot };
        record.data.due = Some(Due { snapshot, is_undone: false });
    });
    home.write("half");
    choose(&home.device.versions, &home.config, 10, true);
    home.cross(2).unwrap();
    assert_eq!(home.read(), "new");
}

#[test]
fn what_was_put_aside_is_given_up_once_a_main_without_the_records_has_run() {
    let mut home = Home::between();
    // Version 1 is never ready. Main runs without the state directory, and the extension writes for weeks.
    home.device.versions = Versions::open(None, 0);
    home.attach();
    home.write("weeks");
    home.restart();
    choose(&home.device.versions, &home.config, 10, true);
    home.cross(2).unwrap();
    assert_eq!((home.read().as_str(), home.status().put_aside), ("weeks", None));
}

#[test]
fn a_restore_that_was_cut_off_is_given_up_once_a_main_without_the_records_has_run() {
    for without in [false, true] {
        let mut home = Home::new();
        home.update();
        home.roll_back(true).unwrap();
        let snapshot = home.status().snapshots[0].clone();
        home.cross(1).unwrap();
        home.device.versions.change(&a(), |record| {
            record.data.due = Some(Due { snapshot, is_undone: false });
        });
        home.device.versions.save(&a()).unwrap();
        if without {
            home.device.versions = Versions::open(None, 0);
            home.attach();
        }
        home.write("weeks");
        home.restart();
        home.cross(1).unwrap();
        assert_eq!(home.read(), if without { "weeks" } else { "old" });
    }
}

#[test]
fn what_was_put_aside_does_not_return_where_its_end_was_not_written_down() {
    let mut home = Home::between();
    let record = home.device.path("weir-versions-a");
    let before = fs::read(&record).unwrap();
    home.is_ready(1);
    // As if that had failed, before months and a power cut.
    home.device.versions = Versions::default();
    fs::write(&record, before).unwrap();
    home.write("months");
    home.restart();
    choose(&home.device.versions, &home.config, 10, true);
    home.cross(2).unwrap();
    assert_eq!((home.read().as_str(), home.status().put_aside), ("months", None));
}

#[test]
fn what_was_put_aside_is_given_up_once_a_main_with_other_records_has_run() {
    let mut home = Home::between();
    let other = tempfile::tempdir().unwrap();
    home.device.versions = Versions::open(Some(other.path().join("state")), 1 << 20);
    home.attach();
    home.write("weeks");
    home.restart();
    choose(&home.device.versions, &home.config, 10, true);
    home.cross(2).unwrap();
    assert_eq!((home.read().as_str(), home.status().put_aside), ("weeks", None));
}

#[test]
fn a_main_that_finds_the_directory_in_use_leaves_what_was_put_aside() {
    let home = Home::between();
    let second = Versions::open(Some(home.device.path("")), 1 << 20);
    second.set_own_data(Box::new(FileData(home.data())));
    // It lets nothing run over data that is between two versions.
    let chosen = choose(&second, &home.config, 10, false);
    assert_eq!(second.crossing(&home.config, chosen.number, chosen.hash), Crossing::Noted);
    let other = second.cross(&home.config, chosen.number, hash(10), &looked_at(10)).unwrap_err();
    assert!(!other.is_held && other.reason.contains("another Main"), "{other}");
    choose(&home.device.versions, &home.config, 10, true);
    home.cross(2).unwrap();
    assert_eq!(home.read(), "new");
}
