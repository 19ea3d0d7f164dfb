//! A power cut at any step.

use std::{os::unix::process::ExitStatusExt, process::Command};

use super::*;
use crate::state_dir::StateDir;

/// What the process does that loses power: it serves version 2, which writes, and goes back from it.
#[test]
fn a_child_process_goes_on_and_back() {
    let Some(dir) = std::env::var_os("WEIR_TEST_DATA_DIR") else { return };
    let dir = PathBuf::from(dir);
    let (versions, config) = (Versions::open(Some(dir.join("state")), 1 << 20), with_stores());
    versions.configure([a()]);
    versions.set_own_data(Box::new(FileData(dir.join("data"))));
    choose(&versions, &config, 10, false);
    versions.cross(&config, Some(2), hash(10), &looked_at(10)).unwrap();
    fs::write(dir.join("data"), "new").unwrap();
    versions.serves(&config, 2, false);
    versions.save(&a()).unwrap();
    versions.roll_back(&a(), None, true, "an operator").unwrap();
    versions.save(&a()).unwrap();
    choose(&versions, &config, 10, false);
    versions.cross(&config, Some(1), hash(1), &looked_at(1)).unwrap();
    versions.serves(&config, 1, false);
    versions.came_back(&config, 1);
    versions.save(&a()).unwrap();
}

#[test]
fn a_power_cut_at_any_step_leaves_each_version_with_data_that_it_reads() {
    for number in 1.. {
        let mut home = Home::new();
        home.device.versions = Versions::default();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crossing::tests::power::a_child_process_goes_on_and_back"])
            .env("WEIR_TEST_DATA_DIR", home.data().parent().unwrap())
            .env("WEIR_FAULT_POINT", number.to_string())
            .output()
            .unwrap();
        let is_cut = child.status.signal() == Some(6);
        assert!(is_cut || child.status.success(), "{child:?}");
        if !is_cut {
            assert!(number > 40, "only {number} steps");
            break;
        }
        home.restart();
        let chosen = choose(&home.device.versions, &home.config, 10, false);
        home.cross(chosen.number.unwrap()).unwrap();
        let reads = match chosen.number {
            Some(1) => home.read() == "old",
            _ => ["old", "new"].contains(&&*home.read()),
        };
        assert!(reads, "{number}: version {:?} finds `{}`", chosen.number, home.read());
        home.is_ready(chosen.number.unwrap());
        // Nothing is left but what is needed.
        assert_eq!(home.kept(), if chosen.number == Some(1) { 0 } else { 1 }, "{number}");
        home.device.versions = Versions::default();
        let state = StateDir::open(home.device.path(""), 1 << 20).unwrap();
        assert!(state.records().unwrap().values().all(Result::is_ok), "{number}");
    }
}
