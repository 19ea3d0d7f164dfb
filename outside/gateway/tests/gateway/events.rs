//! Subscriptions: patterns, retained values, aliases, and their end.

use serde_json::{Value, json};

use crate::{
    app::{App, code},
    support::{Stage, becomes},
};

const GATEWAY: &str = "
[gateway.alias]
'device.onNews' = { topic = 'news.now' }
'device.onOther' = { topic = 'other' }
'device.secret' = 'secret@1/tell'
";

const FILE: &str = "
[topic.'kept.a']
retain = true
[topic.'kept.b']
retain = true
[topic.'kept.n']
retain = true

[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1']
publishes = ['news.>', 'kept.>']
subscribes = ['news.>', 'kept.>']
limits.subscriptions = 8
limits.in-flight = 64
limits.message-rate = 1_000_000
";

async fn subscribe(app: &mut App, pattern: &str) {
    let subscribed = app.call("events.subscribe", json!({ "pattern": pattern })).await;
    assert_eq!(subscribed, Ok(json!({ "pattern": pattern })));
}

/// The next message, which is an event: its pattern, topic, payload, and whether it was retained.
async fn event(app: &mut App) -> (String, String, Value, bool) {
    let message = app.next().await;
    assert_eq!(message["method"], "events.event", "{message}");
    let text = |key: &str| message["params"][key].as_str().unwrap().to_owned();
    (
        text("pattern"),
        text("topic"),
        message["params"]["payload"].clone(),
        message["params"]["retained"] == true,
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_comes_with_its_topic_number_and_sender() {
    let stage = Stage::new("", FILE).await;
    let (mut app, mut other) = (stage.app("app:polite").await, stage.app("app:polite").await);
    subscribe(&mut app, "news.*").await;
    let sent = other.call("events.publish", json!({ "topic": "news.a", "payload": { "n": 1.50 } })).await;
    assert_eq!(sent, Ok(json!({ "delivered": 1, "shed": 0, "refused": 0 })));
    assert_eq!(
        app.text().await,
        r#"{"jsonrpc":"2.0","method":"events.event","params":{"pattern":"news.*","topic":"news.a","sequence":1,"retained":false,"sender":"app:polite","payload":{"n":1.5}}}"#
    );
    for (payload, comes) in [
        (json!({}), Value::Null),
        (json!({ "payload": { "$base64": "AP8B" } }), json!({ "$base64": "AP8B" })),
        (json!({ "payload": null }), Value::Null),
        (json!({ "payload": "text" }), json!("text")),
    ] {
        let mut params = payload;
        params["topic"] = json!("news.b");
        other.call("events.publish", params).await.unwrap();
        assert_eq!(event(&mut app).await.2, comes);
    }
    assert_eq!(
        code(&other.call("events.publish", json!({ "topic": "no.b" })).await),
        (-32011, "permission-denied")
    );
    assert_eq!(code(&other.call("events.publish", json!({ "topic": "news.*" })).await), (-32602, "invalid"));
    app.leave().await;
    other.leave().await;
    stage.sessions_become(0).await;
    assert_eq!(stage.main.client().publish("news.a", "1").await.unwrap().delivered, 0);
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_patterns_bring_an_event_twice_and_the_same_pattern_brings_it_once() {
    let stage = Stage::new("", FILE).await;
    let mut app = stage.app("app:polite").await;
    for pattern in ["news.*", "news.a", "news.*"] {
        subscribe(&mut app, pattern).await;
    }
    stage.main.client().publish("news.a", "1").await.unwrap();
    let mut patterns = [event(&mut app).await.0, event(&mut app).await.0];
    patterns.sort_unstable();
    assert_eq!(patterns, ["news.*", "news.a"]);
    let ended = app.call("events.unsubscribe", json!({ "pattern": "news.*" })).await;
    assert_eq!(ended, Ok(json!({ "pattern": "news.*" })));
    stage.main.client().publish("news.a", "2").await.unwrap();
    assert_eq!(event(&mut app).await.0, "news.a");
    assert_eq!(
        code(&app.call("events.unsubscribe", json!({ "pattern": "news.*" })).await),
        (-32602, "invalid")
    );
    app.is_served().await;
    assert!(app.seen.is_empty(), "{:?}", app.seen);
}

#[tokio::test(flavor = "multi_thread")]
async fn retained_values_come_first_to_each_app_and_a_shared_subscription_repeats_none() {
    let stage = Stage::new("", FILE).await;
    let mut first = stage.app("app:polite").await;
    for topic in ["kept.a", "kept.b"] {
        stage.main.client().publish(topic, "0").await.unwrap();
    }
    subscribe(&mut first, "kept.>").await;
    for _ in 0..2 {
        assert!(event(&mut first).await.3);
    }
    stage.main.client().publish("kept.a", "1").await.unwrap();
    assert_eq!(event(&mut first).await, ("kept.>".into(), "kept.a".into(), json!(1), false));
    let mut second = stage.app("app:polite").await;
    subscribe(&mut second, "kept.>").await;
    let mut seen = [event(&mut second).await, event(&mut second).await];
    seen.sort_by(|one, other| one.1.cmp(&other.1));
    assert_eq!(
        seen.map(|(_, topic, payload, retained)| (topic, payload, retained)),
        [("kept.a".into(), json!(1), true), ("kept.b".into(), json!(0), true)]
    );
    stage.main.client().publish("kept.b", "2").await.unwrap();
    for app in [&mut first, &mut second] {
        assert_eq!(event(app).await, ("kept.>".into(), "kept.b".into(), json!(2), false));
        app.is_served().await;
        assert!(app.seen.is_empty(), "{:?}", app.seen);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_event_comes_once_and_in_order_however_it_meets_the_subscription() {
    let stage = Stage::new("", FILE).await;
    let mut app = stage.app("app:polite").await;
    for round in 0..60_u64 {
        let (before, client) = (round * 20, stage.main.client().clone());
        let publisher = tokio::spawn(async move {
            for number in before + 1..=before + 20 {
                client.publish("kept.n", number.to_string()).await.unwrap();
            }
        });
        subscribe(&mut app, "kept.*").await;
        publisher.await.unwrap();
        let mut last = None;
        while last != Some(before + 20) {
            let (_, _, payload, is_retained) = event(&mut app).await;
            let number = payload.as_u64().unwrap();
            // Only the first is a retained one, and none is missing after it.
            match last {
                None => assert!(is_retained || round == 0, "{number}"),
                Some(last) => {
                    assert!(number == last + 1 && !is_retained, "{number} after {last}, {is_retained}")
                }
            }
            last = Some(number);
        }
        app.call("events.unsubscribe", json!({ "pattern": "kept.*" })).await.unwrap();
        assert!(app.seen.is_empty(), "{:?}", app.seen);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alias_of_a_topic_is_heard_under_its_name_until_it_is_ended() {
    let stage = Stage::new(GATEWAY, FILE).await;
    let mut app = stage.app("app:polite").await;
    for (listen, publishes) in [(true, 1), (true, 1), (false, 0), (false, 0), (true, 1)] {
        let answer = app.call("device.onNews", json!({ "listen": listen })).await;
        assert_eq!(answer, Ok(json!({ "listening": listen, "event": "device.onNews" })));
        let receipt = stage.main.client().publish("news.now", "{\"a\":1}").await.unwrap();
        assert_eq!(receipt.delivered, publishes);
        if listen {
            assert_eq!(app.text().await, r#"{"jsonrpc":"2.0","method":"device.onNews","params":{"a":1}}"#);
        }
    }
    // Beside a subscription of its own.
    subscribe(&mut app, "news.now").await;
    stage.main.client().publish("news.now", "[2]").await.unwrap();
    let mut methods = [app.next().await, app.next().await].map(|message| message["method"].to_string());
    methods.sort_unstable();
    assert_eq!(methods, ["\"device.onNews\"", "\"events.event\""]);
    for params in [json!({}), json!({ "listen": 1 }), json!([true])] {
        assert_eq!(code(&app.call("device.onNews", params).await), (-32602, "invalid"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alias_that_is_not_granted_looks_like_one_that_is_not_there() {
    let stage = Stage::new(GATEWAY, FILE).await;
    let mut app = stage.app("app:polite").await;
    for params in [json!({ "listen": true }), json!({ "listen": false }), json!({}), json!([true])] {
        for method in ["device.onOther", "device.secret"] {
            let [here, nowhere] = [method, "device.nowhere"];
            let here = app.call(here, params.clone()).await.unwrap_err().to_string();
            let nowhere = app.call(nowhere, params.clone()).await.unwrap_err().to_string();
            assert_eq!(here.replace(method, "device.nowhere"), nowhere);
            assert!(nowhere.contains("-32601"), "{nowhere}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_subscriptions_are_refused_beyond_the_limit_and_end_with_the_app() {
    let stage = Stage::new("", FILE).await;
    let (mut app, mut polite) = (stage.app("app:polite").await, stage.app("app:polite").await);
    let mut granted = 0;
    for number in 0..10_000 {
        match app.call("events.subscribe", json!({ "pattern": format!("news.{number}") })).await {
            Ok(_) => granted += 1,
            Err(error) => assert_eq!(error["message"], "limit `subscriptions` exceeded: 9 of 8"),
        }
    }
    assert_eq!(granted, 8);
    polite.is_served().await;
    app.leave().await;
    becomes(|| stage.main.control().topics().subscriptions.is_empty(), || "subscriptions".to_owned()).await;
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_has_its_share_of_all_patterns_and_no_more() {
    let peers = |names: &[&str]| -> String {
        let peer = |name: &&str| {
            format!(
                "[peer.'{name}']\ntokens = ['HASH']\nwants = ['echo@1']\nsubscribes = ['>']\n\
                 limits.sessions = 64\nlimits.message-rate = 1_000_000\n"
            )
        };
        names.iter().map(peer).collect()
    };
    let file = peers(&["app:greedy", "app:polite"])
        + "\n[peer.'app:large']\ntokens = ['HASH']\n\
        subscribes = ['>']\nlimits.message-rate = 1_000_000\nlimits.subscriptions = 300\n";
    let stage = Stage::new("", &file).await;
    let mut granted = 0;
    let mut greedy = Vec::new();
    for session in 0..8 {
        let mut app = stage.app("app:greedy").await;
        for number in 0..64 {
            match app.call("events.subscribe", json!({ "pattern": format!("g.{session}.{number}") })).await {
                Ok(_) => granted += 1,
                Err(error) => assert_eq!(error["message"], "limit `patterns` exceeded: 257 of 256"),
            }
        }
        greedy.push(app);
    }
    assert_eq!(granted, 256);
    // What it has already it may have again, in another session.
    subscribe(&mut greedy[7], "g.0.0").await;
    let mut polite = stage.app("app:polite").await;
    for number in 0..64 {
        subscribe(&mut polite, &format!("p.{number}")).await;
    }
    // One session has what the operator gives it.
    let mut large = stage.app("app:large").await;
    for number in 0..300 {
        subscribe(&mut large, &format!("l.{number}")).await;
    }
    // A pattern that nobody of the name has any more makes room.
    greedy.remove(0).leave().await;
    becomes(
        || stage.main.control().topics().subscriptions.len() == 192 + 1 + 64 + 300,
        || format!("{}", stage.main.control().topics().subscriptions.len()),
    )
    .await;
    for number in 0..63 {
        let mut refused = 0;
        while let Err(_left) =
            greedy[6].call("events.subscribe", json!({ "pattern": format!("g.{number}") })).await
        {
            refused += 1;
            assert!(refused < 100, "the share is given back");
        }
    }
    let over = greedy[5].call("events.subscribe", json!({ "pattern": "g.over" })).await;
    assert_eq!(code(&over), (-32007, "limit-exceeded"));
}
