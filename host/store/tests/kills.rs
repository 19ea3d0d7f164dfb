//! `kill -9` of a process that writes, at any moment: what it answered is there, and nothing is half there.
//!
//! The killed process is this test again, told by its environment. `WEIR_KILLS=1000` kills as often.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test, and a process that tells what it has done"
)]

use std::{
    collections::BTreeMap,
    env,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use bytes::Bytes;
use tokio::{runtime::Handle, task::JoinSet};
use weir_store::{Bucket, ENTRY_BYTES, StoreConfig, Stores, StoresConfig};

const KILLS: u64 = 10;

/// Writers, each of a key of its own.
const WRITERS: u64 = 32;

const VICTIM: &str = "WEIR_TEST_VICTIM";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_at_any_moment_all_that_was_answered_is_there_and_whole() {
    if let Some(dir) = env::var_os(VICTIM) {
        return write_until_killed(dir.into()).await;
    }
    let kills = env::var("WEIR_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let (mut stored, mut answers) = (BTreeMap::new(), 0);
    for kill in 0..kills {
        let acknowledged = kill_after(kill % 97, dir.path());
        let stores = open(dir.path().into());
        let bucket = stores.bucket_of("a", "s", true).unwrap();
        let mut bytes = 0;
        for writer in 0..WRITERS {
            let least = acknowledged.get(&writer).or(stored.get(&writer)).copied().unwrap_or(0);
            let value = number(&bucket, writer).await;
            assert!((least..=least + 1).contains(&value), "kill {kill}, key {writer}: {value}, not {least}");
            bytes += match value {
                0 => 0,
                // Its owner has one letter.
                value => counted((1 + key(writer).len() + content(value).len()) as u64 + ENTRY_BYTES),
            };
            answers += value - stored.get(&writer).copied().unwrap_or(0);
            stored.insert(writer, value);
        }
        let usage = bucket.store().usage().await.unwrap();
        assert_eq!(usage.bytes, bytes, "kill {kill}");
        stores.close().await;
    }
    println!("{kills} kills, {answers} writes");
    assert!(answers > kills * 10, "{answers}");
}

/// Starts a writer and kills it after this many answers; returns the last one of each key.
fn kill_after(answers: u64, dir: &Path) -> BTreeMap<u64, u64> {
    let name = std::thread::current().name().unwrap().to_owned();
    let mut victim = Command::new(env::current_exe().unwrap())
        .args([&name, "--exact", "--nocapture"])
        .env(VICTIM, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let (mut acknowledged, mut seen) = (BTreeMap::new(), 0);
    for line in lines {
        let line = line.unwrap();
        let Some((_, answer)) = line.split_once("set ") else { continue };
        let Some((key, value)) = answer.split_once(' ') else { continue };
        acknowledged.insert(key.parse().unwrap(), value.parse().unwrap());
        if seen == answers {
            victim.kill().unwrap();
        }
        seen += 1;
    }
    assert!(!victim.wait().unwrap().success());
    assert!(seen > answers, "it ended by itself after {seen} answers");
    acknowledged
}

async fn write_until_killed(dir: PathBuf) {
    let stores = Arc::new(open(dir));
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let bucket = stores.bucket_of("a", "s", true).unwrap();
        writers.spawn(async move {
            let mut value = number(&bucket, writer).await;
            loop {
                value += 1;
                bucket.change(vec![(key(writer), Some(content(value)))]).await.unwrap();
                println!("set {writer} {value}");
            }
        });
    }
    writers.join_all().await;
}

fn open(dir: PathBuf) -> Stores {
    let stores = Stores::new(Handle::current(), Arc::new(|_| {}));
    let config: StoresConfig = [("s".parse().unwrap(), StoreConfig::default())].into_iter().collect();
    stores.configure(Some(&dir), &config);
    stores
}

/// What an entry of so many bytes counts.
fn counted(bytes: u64) -> u64 {
    if bytes <= 2048 { bytes } else { bytes.max(4096).next_power_of_two() }
}

fn key(writer: u64) -> String {
    format!("key-{writer}")
}

/// A number, and bytes of it: more than a page now and then. Half of it would show.
fn content(value: u64) -> Bytes {
    let rest = vec![value.to_le_bytes()[0]; usize::try_from(value % 7).unwrap() * 1500];
    [&value.to_le_bytes()[..], &rest].concat().into()
}

async fn number(bucket: &Bucket, writer: u64) -> u64 {
    let Some(found) = bucket.get(key(writer), u64::MAX).await.unwrap() else { return 0 };
    let value = u64::from_le_bytes(*found.first_chunk().unwrap());
    assert_eq!(found, content(value), "it is whole");
    value
}
