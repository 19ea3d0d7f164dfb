//! What runs without a number, or without a record that can be read: what it may have written is not forgotten.

use super::*;

#[test]
fn what_runs_without_a_number_makes_older_data_stale() {
    let mut home = Home::new();
    home.update();
    assert_eq!(home.unknown(10), Crossing::Alone);
    home.cross_unknown(10).unwrap();
    assert_eq!(home.unknown(10), Crossing::Nothing);
    assert_eq!((home.status().snapshots.len(), home.kept()), (0, 0));
    home.restart();
    assert!(matches!(home.roll_back(true), Err(VersionError::NoSnapshot(_))));
    // Nothing is kept any more, but what it writes is still to be noted.
    assert_eq!(home.unknown(10), Crossing::Noted);
}

#[test]
fn what_ran_without_a_number_may_have_written_what_it_says() {
    for keeps in [false, true] {
        let mut home = Home::new();
        if keeps {
            home.update();
        }
        home.cross_unknown(20).unwrap();
        home.write("newest");
        home.restart();
        assert_eq!(home.status().since.as_deref(), Some("20.0.0"));
        // It has a number again, and is refused.
        let number = choose(&home.device.versions, &home.config, 20, false).number.unwrap();
        assert_eq!(home.device.versions.crossing(&home.config, Some(number), None), Crossing::Nothing);
        home.device.versions.refuse(&a(), number, &UpdateConfig::default(), "it trapped").unwrap();
        let held = home.cross(1).unwrap_err();
        assert!(held.is_held && held.reason.contains("no snapshot is kept"), "{held}");
        assert_eq!(home.read(), "newest");
    }
}

#[test]
fn what_was_put_aside_is_not_lost_to_what_runs_without_a_number() {
    for (component, data) in [(10, "new"), (1, "half old")] {
        let home = Home::between();
        home.write("half old");
        let crossed = home.cross_unknown(component);
        assert_eq!(crossed.is_ok(), component == 10, "{crossed:?}");
        assert_eq!(home.read(), data);
        if let Err(held) = crossed {
            assert!(held.is_held && held.reason.contains("put aside"), "{held}");
            assert_eq!(home.status().put_aside.unwrap().bytes, 3);
        }
    }
}

#[test]
fn a_component_without_a_number_whose_manifest_cannot_be_read_does_not_run_with_known_data() {
    let home = Home::new();
    let odd: Look<'_> = &|_| Err("its manifest is odd".to_owned());
    let passes = home.device.versions.cross(&home.config, None, hash(10), odd).unwrap_err();
    assert!(!passes.is_held && passes.reason.contains("odd"), "{passes}");
    let changed = home.device.versions.cross(&home.config, None, hash(10), &looked_at(11)).unwrap_err();
    assert!(changed.reason.contains("has changed"), "{changed}");
    assert_eq!(home.device.status().data, None);
}

#[test]
fn a_first_version_whose_manifest_cannot_be_read_does_not_run() {
    let home = Home::with_room(1 << 20);
    let odd: Look<'_> = &|_| Err("its manifest is odd".to_owned());
    let copy = |to: &mut dyn Write| to.write_all(&bytes(1)).map_err(|error| error.to_string());
    let chosen = home.device.versions.choose(&home.config, Ok(hash(1)), copy, odd, false);
    assert_eq!((chosen.number, chosen.not_kept.as_deref()), (None, Some("its manifest is odd")));
    assert_eq!(home.unknown(1), Crossing::Noted);
    assert!(home.device.versions.cross(&home.config, None, hash(1), odd).is_err());
}

#[test]
fn what_runs_while_the_record_cannot_be_read_makes_older_data_stale() {
    let mut home = Home::new();
    home.update();
    let record = home.device.path("weir-versions-a");
    let text = fs::read(&record).unwrap();
    let newer = String::from_utf8(text.clone()).unwrap().replacen(" 2 ", " 3 ", 1);
    fs::write(&record, newer).unwrap();
    home.restart();
    for component in [30, 20] {
        assert_eq!(home.unknown(component), Crossing::Noted);
        home.cross_unknown(component).unwrap();
        assert_eq!(home.unknown(component), Crossing::Nothing);
    }
    assert_eq!(home.kept(), 1, "it may be needed by the newer Weir");
    home.device.versions = Versions::default();
    fs::write(&record, text).unwrap();
    for _ in 0..2 {
        home.restart();
        assert_eq!((home.status().snapshots.len(), home.status().since.as_deref()), (0, Some("30.0.0")));
        assert!(!home.device.path("weir-unknown-ran-a").exists());
    }
}

#[test]
fn a_version_that_served_before_its_form_was_known_may_have_written() {
    let mut home = Home::with_room(1 << 20);
    // What is kept then has the stores of the configuration.
    Arc::make_mut(&mut home.config).stanza = None;
    home.serve(1);
    home.accept();
    home.update();
    home.accept();
    // As a record of format 1 has it.
    home.device.versions.change(&a(), |record| {
        record.data = crate::data::Data::default();
        record.entries.iter_mut().for_each(|entry| entry.form = None);
    });
    assert_held_back(&choose(&home.device.versions, &home.config, 1, false), 2, 10);
    assert_eq!(home.status().since.as_deref(), Some("10.0.0"));
}

#[test]
fn what_is_known_of_the_data_stays_when_there_is_no_room_for_the_versions() {
    let home = Home::with_room(4000);
    home.serve(1);
    home.accept();
    home.update();
    home.accept();
    let versions = &home.device.versions;
    versions.configure(["b".parse().unwrap()]);
    let state = versions.state.as_ref().unwrap();
    versions.make_room(state, None, 0).unwrap();
    let left = home.status();
    assert_eq!((left.since.as_deref(), left.snapshots.len()), (Some("10.0.0"), 0));
    let chosen = choose(versions, &home.config, 1, false);
    assert_eq!(chosen.number, Some(3), "numbers go on");
    assert!(home.cross(3).unwrap_err().is_held);
}

#[test]
fn a_record_of_the_format_before_is_read_and_its_versions_say_of_their_data_later() {
    let mut home = Home::new();
    home.device.versions = Versions::default();
    let path = home.device.path("weir-versions-a");
    let text = fs::read_to_string(&path).unwrap();
    let mut body: serde_json::Value = serde_json::from_str(text.split_once('\n').unwrap().1).unwrap();
    body.as_object_mut().unwrap().remove("data");
    body["entries"][0].as_object_mut().unwrap().remove("form");
    fs::write(&path, crate::state_dir::text_of_format_1(&home.device.path(""), &a(), &body)).unwrap();
    home.restart();
    assert_eq!(home.device.numbers(Standing::Proven), [1]);
    home.update();
    home.roll_back(true).unwrap();
    home.cross(1).unwrap();
    assert_eq!(home.read(), "old");
}

#[test]
fn what_has_got_its_number_while_it_ran_may_have_written() {
    let home = Home::new();
    let number = choose(&home.device.versions, &home.config, 10, false).number.unwrap();
    home.is_ready(number);
    assert_eq!(home.status().since.as_deref(), Some("10.0.0"));
    assert!(home.cross(1).unwrap_err().is_held);
}

#[test]
fn a_record_that_cannot_be_read_for_a_moment_keeps_the_extension_from_its_data_until_it_can() {
    let mut home = Home::new();
    home.update();
    let record = home.device.path("weir-versions-a");
    let text = fs::read(&record).unwrap();
    // A directory cannot be read as a file.
    fs::remove_file(&record).unwrap();
    fs::create_dir(&record).unwrap();
    home.restart();
    assert_eq!(choose(&home.device.versions, &home.config, 10, false).number, None);
    let passes = home.cross_unknown(10).unwrap_err();
    assert!(!passes.is_held && passes.reason.contains("weir-versions-a"), "{passes}");
    fs::remove_dir(&record).unwrap();
    fs::write(&record, text).unwrap();
    assert_eq!(choose(&home.device.versions, &home.config, 10, false).number, Some(2));
    // What another instance has chosen before does not run either.
    for _ in 0..2 {
        home.cross(2).unwrap();
        let passes = home.cross_unknown(10).unwrap_err();
        assert!(!passes.is_held && passes.reason.contains("can be read by now"), "{passes}");
    }
    assert_eq!((home.status().snapshots.len(), home.kept()), (1, 1));
    home.restart();
    home.roll_back(true).unwrap();
}

#[test]
fn a_record_that_is_damaged_when_it_can_be_read_again_is_none_that_was_removed() {
    let mut home = Home::new();
    home.update();
    let record = home.device.path("weir-versions-a");
    fs::remove_file(&record).unwrap();
    fs::create_dir(&record).unwrap();
    home.restart();
    fs::remove_dir(&record).unwrap();
    fs::write(&record, "damaged").unwrap();
    assert_eq!(choose(&home.device.versions, &home.config, 10, false).number, None);
    assert!(home.cross_unknown(10).is_err());
    fs::remove_file(&record).unwrap();
    assert_eq!(choose(&home.device.versions, &home.config, 10, false).number, Some(1));
}

#[test]
fn what_runs_without_a_number_begins_a_record_if_it_writes_another_form() {
    let mut home = Home::with_room(2);
    let chosen = choose(&home.device.versions, &home.config, 10, false);
    assert_eq!((chosen.number, home.unknown(10)), (None, Crossing::Noted));
    home.cross_unknown(10).unwrap();
    home.restart();
    assert_eq!(home.status().since.as_deref(), Some("10.0.0"));
    // One that says nothing of its data needs none.
    let home = Home::with_room(2);
    assert_eq!(choose(&home.device.versions, &home.config, 1, false).number, None);
    home.cross_unknown(1).unwrap();
    assert!(!home.device.path("weir-versions-a").exists());
}
