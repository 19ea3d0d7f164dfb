//! Any sequence of calls does what a map does, within the quota, across restarts.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Op {
    Change(u8, Vec<(u8, Option<u16>)>),
    Increment(u8, u8, i8),
    Swap(u8, u8, Option<u16>, Option<u16>),
    Restart,
}

fn op() -> impl Strategy<Value = Op> {
    let value = || proptest::option::of(0..3000_u16);
    prop_oneof![
        6 => (0..2_u8, proptest::collection::vec((0..12_u8, value()), 0..6))
            .prop_map(|(owner, changes)| Op::Change(owner, changes)),
        2 => (0..2_u8, 0..12_u8, any::<i8>()).prop_map(|(owner, key, by)| Op::Increment(owner, key, by)),
        2 => (0..2_u8, 0..12_u8, value(), value()).prop_map(|(o, k, a, b)| Op::Swap(o, k, a, b)),
        1 => Just(Op::Restart),
    ]
}

type Model = BTreeMap<(String, String), Bytes>;

fn size(model: &Model) -> u64 {
    model.iter().map(|((owner, key), value)| crate::entries::size(owner, key, value.len() as u64)).sum()
}

fn value(length: u16) -> Bytes {
    vec![b'x'; length.into()].into()
}

/// Applies changes to the model if its quota allows.
fn apply(model: &mut Model, config: &StoreConfig, changes: Vec<((String, String), Option<Bytes>)>) -> bool {
    let mut after = model.clone();
    for (key, value) in changes {
        match value {
            Some(value) => drop(after.insert(key, value)),
            None => drop(after.remove(&key)),
        }
    }
    let (bytes, keys) = (size(&after), after.len() as u64);
    if (bytes > config.bytes && bytes > size(model))
        || (keys > config.keys.into() && keys > model.len() as u64)
    {
        return false;
    }
    *model = after;
    true
}

async fn check(ops: Vec<Op>) {
    let config = StoreConfig { bytes: 20_000, keys: 15, ..StoreConfig::default() };
    let disk = Disk::new();
    let mut store = on_disk(&disk, config.clone());
    let mut model = Model::new();
    for op in ops {
        match op {
            Op::Change(owner, changes) => {
                let owner = owner.to_string();
                let named: Vec<_> =
                    changes.iter().map(|(key, to)| (format!("key{key}"), to.map(value))).collect();
                let of_model = named.iter().map(|(k, v)| ((owner.clone(), k.clone()), v.clone())).collect();
                let done = bucket(&store, &owner).change(named).await;
                assert_eq!(done.is_ok(), apply(&mut model, &config, of_model), "{done:?}");
            }
            Op::Increment(owner, key, by) => {
                let (owner, key) = (owner.to_string(), format!("key{key}"));
                let at = (owner.clone(), key.clone());
                let before = model.get(&at).map(|v| str::from_utf8(v).ok()?.parse::<i128>().ok());
                let sum = bucket(&store, &owner).increment(key, by.into(), i128::MIN..=i128::MAX).await;
                match before {
                    Some(None) => assert_eq!(sum, Err(StoreError::NotANumber)),
                    number => {
                        let expected = number.flatten().unwrap_or_default() + i128::from(by);
                        let change = vec![(at, Some(expected.to_string().into()))];
                        match apply(&mut model, &config, change) {
                            true => assert_eq!(sum, Ok(expected)),
                            false => assert!(sum.is_err()),
                        }
                    }
                }
            }
            Op::Swap(owner, key, expected, to) => {
                let (owner, key) = (owner.to_string(), format!("key{key}"));
                let at = (owner.clone(), key.clone());
                let (expected, to) = (expected.map(value), to.map(value));
                let swapped = bucket(&store, &owner).swap(key, expected.clone(), to.clone()).await;
                let current = model.get(&at).cloned();
                if current == expected {
                    assert_eq!(swapped.is_ok(), apply(&mut model, &config, vec![(at, to)]));
                } else {
                    assert_eq!(swapped, Ok(Err(current)));
                }
            }
            Op::Restart => {
                store.close().await;
                store = on_disk(&disk, config.clone());
            }
        }
        let usage = store.usage().await.unwrap();
        assert_eq!((usage.keys, usage.bytes), (model.len() as u64, size(&model)));
    }
    let rows = store.rows(None, None, String::new(), 1000, true).await.unwrap();
    let found: Model = rows.rows.into_iter().map(|row| ((row.owner, row.key), row.value.unwrap())).collect();
    assert_eq!(found, model);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn a_store_does_what_a_map_does(ops in proptest::collection::vec(op(), 0..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(check(ops));
    }
}
