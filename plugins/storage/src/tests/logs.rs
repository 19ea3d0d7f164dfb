//! Logs in the state in which they are found: damaged, half written, rewritten.

use std::fs;

use serde_json::json;
use weir_sdk::testing::Harness;

use super::{get, keys, set, storage};
use crate::extension;

#[test]
fn a_damaged_line_costs_its_own_change_and_the_file_is_put_aside() {
    let (directory, main) = storage();
    for key in ["a", "b", "c"] {
        set(&main, key, json!(key)).unwrap();
    }
    drop(main);
    let log = directory.path().join("log");
    let mut damaged = fs::read(&log).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&log, &damaged).unwrap();

    let main = Harness::new(extension(directory.path()));
    assert_eq!(keys(&main, ""), ["a", "c"]);
    assert_eq!(fs::read(directory.path().join("log.damaged")).unwrap(), damaged);
    set(&main, "d", json!("d")).unwrap();
    drop(main);
    fs::remove_file(directory.path().join("log.damaged")).unwrap();

    let main = Harness::new(extension(directory.path()));
    assert_eq!(keys(&main, ""), ["a", "c", "d"]);
    assert!(!directory.path().join("log.damaged").exists(), "what was repaired is damaged no more");
}

#[test]
fn a_file_that_is_no_log_at_all_is_put_aside_and_storage_begins_empty() {
    let (directory, main) = storage();
    drop(main);
    let zeros_and_lines = [vec![0; 3_000_000], b"what\nis\nthis\n".to_vec()].concat();
    fs::write(directory.path().join("log"), &zeros_and_lines).unwrap();
    let main = Harness::new(extension(directory.path()));
    assert_eq!(keys(&main, ""), Vec::<String>::new());
    set(&main, "a", json!(1)).unwrap();
    assert_eq!(fs::read(directory.path().join("log.damaged")).unwrap(), zeros_and_lines);
}

#[test]
fn a_tail_of_zeros_as_after_a_power_cut_is_dropped() {
    let (directory, main) = storage();
    set(&main, "a", json!(1)).unwrap();
    drop(main);
    let log = directory.path().join("log");
    let whole = fs::read(&log).unwrap();
    fs::write(&log, [&*whole, &[0; 2_000_000]].concat()).unwrap();
    let main = Harness::new(extension(directory.path()));
    assert_eq!(get(&main, "a"), Some(json!(1)));
    assert_eq!(fs::read(&log).unwrap(), whole);
}

#[test]
fn a_log_half_written_anew_means_nothing() {
    let (directory, main) = storage();
    set(&main, "a", json!(1)).unwrap();
    drop(main);
    let log = fs::read(directory.path().join("log")).unwrap();
    for length in 0..log.len() {
        fs::write(directory.path().join("log.new"), &log[..length]).unwrap();
        let main = Harness::new(extension(directory.path()));
        assert_eq!(get(&main, "a"), Some(json!(1)));
        assert!(!directory.path().join("log.new").exists());
    }
}

#[test]
fn a_key_that_is_set_again_and_again_takes_no_more_room() {
    let (directory, main) = storage();
    set(&main, "kept", json!("as it is")).unwrap();
    let value = "x".repeat(1000);
    for number in 0..1000 {
        set(&main, "a", json!([number, value])).unwrap();
    }
    assert!(fs::metadata(directory.path().join("log")).unwrap().len() < 70_000);
    drop(main);
    let main = Harness::new(extension(directory.path()));
    assert_eq!(get(&main, "kept"), Some(json!("as it is")));
    assert_eq!(get(&main, "a"), Some(json!([999, value])));
}

#[test]
fn a_log_that_cannot_be_written_anew_goes_on_as_it_is() {
    let (directory, main) = storage();
    set(&main, "a", json!(1)).unwrap();
    // A directory in the way makes the rewrite fail, as a full disk would.
    let in_the_way = directory.path().join("log.new");
    fs::create_dir(&in_the_way).unwrap();
    let value = "x".repeat(100_000);
    set(&main, "b", json!(value)).unwrap();
    assert_eq!(get(&main, "b"), Some(json!(value)), "the change itself is on disk");
    fs::remove_dir(&in_the_way).unwrap();
    set(&main, "c", json!(1)).unwrap();
    drop(main);
    let main = Harness::new(extension(directory.path()));
    assert_eq!(keys(&main, ""), ["a", "b", "c"]);
}
