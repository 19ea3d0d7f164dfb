//! Requests that the guest sends, and the time that it has for its own.

use std::time::Duration;

use weir_host::Error;

use crate::{
    language::Language,
    stage::{Stage, restart},
};

pub(super) async fn call(language: &Language) {
    let stage = Stage::new(language).await;
    assert_eq!(stage.calls("other@1 run - 0 echo two  words").await, "ok two  words");
    assert_eq!(stage.calls("other@1 run - 0 echo").await, "ok");
    assert_eq!(stage.calls("other@1 run - 0 asker").await, "ok conformance");
}

pub(super) async fn typed_call(language: &Language) {
    let stage = Stage::new(language).await;
    assert_eq!(stage.told("relay", "40 2").await, "ok 42");
    let wrong = stage.told("relay", "13 2").await;
    assert!(wrong.starts_with("error handler invalid-answer "), "{wrong}");
}

pub(super) async fn named_provider(language: &Language) {
    let stage = Stage::new(language).await;
    assert_eq!(stage.calls("other@1 run other 0 own-name").await, "ok other");
    let wrong = stage.calls("other@1 run main 0 own-name").await;
    assert!(wrong.starts_with("error no-provider ") && wrong.contains("`main`"), "{wrong}");
}

pub(super) async fn call_deadline(language: &Language) {
    let stage = Stage::new(language).await;
    assert_eq!(stage.calls("tester@1 pass - 50 x").await, "error timeout");
    let remaining = remaining(&stage.calls("tester@1 remaining - 20000 x").await);
    assert!((1..=20_000).contains(&remaining), "{remaining}");
    let remaining = self::remaining(&stage.calls("tester@1 remaining - 0 x").await);
    assert!((20_001..=60_000).contains(&remaining), "{remaining}");
}

pub(super) async fn parent_time_is_inherited(language: &Language) {
    let stage = Stage::new(language).await;
    for own in [0, 30_000] {
        let line = format!("tester@1 remaining - {own} x");
        let remaining = stage.ask_within(Duration::from_secs(10), "call", &line).await.unwrap();
        let remaining = self::remaining(&remaining);
        assert!((1..=10_000).contains(&remaining), "{remaining}");
    }
}

fn remaining(outcome: &str) -> u64 {
    outcome.strip_prefix("ok ").and_then(|ms| ms.parse().ok()).unwrap_or_else(|| panic!("`{outcome}`"))
}

pub(super) async fn send_and_response(language: &Language) {
    let mut stage = Stage::new(language).await;
    assert_eq!(stage.told("send", "tester@1 pass - 0 later").await, "ok");
    stage.gate.arrived(1).await;
    assert_eq!(stage.told("echo", "meanwhile").await, "meanwhile");
    stage.gate.open(1);
    assert_eq!(stage.heard("response").await, "ok later");
    assert_eq!(stage.told("send", "tester@1 pass - 50 never").await, "ok");
    assert_eq!(stage.heard("response").await, "error timeout");
}

pub(super) async fn cancel(language: &Language) {
    let stage = Stage::new(language).await;
    assert_eq!(stage.told("cancel", "tester@1 pass - 0 x").await, "ok");
    stage.gate.arrived(1).await;
    // Long before the deadline.
    stage.gate.left(1).await;
    assert_eq!(stage.told("echo", "on").await, "on");
}

pub(super) async fn two_requests_overlap(language: &Language) {
    let stage = Stage::new(language).await;
    let both =
        async { tokio::join!(stage.calls("tester@1 pass - 0 one"), stage.calls("tester@1 pass - 0 two")) };
    let meanwhile = async {
        let arrived = tokio::time::timeout(Duration::from_secs(10), stage.gate.arrived(2)).await;
        stage.gate.open(2);
        arrived.is_ok()
    };
    let ((one, two), together) = tokio::join!(both, meanwhile);
    assert_eq!([one, two], ["ok one", "ok two"]);
    assert!(together, "the second came only after the first");
}

pub(super) async fn handler_ends_at_its_deadline(language: &Language) {
    let mut stage = Stage::with(language, restart).await;
    assert_eq!(stage.ask_within(Duration::from_millis(100), "sleep", "600").await, Err(Error::Timeout));
    assert_eq!(stage.told("echo", "on").await, "on");
    // It would be published by then.
    let slept = tokio::time::timeout(Duration::from_millis(1000), stage.heard("slept")).await;
    assert!(slept.is_err(), "the handler went on");
}

pub(super) async fn context(language: &Language) {
    let stage = Stage::new(language).await;
    let told = stage.ask_within(Duration::from_secs(10), "context", "").await.unwrap();
    let [own, sender, remaining] = told.split(' ').collect::<Vec<_>>().try_into().unwrap();
    assert_eq!([own, sender], ["conformance", "main"]);
    let remaining: u64 = remaining.parse().unwrap();
    assert!((1..=10_000).contains(&remaining), "{remaining}");
    let told = stage.other("call conformance@1 context x").await.unwrap();
    assert!(told.starts_with("conformance other "), "{told}");
}
