//! What apps lose that read slowly, and that they know how much.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{app::App, support::Stage};

const FILE: &str = "
[topic.'news.kept']
retain = true

[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1']
publishes = ['news.>']
subscribes = ['news.>']
limits.message-rate = 1_000_000
limits.stall-timeout = '20s'

[peer.'app:small']
tokens = ['HASH']
subscribes = ['news.>']
limits.message-size = '1 KiB'
";

/// More than the buffer, the socket and the gateway hold of events of this size.
const EVENTS: u64 = 4000;

async fn publish_one(stage: &Stage, number: u64, topics: u64) {
    let (topic, payload) =
        (format!("news.{}", number % topics), json!([number, "x".repeat(1000)]).to_string());
    stage.main.client().publish(&topic, payload).await.unwrap();
}

async fn publish(stage: &Stage, topics: u64) {
    for number in 0..EVENTS {
        publish_one(stage, number, topics).await;
        // The gateway keeps up: what is lost is lost for the app alone.
        if number % 64 == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    stage.main.client().publish("news.last", "\"last\"").await.unwrap();
}

/// Reads until the last event of each pattern: events and losses by pattern.
async fn read(app: &mut App, patterns: &[&str]) -> Vec<(u64, u64)> {
    let mut counts = vec![(0, 0); patterns.len()];
    let mut ended = 0;
    while ended < patterns.len() {
        let message = app.next().await;
        let at = patterns.iter().position(|pattern| message["params"]["pattern"] == *pattern).unwrap();
        match message["method"].as_str().unwrap() {
            "events.lost" => counts[at].1 += message["params"]["lost"].as_u64().unwrap(),
            _ if message["params"]["topic"] == "news.last" => ended += 1,
            _ => counts[at].0 += 1,
        }
    }
    counts
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_app_knows_how_many_of_the_oldest_it_lost_for_each_pattern() {
    for policy in ["drop-oldest", "latest"] {
        let stage = Stage::new(&format!("when-slow = '{policy}'\nbuffer = '64 KiB'"), FILE).await;
        let (mut slow, mut polite) = (stage.app("app:polite").await, stage.app("app:polite").await);
        let patterns = ["news.>", "news.*"];
        for pattern in patterns {
            slow.call("events.subscribe", json!({ "pattern": pattern })).await.unwrap();
        }
        publish(&stage, 10).await;
        polite.is_served().await;
        let counts = read(&mut slow, &patterns).await;
        for (received, lost) in &counts {
            assert_eq!(received + lost, EVENTS, "{policy}: {counts:?}");
            assert!(*lost > EVENTS / 4, "{policy}: {counts:?}");
        }
        let shed: u64 = stage
            .main
            .peers()
            .list()
            .iter()
            .filter(|peer| peer.name.as_str() == "app:polite")
            .map(|peer| peer.counts.shed)
            .sum();
        assert_eq!(shed, counts.iter().map(|(_, lost)| lost).sum::<u64>());
        slow.is_served().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_latest_a_slow_app_has_the_last_of_each_topic() {
    let stage = Stage::new("when-slow = 'latest'\nbuffer = '1 MiB'", FILE).await;
    let mut slow = stage.app("app:polite").await;
    slow.call("events.subscribe", json!({ "pattern": "news.>" })).await.unwrap();
    publish(&stage, 10).await;
    let mut last = vec![0; 10];
    loop {
        let message = slow.next().await;
        if message["params"]["topic"] == "news.last" {
            break;
        }
        if message["method"] == "events.event" {
            let number = message["params"]["payload"][0].as_u64().unwrap();
            last[usize::try_from(number % 10).unwrap()] = number;
        }
    }
    assert_eq!(last, (EVENTS - 10..EVENTS).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn with_close_a_slow_app_is_closed_and_others_miss_nothing() {
    let stage = Stage::new("when-slow = 'close'\nbuffer = '64 KiB'", FILE).await;
    let (mut slow, mut polite) = (stage.app("app:polite").await, stage.app("app:polite").await);
    for app in [&mut slow, &mut polite] {
        app.call("events.subscribe", json!({ "pattern": "news.>" })).await.unwrap();
    }
    for number in 0..EVENTS {
        publish_one(&stage, number, 10).await;
        // It keeps up, however busy the machine is.
        let heard = polite.next().await;
        assert_eq!(
            (&heard["method"], heard["params"]["payload"][0].as_u64()),
            (&json!("events.event"), Some(number))
        );
    }
    // Its end is not waited for. It finds the reason where it reads again.
    stage.sessions_become(1).await;
    polite.is_served().await;
    polite.leave().await;
    stage.main.shutdown().await.unwrap();
    assert_eq!(slow.closed().await, (4000, "slow".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_is_closed_for_being_slow_hears_so_if_it_reads_in_time() {
    let stage = Stage::new("when-slow = 'close'\nbuffer = '4 KiB'", FILE).await;
    let mut slow = stage.app("app:polite").await;
    slow.call("events.subscribe", json!({ "pattern": "news.>" })).await.unwrap();
    let client = stage.main.client().clone();
    let publishing = tokio::spawn(async move {
        // More at once than the buffer holds.
        for _ in 0..10_000 {
            if client.publish("news.a", "x".repeat(1000)).await.unwrap().delivered == 0 {
                break;
            }
        }
    });
    assert_eq!(slow.closed().await, (4000, "slow".to_owned()));
    publishing.await.unwrap();
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_over_the_apps_size_is_lost_and_counted() {
    let stage = Stage::new("", FILE).await;
    let mut app = stage.app("app:small").await;
    app.call("events.subscribe", json!({ "pattern": "news.*" })).await.unwrap();
    for payload in ["1".to_owned(), "x".repeat(1025), "x".repeat(9000), "2".to_owned()] {
        stage.main.client().publish("news.a", payload).await.unwrap();
    }
    let mut seen = Vec::new();
    for _ in 0..3 {
        let message = app.next().await;
        seen.push(match message["method"].as_str().unwrap() {
            "events.lost" => json!({ "lost": message["params"]["lost"] }),
            _ => message["params"]["payload"].clone(),
        });
    }
    assert_eq!(Value::from(seen), json!([1, { "lost": 2 }, 2]));
    // A retained one, too.
    stage.main.client().publish("news.kept", "x".repeat(9000)).await.unwrap();
    let mut late = stage.app("app:small").await;
    late.call("events.subscribe", json!({ "pattern": "news.kept" })).await.unwrap();
    stage.main.client().publish("news.kept", "3").await.unwrap();
    assert_eq!(late.next().await["params"]["lost"], 1);
    assert_eq!(late.next().await["params"]["payload"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_app_knows_what_the_gateway_itself_could_not_keep() {
    let stage = Stage::new("", FILE).await;
    let mut apps = Vec::new();
    for _ in 0..3 {
        let mut app = stage.app("app:polite").await;
        app.call("events.subscribe", json!({ "pattern": "news.>" })).await.unwrap();
        apps.push(app);
    }
    // With nobody slow but the gateway: as fast as Main can.
    let payload = bytes::Bytes::from(json!(["x".repeat(30_000)]).to_string());
    for _ in 0..EVENTS {
        stage.main.client().publish("news.a", payload.clone()).await.unwrap();
    }
    stage.main.client().publish("news.last", "1").await.unwrap();
    for app in &mut apps {
        let [(received, lost)] = read(app, &["news.>"]).await[..] else { panic!() };
        assert_eq!(received + lost, EVENTS);
    }
}
