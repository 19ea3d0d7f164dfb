//! Events that the guest publishes and hears.

use serde_json::{Value, json};
use weir_host::config::QueuePolicy;

use crate::{
    language::Language,
    stage::{Stage, guest, until},
};

pub(super) async fn publish(language: &Language) {
    let mut stage = Stage::new(language).await;
    assert_eq!(stage.told("publish", "conformance.out.news two  words").await, "ok 1 0 0");
    let event = stage.published("news").await;
    assert_eq!((&*event.sender, &*event.payload), ("conformance", &b"two  words"[..]));
    let refused = stage.told("publish", "conformance.secret x").await;
    assert!(refused.starts_with("error permission-denied "), "{refused}");
}

pub(super) async fn publish_to(language: &Language) {
    let stage = Stage::new(language).await;
    let none = stage.told("publish-to", "other conformance.out.full for you").await;
    assert!(none.starts_with("error no-provider "), "{none}");
    stage.other("subscribe conformance.out.full").await.unwrap();
    assert_eq!(stage.told("publish-to", "other conformance.out.full for you").await, "ok 1 0 0");
    until(|| stage.main.control().status("other").unwrap().inbox_messages == 0).await;
    assert_eq!(stage.other("heard").await.unwrap(), "event:  0 0 for you");
}

pub(super) async fn event(language: &Language) {
    let mut stage = Stage::new(language).await;
    for payload in ["sunny", "two  words"] {
        stage.main.client().publish("conformance.in.news", payload).await.unwrap();
    }
    assert_eq!(stage.heard("heard").await, "conformance.in.news 1 0 new main sunny");
    assert_eq!(stage.heard("heard").await, "conformance.in.news 2 0 new main two  words");
}

/// While the guest waits for room in a queue, it receives nothing.
pub(super) async fn lost_events(language: &Language) {
    let mut stage = Stage::with(language, |config| {
        config.queues.get_mut("conformance-out").unwrap().when_full = QueuePolicy::Block;
    })
    .await;
    stage.put("conformance-out", "fills it").await;
    let put = stage.told("put", "conformance-out 0 waits");
    let meanwhile = async {
        until(|| stage.queue("conformance-out").blocked == 1).await;
        for number in 1..=5 {
            stage.main.client().publish("conformance.in.news", number.to_string()).await.unwrap();
        }
        stage.main.client().queue("conformance-out").unwrap().take().await.unwrap().done();
    };
    let (put, ()) = tokio::join!(put, meanwhile);
    assert_eq!(put, "ok");
    // There is room for three.
    for (number, lost) in [(3, 2), (4, 0), (5, 0)] {
        let heard = format!("conformance.in.news {number} {lost} new main {number}");
        assert_eq!(stage.heard("heard").await, heard);
    }
}

pub(super) async fn retained_event(language: &Language) {
    let mut stage = Stage::with(language, |config| guest(config).autostart = false).await;
    for payload in ["old", "kept"] {
        stage.main.client().publish("conformance.in.kept", payload).await.unwrap();
    }
    stage.main.control().start("conformance").await.unwrap();
    assert_eq!(stage.heard("heard").await, "conformance.in.kept 2 0 retained main kept");
    stage.main.client().publish("conformance.in.kept", "new").await.unwrap();
    assert_eq!(stage.heard("heard").await, "conformance.in.kept 3 0 new main new");
}

pub(super) async fn typed_event(language: &Language) {
    let mut stage = Stage::new(language).await;
    for payload in [r#"{"left":"x"}"#, r#"{"left":1,"right":2}"#] {
        stage.main.client().publish("conformance.numbers", payload).await.unwrap();
    }
    let sum: Value = serde_json::from_str(&stage.heard("sum").await).unwrap();
    assert_eq!(sum, json!({ "sum": 3 }));
    let account = stage.account();
    let is_told = account.lines().any(|line| line.starts_with("Warn ") || line.starts_with("Error "));
    assert!(is_told, "an event that does not decode is not logged: {account}");
}

pub(super) async fn subscribe_at_run_time(language: &Language) {
    let mut stage = Stage::new(language).await;
    for pattern in ["conformance.more.one", "conformance.more.*"] {
        assert_eq!(stage.told("subscribe", pattern).await, "ok");
        let receipt = stage.main.client().publish("conformance.more.one", "x").await.unwrap();
        assert_eq!(receipt.delivered, 1);
        let heard = stage.heard("heard").await;
        let words: Vec<_> = heard.split(' ').collect();
        assert!(matches!(words[..], ["conformance.more.one", _, "0", "new", "main", "x"]), "{heard}");
        assert_eq!(stage.told("unsubscribe", pattern).await, "ok");
        let receipt = stage.main.client().publish("conformance.more.one", "x").await.unwrap();
        assert_eq!(receipt.delivered, 0);
    }
    let refused = stage.told("subscribe", "secret.>").await;
    assert!(refused.starts_with("error permission-denied "), "{refused}");
}
