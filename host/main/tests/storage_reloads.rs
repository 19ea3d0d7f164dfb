//! Storage reloaded again and again under writes: answered writes are there, and writers notice only a pause.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinSet};
use weir_host::{
    Client, Config, ExtensionConfig, Main, MainConfig,
    config::ReloadMode,
    control::ExtensionState,
    names::StoreName,
    store::{StoreConfig, StoresConfig},
};

const RELOADS: u64 = 20;

/// Writers, each writing one key after the other.
const WRITERS: usize = 64;

const BETWEEN: u64 = 300;

const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test]
async fn what_storage_answered_during_twenty_reloads_is_all_there() {
    let directory = tempfile::tempdir().unwrap();
    let main = start(directory.path()).await;
    let goes_on = Arc::new(AtomicBool::new(true));
    let (count, mut counted) = watch::channel(0_u64);
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        writers.spawn(write(main.client().clone(), writer, goes_on.clone(), count.clone()));
    }
    drop(count);

    let mut during = 0;
    for reload in 0..RELOADS {
        let before = *counted.borrow();
        main.control().reload_extension("storage").await.unwrap();
        let after = *counted.borrow();
        during += after - before;
        counted.wait_for(|count| *count >= after + BETWEEN).await.unwrap();
        assert_eq!(main.control().status("storage").unwrap().restarts, reload + 1);
    }
    goes_on.store(false, Ordering::Relaxed);
    let mut acknowledged = 0;
    for (writer, written) in writers.join_all().await {
        for number in 0..written {
            let answer = call(main.client(), "get", &json!({"key": key(writer, number)})).await;
            assert_eq!(answer["value"], json!(number), "of {}", key(writer, number));
        }
        acknowledged += written;
    }
    assert_eq!(acknowledged, *counted.borrow());
    assert!(during > RELOADS, "storage was written to during the reloads: {during} times");
    let status = main.control().status("storage").unwrap();
    assert_eq!(
        (status.state, status.failures, status.inbox_messages),
        (ExtensionState::Ready, Vec::new(), 0)
    );
    assert_eq!(main.client().waiters(), 0);
}

async fn start(directory: &std::path::Path) -> Main {
    let mut storage = ExtensionConfig::new("storage".parse().unwrap(), test_guests::path("storage"));
    storage.fulfills = vec!["local.storage@1".parse().unwrap()];
    storage.grants.stores = vec!["storage".parse::<StoreName>().unwrap().into()];
    storage.limits.ready_timeout = PATIENCE;
    storage.limits.stop_timeout = PATIENCE;
    assert_eq!(storage.reload, ReloadMode::StopFirst, "right for one that writes");
    let mut main = MainConfig::default();
    main.request_timeout = PATIENCE;
    main.data_dir = Some(directory.to_owned());
    let mut config = Config::new(main, vec![storage]);
    config.set_section(StoresConfig([("storage".parse().unwrap(), StoreConfig::default())].into()));
    Main::builder(config).start().await.unwrap()
}

/// Sets one key after the other while `goes_on`; returns how many.
async fn write(
    client: Client,
    writer: usize,
    goes_on: Arc<AtomicBool>,
    count: watch::Sender<u64>,
) -> (usize, u64) {
    let mut written = 0;
    while goes_on.load(Ordering::Relaxed) {
        call(&client, "set", &json!({"key": key(writer, written), "value": written})).await;
        written += 1;
        count.send_modify(|count| *count += 1);
    }
    (writer, written)
}

fn key(writer: usize, number: u64) -> String {
    format!("{writer}-{number}")
}

async fn call(client: &Client, operation: &str, arguments: &Value) -> Value {
    let answer = client.call("local.storage@1", operation, arguments.to_string()).await.unwrap();
    serde_json::from_slice(&answer).unwrap()
}
