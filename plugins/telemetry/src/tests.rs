//! The whole extension, with a single value as storage.

use std::rc::Rc;

use serde_json::{Value, json};
use weir_contracts::telemetry::SNAPSHOT;
use weir_sdk::testing::Harness;

use super::*;

#[derive(Clone, Default)]
struct Stored {
    value: Rc<RefCell<Option<Value>>>,
    writes: Rc<Cell<u32>>,
}

fn telemetry(stored: &Stored) -> Harness {
    let main = Harness::new(extension());
    fake_storage(&main, stored);
    main
}

fn fake_storage(main: &Harness, stored: &Stored) {
    let (get, set) = (stored.clone(), stored.clone());
    main.fake(storage::GET, async move |_| Ok(storage::Found { value: get.value.borrow().clone() }));
    main.fake(storage::SET, async move |entry: storage::Entry| {
        assert_eq!(entry.key, STORED);
        set.value.replace(Some(entry.value));
        set.writes.set(set.writes.get() + 1);
        Ok(Empty {})
    });
}

fn counts(main: &Harness) -> Vec<(String, u64, u64)> {
    let topics = main.call(SNAPSHOT, &Empty {}).unwrap().topics;
    topics.into_iter().map(|topic| (topic.topic, topic.count, topic.lost)).collect()
}

#[test]
fn events_are_counted_by_topic_with_those_that_were_lost() {
    let main = telemetry(&Stored::default());
    main.config("topics", "settings.changed.>, door.*");
    for topic in ["settings.changed.a", "door.open", "settings.changed.a"] {
        main.publish_bytes(topic, b"not even JSON");
    }
    main.lose(5);
    main.publish("door.open", &1);
    assert_eq!(main.publish("window.open", &1), 0);
    assert_eq!(counts(&main), [("door.open".into(), 2, 5), ("settings.changed.a".into(), 2, 0)]);
    assert!(main.call(SNAPSHOT, &Empty {}).unwrap().topics[0].per_second_1m > 0.0);
}

#[test]
fn counts_are_saved_some_time_after_a_change_and_never_without() {
    let stored = Stored::default();
    let main = telemetry(&stored);
    main.config("save-after-s", "10");
    main.start().unwrap();
    main.advance(Duration::from_secs(100_000));
    assert_eq!(stored.writes.get(), 0);
    for _ in 0..100 {
        main.publish("settings.changed.a", &1);
    }
    main.advance(Duration::from_secs(9));
    assert_eq!(stored.writes.get(), 0);
    main.advance(Duration::from_secs(100_000));
    assert_eq!(stored.writes.get(), 1);
    main.publish("settings.changed.a", &1);
    main.advance(Duration::from_secs(10));
    assert_eq!(stored.writes.get(), 2);
    drop(main);

    let main = telemetry(&stored);
    main.publish("settings.changed.a", &1);
    assert_eq!(counts(&main), [("settings.changed.a".into(), 102, 0)]);
}

#[test]
fn counts_are_saved_at_a_stop() {
    let stored = Stored::default();
    let main = telemetry(&stored);
    main.publish("settings.changed.a", &1);
    main.stop().unwrap();
    assert_eq!(stored.writes.get(), 1);
    let main = telemetry(&stored);
    main.stop().unwrap();
    assert_eq!(stored.writes.get(), 1);
}

#[test]
fn without_storage_it_counts_and_once_that_is_there_nothing_of_before_is_lost() {
    let main = Harness::new(extension());
    let gone = async |_| Err::<storage::Found, _>(Error::NoProvider("`storage` is stopped".into()));
    main.fake(storage::GET, gone);
    main.publish("settings.changed.a", &1);
    main.advance(Duration::from_secs(60));
    assert_eq!(counts(&main), [("settings.changed.a".into(), 1, 0)]);

    let stored = Stored::default();
    let earlier = json!({"since": 5, "topics": {"settings.changed.a": {"count": 10, "lost": 2}}, "other": {"count": 0, "lost": 0}});
    stored.value.replace(Some(earlier));
    fake_storage(&main, &stored);
    main.publish("settings.changed.a", &1);
    main.advance(Duration::from_secs(60));
    assert_eq!(counts(&main), [("settings.changed.a".into(), 12, 2)]);
    assert_eq!(stored.value.borrow().as_ref().unwrap()["topics"]["settings.changed.a"]["count"], 12);
}

#[test]
fn what_others_left_in_storage_is_replaced() {
    let stored = Stored::default();
    stored.value.replace(Some(json!("nonsense")));
    let main = telemetry(&stored);
    main.publish("settings.changed.a", &1);
    main.advance(Duration::from_secs(60));
    assert_eq!(stored.value.borrow().as_ref().unwrap()["topics"]["settings.changed.a"]["count"], 1);
}

#[test]
fn a_configuration_that_makes_no_sense_is_refused() {
    for (key, value) in [("save-after-s", "0"), ("save-after-s", "soon"), ("topics", "a..b")] {
        let main = telemetry(&Stored::default());
        main.config(key, value);
        assert!(main.start().is_err(), "{key} = {value}");
    }
}
