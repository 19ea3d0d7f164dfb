//! `kill -9` of Main at any moment: answered writes are there after the restart.
//!
//! The killed Main is another process: this test again, told by its environment.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "the process that is killed tells what it has done")]

use std::{
    collections::BTreeMap,
    env,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use tokio::task::JoinSet;
use weir_host::{
    Client, Config, ExtensionConfig, Main, MainConfig,
    names::StoreName,
    store::{StoreConfig, StoresConfig},
};

const ROUNDS: usize = 20;

/// Calls under way: one for each key, incrementing its value.
const IN_FLIGHT: usize = 1000;

/// Environment variable with the killed process's storage directory.
const VICTIM: &str = "WEIR_TEST_VICTIM";

#[tokio::test]
async fn after_a_kill_at_any_moment_all_that_storage_answered_is_there() {
    if let Some(directory) = env::var_os(VICTIM) {
        return count_until_killed(directory.as_ref()).await;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut stored = BTreeMap::new();
    for round in 0..ROUNDS {
        // From before the first answer to several answers for each key.
        let acknowledged = kill_after(round * 311, directory.path());
        let main = start(directory.path()).await;
        for key in 0..IN_FLIGHT {
            let value = get(main.client(), key).await;
            let least = acknowledged.get(&key).or(stored.get(&key)).copied().unwrap_or(0);
            // The next value may be written without an answer.
            assert!((least..=least + 1).contains(&value), "round {round}, key {key}: {value}, not {least}");
            stored.insert(key, value);
        }
        main.shutdown().await.unwrap();
    }
    assert!(stored.values().sum::<u64>() > 10_000, "{stored:?}");
}

/// Starts a Main and kills it after this many answers; returns the last answer for each key.
fn kill_after(answers: usize, directory: &Path) -> BTreeMap<usize, u64> {
    let name = std::thread::current().name().unwrap().to_owned();
    let mut victim = Command::new(env::current_exe().unwrap())
        .args([&name, "--exact", "--nocapture"])
        .env(VICTIM, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let mut acknowledged = BTreeMap::new();
    let mut seen = 0;
    for line in lines {
        // The first one follows output of the test harness.
        let line = line.unwrap();
        let Some((_, answer)) = line.split_once("set ") else { continue };
        if let Some((key, value)) = answer.split_once(' ') {
            acknowledged.insert(key.parse().unwrap(), value.parse().unwrap());
        }
        if seen == answers {
            victim.kill().unwrap();
        }
        seen += 1;
    }
    assert!(!victim.wait().unwrap().success());
    assert!(seen > answers, "it ended by itself after {seen} answers");
    acknowledged
}

async fn count_until_killed(directory: &Path) {
    let main = start(directory).await;
    let mut counters = JoinSet::new();
    for key in 0..IN_FLIGHT {
        let client = main.client().clone();
        counters.spawn(async move {
            let mut value = get(&client, key).await;
            loop {
                value += 1;
                let entry = json!({"key": key.to_string(), "value": value});
                client.call("local.storage@1", "set", entry.to_string()).await.unwrap();
                println!("set {key} {value}");
            }
        });
    }
    println!("set all");
    counters.join_all().await;
}

async fn get(client: &Client, key: usize) -> u64 {
    let arguments = json!({"key": key.to_string()}).to_string();
    let answer = client.call("local.storage@1", "get", arguments).await.unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    answer["value"].as_u64().unwrap_or(0)
}

async fn start(directory: &Path) -> Main {
    let mut storage = ExtensionConfig::new("storage".parse().unwrap(), test_guests::path("storage"));
    storage.fulfills = vec!["local.storage@1".parse().unwrap()];
    storage.grants.stores = vec!["storage".parse::<StoreName>().unwrap().into()];
    storage.limits.inbox_messages = 2048;
    let mut main = MainConfig::default();
    main.cache_dir = Some(concat!(env!("CARGO_TARGET_TMPDIR"), "/cache").into());
    main.data_dir = Some(directory.to_owned());
    let mut config = Config::new(main, vec![storage]);
    config.set_section(StoresConfig([("storage".parse().unwrap(), StoreConfig::default())].into()));
    Main::builder(config).start().await.unwrap()
}
