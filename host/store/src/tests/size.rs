//! How large the file becomes: never larger than so many times `bytes`, whatever is written.

use std::{
    sync::mpsc::{self, RecvTimeoutError, SyncSender},
    thread::{self, JoinHandle},
};

use redb::{Database, ReadableDatabase};

use super::*;
use crate::{FILE_TIMES, MAX_KEYS_AT_ONCE};

/// What is written, and how: the same numbers make the same entries.
struct Pattern {
    name: &'static str,
    owner: usize,
    key: fn(usize) -> String,
    value: fn(usize, usize) -> usize,
    /// Entries of one call.
    call: usize,
}

const PATTERNS: [Pattern; 8] = [
    Pattern { name: "tiny keys", owner: 6, key: |n| format!("{n:x}"), value: |_, _| 0, call: 100 },
    Pattern { name: "long owner", owner: 64, key: |n| format!("{n:x}"), value: |_, _| 0, call: 100 },
    Pattern {
        name: "scattered",
        owner: 1,
        key: |n| format!("{:x}", n * 7919 % 100_003),
        value: |_, _| 9,
        call: 50,
    },
    Pattern { name: "long keys", owner: 64, key: |n| format!("{n:01000}"), value: |_, _| 0, call: 10 },
    Pattern { name: "usual", owner: 6, key: |n| format!("settings/{n:06}"), value: |_, _| 100, call: 20 },
    Pattern { name: "half a page", owner: 6, key: |n| format!("{n:06}"), value: |_, _| 2100, call: 4 },
    Pattern {
        name: "mixed",
        owner: 6,
        key: |n| format!("{n:04}"),
        value: |n, bytes| if n % 5 == 4 { bytes / 17 } else { [0, 10, 700, 5000][n % 5] },
        call: 5,
    },
    Pattern { name: "large", owner: 6, key: |n| format!("{n}"), value: |_, bytes| bytes * 15 / 64, call: 1 },
];

/// What became of many calls.
#[derive(Debug, Default)]
struct Told {
    done: usize,
    over_bytes: usize,
    over_file: usize,
}

impl Told {
    /// Notes an outcome. Whether it was a refusal.
    fn add(&mut self, outcome: Result<usize, StoreError>) -> bool {
        match outcome {
            Ok(_) => self.done += 1,
            Err(StoreError::Bytes { .. }) => self.over_bytes += 1,
            Err(StoreError::File { .. }) => self.over_file += 1,
            Err(other) => panic!("{other}"),
        }
        self.over_bytes + self.over_file > 0
    }
}

struct Filled<'p> {
    pattern: &'p Pattern,
    bytes: usize,
    disk: Disk,
    store: Arc<Store>,
    mine: Bucket,
}

impl Filled<'_> {
    async fn set(&self, numbers: impl IntoIterator<Item = usize>) -> Result<usize, StoreError> {
        let entry = |n| ((self.pattern.key)(n), Some(vec![7; (self.pattern.value)(n, self.bytes)].into()));
        self.mine.change(numbers.into_iter().map(entry).collect()).await
    }

    async fn delete(&self, numbers: &[usize]) -> Result<usize, StoreError> {
        self.mine.change(numbers.iter().map(|n| ((self.pattern.key)(*n), None)).collect()).await
    }

    fn check(&self, when: &str) {
        let (longest, most) = (self.disk.longest() as u64, FILE_TIMES * self.bytes as u64);
        assert!(longest <= most, "{}, {} bytes, {when}: {longest}", self.pattern.name, self.bytes);
    }
}

/// Reads all the time, from snapshots that are as long as many writes, until what is returned is dropped and joined.
fn reader(store: Arc<Store>) -> (SyncSender<()>, JoinHandle<()>) {
    let (ends, ended) = mpsc::sync_channel(0);
    let snapshot = move |database: &Database| {
        let _seen = database.begin_read().unwrap();
        ended.recv_timeout(Duration::from_millis(1)) == Err(RecvTimeoutError::Timeout)
    };
    (ends, thread::spawn(move || while store.with_database(&snapshot).unwrap() {}))
}

/// Fills it, writes all anew, leaves gaps, fills it again, and empties it: while others read, if `reads`.
async fn stays_in_its_file(pattern: &Pattern, bytes: usize, durable_within: Option<Duration>, reads: bool) {
    let disk = Disk::new();
    let config = StoreConfig {
        bytes: bytes as u64,
        keys: 10_000_000,
        value_size: 64 << 20,
        durable_within,
        ..StoreConfig::default()
    };
    let store = on_disk(&disk, config);
    let mine = bucket(&store, &"o".repeat(pattern.owner));
    let filled = Filled { pattern, bytes, disk, store, mine };
    let reader = reads.then(|| reader(filled.store.clone()));
    let [mut fill, mut anew, mut rest, mut one] = [(); 4].map(|()| Told::default());
    let mut number = 0;
    while !fill.add(filled.set(number..number + pattern.call).await) {
        number += pattern.call;
    }
    filled.check("filled");
    let mut random = fastrand::Rng::with_seed(27);
    for _ in 0..40 {
        let some: Vec<_> = (0..pattern.call).map(|_| random.usize(0..number)).collect();
        anew.add(filled.set(some).await);
    }
    filled.check("written anew");
    for from in (0..number).step_by(MAX_KEYS_AT_ONCE).take(2) {
        rest.add(filled.set(from..number.min(from + MAX_KEYS_AT_ONCE)).await);
    }
    filled.check("written anew at once");
    let most_gone: Vec<_> = (0..number).filter(|number| number % 5 != 0).collect();
    for some in most_gone.iter().take(20) {
        one.add(filled.delete(&[*some]).await);
    }
    for some in most_gone.chunks(MAX_KEYS_AT_ONCE) {
        rest.add(filled.delete(some).await);
    }
    filled.check("with gaps");
    for some in most_gone.chunks(pattern.call).take(200) {
        rest.add(filled.set(some.iter().map(|number| number + number % 3)).await);
    }
    filled.check("filled again");
    let refused = |told: &Told| told.over_file > 0;
    if bytes >= 1 << 20 {
        // What counts is reached before the file has all that it may have.
        assert!(!refused(&fill) && !refused(&anew), "{}: {fill:?}, {anew:?}", pattern.name);
    }
    assert_eq!((one.over_bytes, one.over_file), (0, 0), "a key can always be deleted");
    for some in keys(&filled.mine).await.chunks(10) {
        let gone = |keys: &[String]| filled.mine.change(keys.iter().map(|key| (key.clone(), None)).collect());
        if gone(some).await.is_err() {
            for key in some.chunks(1) {
                assert_eq!(gone(key).await, Ok(1));
            }
        }
    }
    assert_eq!(filled.store.usage().await.unwrap().bytes, 0);
    if let Some((ends, thread)) = reader {
        drop(ends);
        thread.join().unwrap();
    }
    filled.store.close().await;
    filled.check("emptied");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_has_at_most_four_times_the_bytes_whatever_is_written_and_however() {
    for bytes in [64 << 10, 256 << 10, 1 << 20] {
        for pattern in &PATTERNS {
            for durable_within in [None, Some(Duration::from_secs(3600))] {
                stays_in_its_file(pattern, bytes, durable_within, false).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_file_is_emptied_within_its_bound_while_others_read_it() {
    for bytes in [64 << 10, 1 << 20] {
        for pattern in &PATTERNS {
            for durable_within in [None, Some(Duration::from_secs(3600))] {
                stays_in_its_file(pattern, bytes, durable_within, true).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_made_small_is_not_looked_through_again_at_each_refused_write() {
    let disk = Disk::new();
    let config = StoreConfig { bytes: 1 << 20, keys: 1000, ..StoreConfig::default() };
    let store = on_disk(&disk, config.clone());
    let mine = bucket(&store, "a");
    let all = |value: u8| {
        let entry = |number: u32| (format!("{number}"), Some(Bytes::from(vec![value; 1800])));
        (0..400).map(entry).collect::<Vec<_>>()
    };
    mine.change(all(1)).await.unwrap();
    // It has no room for as much again, and has more than it may from now on.
    store.compact().await.unwrap();
    let small = StoreConfig { bytes: 64 << 10, ..config };
    store.configure(small.clone());
    assert!(store.may_pack());
    for _ in 0..2 {
        assert!(matches!(mine.change(all(2)).await, Err(StoreError::File { .. })));
        assert!(!store.may_pack());
    }
    assert_eq!(get(&mine, "399").await.unwrap(), vec![1; 1800]);
    store.configure(small);
    assert!(store.may_pack());
}
