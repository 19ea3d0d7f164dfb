//! Any changes, in any groups, cut at every byte: what was written to disk is there.

use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*};
use serde_json::{json, value::to_raw_value};

use crate::{change::Change, entries::Entries, recovery::recover, store::Store};

type Model = BTreeMap<String, String>;

fn change() -> impl Strategy<Value = Change> {
    let key = prop_oneof!["[a-c]", any::<String>().prop_filter("a key", |key| !key.is_empty())];
    (key, proptest::option::weighted(0.8, any::<String>())).prop_map(|(key, value)| match value {
        Some(value) => Change::set(key, to_raw_value(&json!({ "v": value })).unwrap()).unwrap(),
        None => Change::Delete(key),
    })
}

fn apply(model: &mut Model, change: &Change) {
    match change {
        Change::Set(key, value) => model.insert(key.clone(), value.get().to_owned()),
        Change::Delete(key) => model.remove(key),
    };
}

fn contents(entries: &Entries) -> Model {
    entries
        .keys("")
        .into_iter()
        .map(|key| {
            let value = entries.get(&key).unwrap().get().to_owned();
            (key, value)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_byte_a_log_ends_at_all_that_was_committed_is_there_and_nothing_out_of_order(
        groups in vec(vec(change(), 1..6), 1..8),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let (mut store, _) = Store::open(directory.path(), usize::MAX).unwrap();
        let mut model = Model::new();
        // The state after each change. For each group, the length of the log and the number of changes.
        let mut states = vec![model.clone()];
        let mut committed = vec![(0, 0)];
        for group in groups {
            for change in &group {
                apply(&mut model, change);
                states.push(model.clone());
            }
            store.commit(group);
            committed.push((std::fs::metadata(&log).unwrap().len(), states.len() - 1));
        }
        let bytes = std::fs::read(&log).unwrap();
        for cut in 0..=bytes.len() {
            let mut entries = Entries::default();
            let recovery = recover(&bytes[..cut], &mut entries).unwrap();
            prop_assert_eq!(recovery.bad_lines, 0);
            prop_assert_eq!(recovery.length + recovery.torn_bytes, cut as u64);
            let (_, least) = committed.iter().rfind(|(length, _)| *length <= cut as u64).unwrap();
            prop_assert!(states[*least..].contains(&contents(&entries)), "cut at {cut}");
        }
    }

    #[test]
    fn a_store_that_is_opened_again_on_a_cut_log_goes_on_where_that_ended(
        before in vec(change(), 1..10),
        after in vec(change(), 1..10),
        cut in any::<prop::sample::Index>(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let (mut store, _) = Store::open(directory.path(), usize::MAX).unwrap();
        store.commit(before);
        drop(store);
        let bytes = std::fs::read(&log).unwrap();
        std::fs::write(&log, &bytes[..cut.index(bytes.len() + 1)]).unwrap();

        let (mut store, _) = Store::open(directory.path(), usize::MAX).unwrap();
        let mut model = contents(store.entries());
        after.iter().for_each(|change| apply(&mut model, change));
        store.commit(after);
        prop_assert_eq!(&contents(store.entries()), &model);
        let (store, damage) = Store::open(directory.path(), usize::MAX).unwrap();
        prop_assert_eq!(&contents(store.entries()), &model);
        prop_assert_eq!(damage, Default::default());
    }

    #[test]
    fn a_damaged_byte_costs_two_changes_at_most(
        keys in vec("[a-z]{1,8}", 1..20),
        damaged in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let keys: std::collections::BTreeSet<_> = keys.into_iter().collect();
        let mut bytes = Vec::new();
        for key in &keys {
            Change::set(key.clone(), to_raw_value(key).unwrap()).unwrap().append_to(&mut bytes).unwrap();
        }
        let place = damaged.index(bytes.len());
        bytes[place] = byte;
        let mut entries = Entries::default();
        recover(&*bytes, &mut entries).unwrap();
        prop_assert!(entries.keys("").len() + 2 >= keys.len());
        for key in entries.keys("") {
            prop_assert!(keys.contains(&key));
        }
    }
}
