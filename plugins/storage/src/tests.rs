//! The whole extension over a store in memory.

use std::time::Duration;

use serde_json::{Value, json};
use weir_contracts::storage::{DELETE, Entry, GET, Key, LIST, Prefix, SET};
use weir_sdk::testing::Harness;

use super::*;

/// With a store of its own.
fn storage(store: &str) -> Harness {
    let main = Harness::new(extension());
    main.config("store", store);
    main
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
    let main = storage("restarts");
    set(&main, "a", json!({"x": [1, "\n", null]})).unwrap();
    set(&main, "b", json!(2)).unwrap();
    set(&main, "a", json!(true)).unwrap();
    assert!(main.call(DELETE, &Key { key: "b".into() }).unwrap().existed);
    assert!(!main.call(DELETE, &Key { key: "b".into() }).unwrap().existed);
    drop(main);

    let main = storage("restarts");
    assert_eq!(get(&main, "a"), Some(json!(true)));
    assert_eq!(get(&main, "b"), None);
    assert_eq!(keys(&main, ""), ["a"]);
}

#[test]
fn keys_are_plain_strings_whatever_is_in_them() {
    let main = storage("hostile");
    let hostile = ["../../etc/passwd", "/", ".", "a\0b", "a\nb", "ä\u{202e}", "\"]}", &"k".repeat(256)];
    for key in hostile {
        set(&main, key, json!(key)).unwrap();
    }
    drop(main);
    let main = storage("hostile");
    for key in hostile {
        assert_eq!(get(&main, key), Some(json!(key)));
    }
    let mut sorted = hostile.map(str::to_owned);
    sorted.sort();
    assert_eq!(keys(&main, ""), sorted);
}

#[test]
fn only_keys_with_the_prefix_are_listed() {
    let main = storage("prefixes");
    for key in ["a", "a/1", "a/2", "a0", "b"] {
        set(&main, key, json!(0)).unwrap();
    }
    assert_eq!(keys(&main, "a/"), ["a/1", "a/2"]);
    assert_eq!(keys(&main, "c"), Vec::<String>::new());
}

#[test]
fn keys_and_values_over_their_limits_are_refused() {
    let main = storage("limits");
    assert_eq!(set(&main, "", json!(0)).unwrap_err().code(), "invalid-argument");
    assert_eq!(set(&main, &"k".repeat(257), json!(0)).unwrap_err().code(), "invalid-argument");
    assert_eq!(set(&main, "a", json!("x".repeat(MAX_VALUE - 1))).unwrap_err().code(), "too-large");
    let missing = main.send_bytes(SET, br#"{"key":"a"}"#, None).unwrap();
    assert_eq!(missing.wait().unwrap_err().code(), "invalid-argument");
}

#[test]
fn where_there_is_no_room_only_what_takes_more_is_refused() {
    let main = storage("full");
    main.start().unwrap();
    set(&main, "a", json!("x".repeat(2000))).unwrap();
    let entry = |key: &str, bytes: usize| Entry { key: key.into(), value: json!("x".repeat(bytes)) };
    // At the same time: each has an outcome of its own.
    let both = [entry("large", 3000), entry("small", 500)];
    let both = both.map(|entry| main.send(SET, &entry, Some(Duration::from_secs(60))).unwrap());
    let [large, small] = both.map(|pending| pending.wait());
    let error = large.unwrap_err();
    assert_eq!(error.code(), "full");
    assert!(error.to_string().contains("the store is full"), "{error}");
    small.unwrap();
    assert_eq!(get(&main, "large"), None);
    assert_eq!(keys(&main, ""), ["a", "small"]);
    assert!(main.call(DELETE, &Key { key: "a".into() }).unwrap().existed);
    set(&main, "large", json!("x".repeat(3000))).unwrap();
}

#[test]
fn a_store_that_is_not_granted_is_named_at_the_start() {
    let error = storage("none").start().unwrap_err();
    assert!(error.to_string().contains("cannot open the store `none`: access is denied"), "{error}");
}

#[test]
fn a_thousand_changes_that_nobody_waits_for_are_all_made_in_order() {
    let main = storage("thousand");
    main.start().unwrap();
    let entry = |number: u32| Entry { key: format!("{}", number % 10), value: json!(number) };
    let pending: Vec<_> = (0..1000)
        .map(|number| main.send(SET, &entry(number), Some(Duration::from_secs(60))).unwrap())
        .collect();
    for answer in pending {
        answer.wait().unwrap();
    }
    for last in 990..1000 {
        assert_eq!(get(&main, &format!("{}", last % 10)), Some(json!(last)));
    }
}

#[test]
fn numbers_keep_all_their_digits() {
    let main = storage("digits");
    let payload = br#"{"key":"n","value":[123456789012345678901234567890,1.10,1e400]}"#;
    main.send_bytes(SET, payload, None).unwrap().wait().unwrap();
    let value = Store::open("digits").unwrap().get("n").unwrap().unwrap();
    assert_eq!(value.get(), "[123456789012345678901234567890,1.10,1e400]");
}
