//! Files of the state directory: damaged, foreign, left over, too large, or not to be written.

use std::{
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        process::ExitStatusExt,
    },
    process::Command,
    sync::Arc,
};

use weir_config::{ExtensionConfig, UpdateConfig};
use weir_reports::Standing;

use super::*;
use crate::{
    Chosen, Versions,
    tests::{Device, a, assert_held_back, assert_runs, bytes, extension, hash, unread},
};

const RECORD_OF_A: &str = "weir-versions-a";

fn kept(component: u8) -> String {
    format!("{COMPONENT}{}", hash(component))
}

/// A device on which version 1 of `a` is proven and version 2 is refused.
fn device() -> (Device, Arc<ExtensionConfig>) {
    let (device, config) = (Device::on_disk(), extension("a", ""));
    device.prove(&config, 1);
    device.fail(&config, 2);
    (device, config)
}

type Damage = fn(Vec<u8>) -> Vec<u8>;

/// The components that are kept, by their numbers.
fn components(device: &Device) -> Vec<u8> {
    (0..=u8::MAX).filter(|component| device.path(&kept(*component)).exists()).collect()
}

fn text_of(device: &Device) -> Vec<u8> {
    fs::read(device.path(RECORD_OF_A)).unwrap()
}

#[test]
fn files_are_for_main_alone() {
    let (device, _) = device();
    let mode = |name: &str| fs::metadata(device.path(name)).unwrap().mode() & 0o777;
    assert_eq!(mode(""), 0o700);
    for name in [RECORD_OF_A, &kept(1), KEY_FILE] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let (mut device, _) = device();
    let before = device.status();
    device.restart();
    let mut after = device.status();
    // Times have seconds in a record.
    for (version, was) in after.versions.iter_mut().zip(&before.versions) {
        version.since = was.since;
    }
    for (change, was) in after.changes.iter_mut().zip(&before.changes) {
        change.time = was.time;
    }
    assert_eq!(after, before);
}

#[test]
fn a_record_with_any_changed_byte_is_not_used() {
    let (mut device, _) = device();
    let text = text_of(&device);
    device.versions = Versions::default();
    let state = StateDir::open(device.path(""), 1 << 20).unwrap();
    assert!(state.record(&a()).is_ok());
    for at in (0..text.len().min(300)).chain(text.len() - 20..text.len()) {
        for bit in [0x01, 0x80] {
            let mut changed = text.clone();
            changed[at] ^= bit;
            fs::write(device.path(RECORD_OF_A), &changed).unwrap();
            let found = state.record(&a());
            // The first bit of the format makes it that of a newer Weir.
            let is_newer = at == MAGIC.len() && bit == 0x01 && matches!(found, Err(StateError::Newer { .. }));
            let is_foreign = matches!(found, Err(StateError::NotAuthentic(_)));
            assert!(is_newer || is_foreign, "byte {at}, bit {bit}: {found:?}");
        }
    }
}

#[test]
fn a_damaged_record_is_forgotten_and_a_new_one_begins() {
    let damages: [(&str, Damage); 6] = [
        ("empty", |_| Vec::new()),
        ("cut in its first line", |text| text[..40].to_vec()),
        ("cut", |text| text[..text.len() / 2].to_vec()),
        ("without its last byte", |text| text[..text.len() - 1].to_vec()),
        ("20 MiB", |text| text.into_iter().chain(std::iter::repeat_n(b' ', 20 << 20)).collect()),
        ("no UTF-8", |text| text.into_iter().map(|byte| byte | 0x80).collect()),
    ];
    for (name, damage) in damages {
        let (mut device, config) = device();
        fs::write(device.path(RECORD_OF_A), damage(text_of(&device))).unwrap();
        device.restart();
        assert_runs(&device.run(&config, 2), &config, 1);
        device.restart();
        assert_eq!(device.numbers(Standing::Probation), [1], "{name}");
        assert_eq!(components(&device), [2], "{name}");
    }
}

#[test]
fn a_fifo_or_a_symlink_in_place_of_a_record_stops_nobody() {
    let (mut device, config) = device();
    let path = device.path(RECORD_OF_A);
    for replace in ["mkfifo \"$0\"", "ln -s /dev/zero \"$0\""] {
        fs::remove_file(&path).unwrap();
        assert!(Command::new("sh").args(["-c", replace]).arg(&path).status().unwrap().success());
        device.restart();
        let chosen = device.run(&config, 2);
        assert!(Arc::ptr_eq(&chosen.config, &config), "{chosen:?}");
        assert_eq!(device.run(&extension("b", ""), 3).number, Some(1));
    }
}

#[test]
fn a_record_of_another_extension_is_not_authentic() {
    let (mut device, _) = device();
    device.versions = Versions::default();
    fs::copy(device.path(RECORD_OF_A), device.path("weir-versions-b")).unwrap();
    let records = StateDir::open(device.path(""), 1 << 20).unwrap().records().unwrap();
    assert!(records[&a()].is_ok());
    assert!(matches!(records["b"], Err(StateError::NotAuthentic(_))));
}

#[test]
fn a_key_that_others_can_read_makes_no_record_authentic() {
    let (mut device, config) = device();
    fs::set_permissions(device.path(KEY_FILE), fs::Permissions::from_mode(0o644)).unwrap();
    device.restart();
    assert_runs(&device.run(&config, 2), &config, 1);
    device.restart();
    assert_runs(&device.run(&config, 2), &config, 1);
}

#[test]
fn a_record_of_a_newer_weir_is_left_with_its_components() {
    let (mut device, config) = device();
    let newer = String::from_utf8(text_of(&device)).unwrap().replacen(" 2 ", " 3 ", 1);
    fs::write(device.path(RECORD_OF_A), &newer).unwrap();
    device.restart();
    let chosen = device.run(&config, 3);
    assert!(Arc::ptr_eq(&chosen.config, &config));
    assert_eq!((chosen.number, &chosen.held_back), (None, &None));
    let why = chosen.not_kept.unwrap();
    assert!(why.contains(RECORD_OF_A) && why.contains("format 3"), "{why}");
    device.prove(&extension("b", ""), 4);
    let _an_order_without_versions = device.versions.save(&a());
    assert_eq!(text_of(&device), newer.as_bytes());
    assert_eq!(components(&device), [1, 4]);
}

#[test]
fn a_directory_of_another_main_is_left_alone() {
    let (device, config) = device();
    let before = text_of(&device);
    let second = Versions::open(Some(device.path("")), 1 << 20);
    let copy = |to: &mut dyn Write| to.write_all(&bytes(3)).map_err(|error| error.to_string());
    assert_eq!(second.choose(&config, Ok(hash(3)), copy, &unread, false).number, Some(1));
    second.save(&a()).unwrap();
    assert!(!second.status(&a(), &config.update.clone().unwrap()).unwrap().is_kept);
    assert!(device.status().is_kept);
    assert_eq!((text_of(&device), components(&device)), (before, vec![1]));
}

#[test]
fn what_nobody_needs_is_removed() {
    let (mut device, config) = device();
    fs::write(device.path(".weir-state-left"), "half").unwrap();
    fs::write(device.path(&kept(77)), "left").unwrap();
    fs::write(device.path("a file of the operator"), "").unwrap();
    device.restart();
    assert!(!device.path(".weir-state-left").exists());
    for component in 3..=5 {
        device.prove(&config, component);
    }
    assert_eq!(components(&device), [3, 4, 5]);
    assert!(device.path("a file of the operator").exists());
    device.versions = Versions::default();
    let names = fs::read_dir(device.path("")).unwrap().count();
    assert_eq!(names, 6, "three components, a record, a key, and what is the operator's");
}

#[test]
fn what_cannot_be_removed_stops_no_new_version() {
    let (device, config) = device();
    fs::create_dir(device.path(&kept(77))).unwrap();
    assert_runs(&device.run(&config, 3), &config, 3);
}

/// A directory in place of a file keeps root from writing it, too.
fn block(device: &Device, name: &str) {
    let path = device.path(name);
    let _was_there = fs::remove_file(&path);
    fs::create_dir(&path).unwrap();
}

#[test]
fn a_new_version_that_cannot_be_kept_does_not_run() {
    for blocked in [RECORD_OF_A.to_owned(), kept(3)] {
        let (device, config) = device();
        block(&device, &blocked);
        for _ in 0..2 {
            let chosen = device.run(&config, 3);
            assert_held_back(&chosen, 1, 1);
            assert!(chosen.held_back.unwrap().contains(&blocked), "{blocked}");
        }
        assert_eq!(device.numbers(Standing::Probation), [0; 0]);
        assert_eq!(device.versions.save(&a()).is_err(), blocked == RECORD_OF_A);
        // The others are known, and run on.
        assert_held_back(&device.run(&config, 2), 1, 1);
        assert_runs(&device.run(&config, 1), &config, 1);
    }
}

#[test]
fn the_first_version_runs_even_if_it_cannot_be_kept() {
    let (device, config) = (Device::on_disk(), extension("a", ""));
    block(&device, RECORD_OF_A);
    let Chosen { config: runs, number, held_back, not_kept, .. } = device.run(&config, 1);
    assert!(Arc::ptr_eq(&runs, &config));
    assert_eq!((number, held_back), (None, None));
    assert!(not_kept.unwrap().contains(RECORD_OF_A));
}

#[test]
fn a_version_that_could_not_be_kept_is_new_after_a_restart() {
    let (mut device, config) = (Device::with_room(3000), extension("a", ""));
    for component in 1..=3 {
        device.prove(&config, component);
    }
    let large = |device: &Device| {
        let copy = |to: &mut dyn Write| to.write_all(&[9; 2500]).map_err(|error| error.to_string());
        device.versions.choose(&config, Ok(hash(9)), copy, &unread, false)
    };
    for _ in 0..2 {
        assert_held_back(&large(&device), 3, 3);
        device.restart();
    }
    // Nothing was given up for what does not fit.
    assert_eq!((components(&device), device.numbers(Standing::Proven)), (vec![1, 2, 3], vec![3, 2, 1]));
}

#[test]
fn a_component_above_the_size_does_not_run_and_costs_nothing() {
    let (device, config) = (Device::with_room(2000), extension("a", ""));
    device.prove(&config, 1);
    device.prove(&config, 2);
    let copy = |to: &mut dyn Write| to.write_all(&[9; 2001]).map_err(|error| error.to_string());
    let chosen = device.versions.choose(&config, Ok(hash(9)), copy, &unread, false);
    assert_held_back(&chosen, 2, 2);
    assert!(chosen.held_back.unwrap().contains("`main.state-size`"));
    assert_eq!(components(&device), [1, 2]);
}

#[test]
fn the_oldest_spare_version_goes_first_and_what_is_needed_never() {
    let (mut device, config) = (Device::with_room(3999), extension("a", ""));
    for component in 1..=3 {
        device.prove(&config, component);
    }
    assert_eq!(device.run(&config, 4).number, Some(4));
    assert_eq!(components(&device), [2, 3, 4]);
    assert_eq!(device.numbers(Standing::Proven), [3, 2]);
    let other = extension("b", "");
    assert_runs(&device.run(&other, 5), &other, 1);
    assert_eq!(components(&device), [3, 4, 5]);
    device.restart();
    // All three are the last proven one, or on probation.
    let third = extension("c", "");
    device.versions.configure(["a", "b", "c"].map(|id| id.parse().unwrap()));
    let chosen = device.run(&third, 6);
    assert!(chosen.number.is_none() && chosen.not_kept.unwrap().contains("`main.state-size`"));
    assert_eq!(components(&device), [3, 4, 5]);
}

#[test]
fn extensions_that_are_not_configured_go_before_versions_of_others() {
    let (mut device, config) = (Device::with_room(3000), extension("a", ""));
    device.prove(&config, 1);
    device.prove(&config, 2);
    device.prove(&extension("b", ""), 3);
    device.versions.configure([a()]);
    assert_eq!(device.run(&config, 4).number, Some(3));
    assert_eq!(components(&device), [1, 2, 4]);
    assert!(!device.path("weir-versions-b").exists());
    device.restart();
    assert_eq!(device.numbers(Standing::Proven), [2, 1]);
}

#[test]
fn an_extension_that_is_chosen_counts_as_configured() {
    let (device, config) = (Device::with_room(1000), extension("a", ""));
    device.prove(&extension("b", ""), 1);
    device.versions.configure([]);
    assert_runs(&device.run(&config, 2), &config, 1);
    assert_eq!((device.numbers(Standing::Probation), components(&device)), (vec![1], vec![2]));
}

#[test]
fn a_component_that_two_extensions_run_is_kept_for_both() {
    let (device, config, other) = (Device::on_disk(), extension("a", ""), extension("b", ""));
    device.prove(&config, 1);
    device.prove(&other, 1);
    device.fail(&config, 2);
    device.run(&other, 2);
    device.versions.save(&a()).unwrap();
    assert_eq!(components(&device), [1, 2]);
}

#[test]
fn a_lost_or_damaged_component_is_kept_once_more_and_an_older_version_comes_back_meanwhile() {
    let losses: [fn(PathBuf); 2] =
        [|path| fs::remove_file(path).unwrap(), |path| fs::write(path, bytes(9)).unwrap()];
    for lose in losses {
        let (device, config) = (Device::on_disk(), extension("a", ""));
        device.prove(&config, 1);
        device.prove(&config, 2);
        device.fail(&config, 3);
        device.run(&config, 2);
        lose(device.path(&kept(2)));
        assert_held_back(&device.run(&config, 3), 1, 1);
        assert_eq!(device.status().serving, Some(1));
        device.run(&config, 2);
        assert_eq!(components(&device), [1, 2]);
        assert_eq!(fs::read(device.path(&kept(2))).unwrap(), bytes(2));
    }
}

/// What the process does that loses power: it begins version 2, or refuses it.
#[test]
fn a_child_process_begins_or_refuses_version_2() {
    let Some(dir) = std::env::var_os("WEIR_TEST_STATE_DIR") else { return };
    let (versions, config) = (Versions::open(Some(dir.into()), 1 << 20), extension("a", ""));
    versions.configure([a()]);
    let copy = |to: &mut dyn Write| to.write_all(&bytes(2)).map_err(|error| error.to_string());
    if versions.refuse(&a(), 2, &UpdateConfig::default(), "it trapped").is_none() {
        versions.choose(&config, Ok(hash(2)), copy, &unread, false);
    }
    versions.save(&a()).unwrap();
}

/// Lets the child lose power at the fault point with this number. Returns false if it ends before.
fn is_cut_at(device: &Device, number: u32) -> bool {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "state_dir::tests::a_child_process_begins_or_refuses_version_2"])
        .env("WEIR_TEST_STATE_DIR", device.path(""))
        .env("WEIR_FAULT_POINT", number.to_string())
        .output()
        .unwrap();
    // SIGABRT.
    let is_cut = child.status.signal() == Some(6);
    assert!(is_cut || child.status.success(), "{child:?}");
    is_cut
}

#[test]
fn a_power_cut_at_any_step_leaves_the_proven_version_and_no_half_written_file() {
    for (is_on_probation, steps) in [(false, 10), (true, 6)] {
        for number in 1.. {
            let (mut device, config) = (Device::on_disk(), extension("a", ""));
            device.prove(&config, 1);
            if is_on_probation {
                device.run(&config, 2);
            }
            device.versions = Versions::default();
            if !is_cut_at(&device, number) {
                assert!(number > steps, "only {number} steps");
                break;
            }
            device.restart();
            assert!(device.status().is_kept);
            assert_eq!((device.status().fallback, device.numbers(Standing::Proven)), (Some(1), vec![1]));
            let is_refused = !device.numbers(Standing::Refused).is_empty();
            match is_refused {
                true => assert_held_back(&device.run(&config, 2), 1, 1),
                false => assert_runs(&device.run(&config, 2), &config, 2),
            }
            device.versions.save(&a()).unwrap();
            assert_eq!(components(&device), if is_refused { vec![1] } else { vec![1, 2] }, "{number}");
            // A record, a key and the components.
            let names = fs::read_dir(device.path("")).unwrap().count();
            assert_eq!(names, 2 + components(&device).len(), "{number}");
        }
    }
}
