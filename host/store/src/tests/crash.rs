//! The power is cut at every write: what was answered is there, and nothing is half there.

use std::{collections::BTreeMap, time::Duration};

use super::*;

/// One answered or unanswered change: all of its keys have this value, or had none before.
type Step = (Vec<String>, Option<u8>);

/// Steps that set, replace and delete several keys at once, with values of more than a page.
fn steps() -> Vec<Step> {
    let mut steps = Vec::new();
    for round in 0..12_u8 {
        let keys: Vec<_> = (0..=round % 4).map(|key| format!("k{key}")).collect();
        steps.push((keys, (round % 5 != 4).then_some(round)));
    }
    steps
}

fn value(number: u8) -> Bytes {
    // Of more than one page now and then.
    vec![number; 10 + usize::from(number % 3) * 3000].into()
}

/// Makes steps until the power is cut; returns how many were answered.
async fn work(disk: &Disk, config: StoreConfig) -> usize {
    let store = on_disk(disk, config);
    if store.open().await.is_err() {
        return 0;
    }
    let mine = bucket(&store, "a");
    for (number, (keys, to)) in steps().into_iter().enumerate() {
        let changes = keys.into_iter().map(|key| (key, to.map(value))).collect();
        if mine.change(changes).await.is_err() {
            return number;
        }
    }
    store.close().await;
    steps().len()
}

fn after(steps: &[Step]) -> BTreeMap<String, Bytes> {
    let mut entries = BTreeMap::new();
    for (keys, to) in steps {
        for key in keys {
            match to {
                Some(to) => drop(entries.insert(key.clone(), value(*to))),
                None => drop(entries.remove(key)),
            }
        }
    }
    entries
}

/// What is in a store, and whether its count is right.
async fn found(content: Vec<u8>) -> BTreeMap<String, Bytes> {
    let store = on_disk(&Disk::of(content), roomy());
    store.open().await.unwrap();
    let mine = bucket(&store, "a");
    let mut entries = BTreeMap::new();
    for key in keys(&mine).await {
        let value = get(&mine, &key).await.unwrap();
        entries.insert(key, value);
    }
    let usage = store.usage().await.unwrap();
    let bytes: u64 =
        entries.iter().map(|(key, value)| crate::entries::size("a", key, value.len() as u64)).sum();
    assert_eq!((usage.keys, usage.bytes), (entries.len() as u64, bytes));
    // It can be written to.
    set(&mine, "again", "1").await.unwrap();
    entries
}

async fn cut_everywhere(config: StoreConfig, least: impl Fn(usize) -> usize) {
    // A store is made under another name, so that it is whole or not there.
    let new = Disk::new();
    on_disk(&new, config.clone()).open().await.unwrap();
    let new = new.content();
    let whole = Disk::of(new.clone());
    assert_eq!(work(&whole, config.clone()).await, steps().len());
    let mut random = fastrand::Rng::with_seed(27);
    for cut in 0..=whole.steps() {
        let disk = Disk::of(new.clone());
        disk.cut_at(cut);
        let answered = work(&disk, config.clone()).await;
        let nothing = disk.after_power_loss(|_| 0);
        let all = disk.after_power_loss(|length| length);
        let some = disk.after_power_loss(|length| if random.bool() { length } else { 0 });
        let torn = disk.after_power_loss(|length| random.usize(0..=length));
        for (name, content) in [("nothing", nothing), ("all", all), ("some", some), ("torn", torn)] {
            let found = found(content).await;
            let steps = steps();
            let most = (answered + 1).min(steps.len());
            let fits = (least(answered)..=most).any(|number| after(&steps[..number]) == found);
            assert!(
                fits,
                "cut at {cut}, {answered} answered, {name} of the rest survives: {:?}",
                found.keys()
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_survives_a_cut_at_every_write() {
    cut_everywhere(roomy(), |answered| answered).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_durable_within_what_is_there_after_a_cut_is_what_was_there_at_some_moment() {
    let config = StoreConfig { durable_within: Some(Duration::from_secs(3600)), ..roomy() };
    cut_everywhere(config, |_| 0).await;
}
