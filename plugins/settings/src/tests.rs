//! The whole extension, with a map as storage.

use std::{rc::Rc, time::Duration};

use serde_json::{Value, json};
use weir_contracts::settings::{GET, LIST, SET, Type};
use weir_sdk::{Empty, testing::Harness};

use super::*;

type Stored = Rc<RefCell<BTreeMap<String, Value>>>;

fn settings(stored: &Stored) -> Harness {
    let main = Harness::new(extension());
    let (get, set, list) = (stored.clone(), stored.clone(), stored.clone());
    main.fake(storage::GET, async move |key: storage::Key| {
        Ok(storage::Found { value: get.borrow().get(&key.key).cloned() })
    });
    main.fake(storage::SET, async move |entry: storage::Entry| {
        set.borrow_mut().insert(entry.key, entry.value);
        Ok(Empty {})
    });
    main.fake(storage::LIST, async move |prefix: storage::Prefix| {
        let keys = list.borrow().keys().filter(|key| key.starts_with(&prefix.prefix)).cloned().collect();
        Ok(storage::Keys { keys })
    });
    main
}

fn set(main: &Harness, key: &str, value: Value) -> Result<Option<Value>, Error> {
    main.call(SET, &Entry { key: key.into(), value }).map(|set| set.previous)
}

fn get(main: &Harness, key: &str) -> Result<Setting, Error> {
    main.call(GET, &Key { key: key.into() })
}

#[test]
fn a_setting_is_stored_published_and_there_after_a_restart() {
    let stored = Stored::default();
    let main = settings(&stored);
    assert_eq!(set(&main, "volume", json!(7)), Ok(None));
    assert_eq!(set(&main, "volume", json!(8)), Ok(Some(json!(7))));
    let published = main.published();
    assert_eq!(published.len(), 2);
    assert_eq!(published[1].topic, "settings.changed.volume");
    assert_eq!(published[1].json::<Value>(), json!({"key": "volume", "value": 8, "previous": 7}));
    drop(main);

    let main = settings(&stored);
    assert_eq!(get(&main, "volume"), Ok(Setting { value: json!(8), r#type: Type::Integer }));
    assert_eq!(main.published(), []);
}

#[test]
fn a_setting_keeps_its_type_even_over_a_restart() {
    let stored = Stored::default();
    let main = settings(&stored);
    for (key, value) in [("b", json!(true)), ("i", json!(1)), ("n", json!(0.5)), ("s", json!("x"))] {
        set(&main, key, value).unwrap();
    }
    set(&main, "n", json!(2)).unwrap();
    drop(main);
    let main = settings(&stored);
    set(&main, "n", json!(2.5)).unwrap();
    for (key, value) in [("b", json!(1)), ("i", json!(1.5)), ("n", json!("1")), ("s", json!(false))] {
        assert_eq!(set(&main, key, value).unwrap_err().code(), "wrong-type", "{key}");
    }
    for value in [json!(null), json!([1]), json!({})] {
        assert_eq!(set(&main, "new", value).unwrap_err().code(), "invalid-argument");
    }
    assert_eq!(get(&main, "new").unwrap_err().code(), "not-found");
}

#[test]
fn a_setting_that_does_not_change_is_not_published() {
    let main = settings(&Stored::default());
    set(&main, "a", json!("x")).unwrap();
    assert_eq!(set(&main, "a", json!("x")), Ok(Some(json!("x"))));
    assert_eq!(main.published().len(), 1);
}

#[test]
fn a_key_that_could_not_be_in_a_topic_is_refused() {
    let main = settings(&Stored::default());
    for key in ["", "a.b", "*", ">", "a b", "a/b", "ä", "a\0", &"k".repeat(129)] {
        assert_eq!(set(&main, key, json!(1)).unwrap_err().code(), "invalid-argument", "{key}");
    }
    set(&main, &"k".repeat(128), json!(1)).unwrap();
    assert_eq!(set(&main, "text", json!("x".repeat(4097))).unwrap_err().code(), "invalid-argument");
}

#[test]
fn a_change_that_cannot_be_stored_is_neither_seen_nor_published() {
    let main = settings(&Stored::default());
    set(&main, "a", json!(1)).unwrap();
    main.fake(storage::SET, async |_| Err(Error::handler("full", "no room")));
    assert_eq!(set(&main, "a", json!(2)).unwrap_err().code(), "full");
    assert_eq!(get(&main, "a").unwrap().value, json!(1));
    assert_eq!(main.published().len(), 1);
}

#[test]
fn settings_are_read_while_one_of_them_waits_for_storage() {
    let main = settings(&Stored::default());
    set(&main, "a", json!(1)).unwrap();
    let clock = main.clock();
    main.fake(storage::SET, async move |_| {
        clock.sleep(Duration::from_secs(1)).await;
        Ok(Empty {})
    });
    let first = main.send(SET, &Entry { key: "a".into(), value: json!(2) }, None).unwrap();
    let second = main.send(SET, &Entry { key: "a".into(), value: json!(3) }, None).unwrap();
    assert_eq!(get(&main, "a").unwrap().value, json!(1));
    assert!(!first.is_answered());
    assert_eq!(first.wait().unwrap().previous, Some(json!(1)));
    assert_eq!(second.wait().unwrap().previous, Some(json!(2)));
    let published = main.published().iter().map(|event| event.json::<Changed>().value).collect::<Vec<_>>();
    assert_eq!(published, [json!(1), json!(2), json!(3)]);
}

#[test]
fn what_others_left_in_storage_is_left_out() {
    let stored = Stored::default();
    stored.borrow_mut().extend([
        ("settings/good".into(), json!({"value": 1, "type": "number"})),
        ("settings/bad.key".into(), json!({"value": 1, "type": "number"})),
        ("settings/bad-type".into(), json!({"value": "1", "type": "number"})),
        ("settings/odd".into(), json!("anything")),
        ("telemetry/counts".into(), json!({"value": 1, "type": "number"})),
    ]);
    let main = settings(&stored);
    let listed = main.call(LIST, &Prefix::default()).unwrap().settings;
    assert_eq!(listed.into_keys().collect::<Vec<_>>(), ["good"]);
    assert_eq!(main.call(LIST, &Prefix { prefix: "h".into() }).unwrap().settings.len(), 0);
}

#[test]
fn there_is_an_end_to_new_settings_but_not_to_changes() {
    let main = settings(&Stored::default());
    for number in 0..MAX_SETTINGS {
        set(&main, &format!("s{number}"), json!(number)).unwrap();
    }
    assert_eq!(set(&main, "more", json!(1)).unwrap_err().code(), "full");
    set(&main, "s0", json!(1)).unwrap();
}
