//! The whole extension in a directory of its own, with logs cut and damaged everywhere.

mod logs;
mod surviving;

use std::{fs, time::Duration};

use serde_json::{Value, json};
use weir_contracts::storage::{DELETE, Entry, GET, Key, LIST, Prefix, SET};
use weir_sdk::testing::Harness;

use super::*;

fn storage() -> (tempfile::TempDir, Harness) {
    let directory = tempfile::tempdir().unwrap();
    let main = Harness::new(extension(directory.path()));
    (directory, main)
}

fn set(main: &Harness, key: &str, value: Value) -> Result<(), Error> {
    main.call(SET, &Entry { key: key.into(), value }).map(drop)
}

fn get(main: &Harness, key: &str) -> Option<Value> {
    main.call(GET, &Key { key: key.into() }).unwrap().value
}

fn keys(main: &Harness, prefix: &str) -> Vec<String> {
    main.call(LIST, &Prefix { prefix: prefix.into() }).unwrap().keys
}

#[test]
fn what_was_set_is_there_after_a_restart_and_what_was_deleted_is_not() {
    let (directory, main) = storage();
    set(&main, "a", json!({"x": [1, "\n", null]})).unwrap();
    set(&main, "b", json!(2)).unwrap();
    set(&main, "a", json!(true)).unwrap();
    assert!(main.call(DELETE, &Key { key: "b".into() }).unwrap().existed);
    assert!(!main.call(DELETE, &Key { key: "b".into() }).unwrap().existed);
    drop(main);

    let main = Harness::new(extension(directory.path()));
    assert_eq!(get(&main, "a"), Some(json!(true)));
    assert_eq!(get(&main, "b"), None);
    assert_eq!(keys(&main, ""), ["a"]);
}

#[test]
fn keys_are_plain_strings_whatever_is_in_them() {
    let (directory, main) = storage();
    let hostile = ["../../etc/passwd", "/", ".", "a\0b", "a\nb", "ä\u{202e}", "\"]}", &"k".repeat(256)];
    for key in hostile {
        set(&main, key, json!(key)).unwrap();
    }
    drop(main);
    let main = Harness::new(extension(directory.path()));
    for key in hostile {
        assert_eq!(get(&main, key), Some(json!(key)));
    }
    let mut sorted = hostile.map(str::to_owned);
    sorted.sort();
    assert_eq!(keys(&main, ""), sorted);
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
}

#[test]
fn only_keys_with_the_prefix_are_listed() {
    let (_directory, main) = storage();
    for key in ["a", "a/1", "a/2", "a0", "b"] {
        set(&main, key, json!(0)).unwrap();
    }
    assert_eq!(keys(&main, "a/"), ["a/1", "a/2"]);
    assert_eq!(keys(&main, "c"), Vec::<String>::new());
}

#[test]
fn keys_and_values_over_their_limits_are_refused() {
    let (_directory, main) = storage();
    assert_eq!(set(&main, "", json!(0)).unwrap_err().code(), "invalid-argument");
    assert_eq!(set(&main, &"k".repeat(257), json!(0)).unwrap_err().code(), "invalid-argument");
    set(&main, "a", json!("x".repeat(MAX_VALUE - 2))).unwrap();
    assert_eq!(set(&main, "a", json!("x".repeat(MAX_VALUE - 1))).unwrap_err().code(), "too-large");
    let missing = main.send_bytes(SET, br#"{"key":"a"}"#, None).unwrap();
    assert_eq!(missing.wait().unwrap_err().code(), "invalid-argument");
}

#[test]
fn where_there_is_no_room_only_what_takes_more_is_refused() {
    let (directory, main) = storage();
    main.config("max-bytes", "300");
    set(&main, "a", json!("x".repeat(50))).unwrap();
    set(&main, "b", json!("x".repeat(50))).unwrap();
    let error = set(&main, "c", json!("x".repeat(50))).unwrap_err();
    assert_eq!(error.code(), "full");
    assert!(error.to_string().contains("351 bytes of 300"), "{error}");
    assert_eq!(get(&main, "c"), None);
    drop(main);

    // The operator has lowered the limit: stored values stay, and can be made smaller.
    let main = Harness::new(extension(directory.path()));
    main.config("max-bytes", "10");
    set(&main, "a", json!("y".repeat(50))).unwrap();
    set(&main, "a", json!("z")).unwrap();
    assert_eq!(set(&main, "a", json!("zz")).unwrap_err().code(), "full");
    assert!(main.call(DELETE, &Key { key: "b".into() }).unwrap().existed);
}

#[test]
fn a_limit_that_is_no_number_is_refused() {
    let (_directory, main) = storage();
    main.config("max-bytes", "4 MiB");
    assert_eq!(main.start().unwrap_err().code(), "invalid-argument");
}

#[test]
fn a_thousand_changes_that_nobody_waits_for_are_all_made_in_order() {
    let (directory, main) = storage();
    main.start().unwrap();
    let entry = |number: u32| Entry { key: format!("{}", number % 10), value: json!(number) };
    let pending: Vec<_> = (0..1000)
        .map(|number| main.send(SET, &entry(number), Some(Duration::from_secs(60))).unwrap())
        .collect();
    for answer in pending {
        answer.wait().unwrap();
    }
    drop(main);
    let main = Harness::new(extension(directory.path()));
    for last in 990..1000 {
        assert_eq!(get(&main, &format!("{}", last % 10)), Some(json!(last)));
    }
}

#[test]
fn a_set_that_changes_nothing_is_not_written() {
    let (directory, main) = storage();
    set(&main, "a", json!(1)).unwrap();
    let before = fs::read(directory.path().join("log")).unwrap();
    set(&main, "a", json!(1)).unwrap();
    assert_eq!(fs::read(directory.path().join("log")).unwrap(), before);
}

#[test]
fn numbers_keep_all_their_digits() {
    let (directory, main) = storage();
    let payload = br#"{"key":"n","value":[123456789012345678901234567890,1.10,1e400]}"#;
    main.send_bytes(SET, payload, None).unwrap().wait().unwrap();
    let log = fs::read_to_string(directory.path().join("log")).unwrap();
    assert!(log.contains("[123456789012345678901234567890,1.10,1e400]"), "{log}");
}
