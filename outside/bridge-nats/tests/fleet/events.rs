//! Events that cross: which, of whom, and what is told of losses.

use std::time::Duration;

use weir_peer::{Event, Peer, Subscription};

use super::{
    contracts::start,
    node::{Node, Plan},
    process::{PATIENCE, until},
    server::Server,
};

/// A node that exports `news.>`.
fn publisher(export: &str) -> Plan {
    Plan {
        name: "hall".to_owned(),
        app: "publishes = [\">\"]".to_owned(),
        peer: "subscribes = [{ topic = \">\", messages = 10_000, bytes = \"8 MiB\" }]".to_owned(),
        bridge: format!("[export]\n{export}"),
        ..Plan::default()
    }
}

/// A node that imports `news.>`.
fn listener(name: &str, import: &str) -> Plan {
    Plan {
        name: name.to_owned(),
        app: "subscribes = [{ topic = \">\", messages = 10_000, bytes = \"8 MiB\" }]".to_owned(),
        peer: "publishes = [\"news.>\"]".to_owned(),
        bridge: format!("[import]\n{import}"),
        ..Plan::default()
    }
}

async fn next(events: &mut Subscription) -> Event {
    tokio::time::timeout(PATIENCE, events.next()).await.expect("an event comes").unwrap()
}

/// Publishes on `news.begin` until the other side hears it.
async fn until_heard(publisher: &Peer, events: &mut Subscription) {
    until("an event crosses", async || {
        publisher.publish("news.begin", "").await.unwrap();
        tokio::time::timeout(Duration::from_millis(50), events.next()).await.ok().map(drop)
    })
    .await;
    // What was published meanwhile.
    while tokio::time::timeout(Duration::from_millis(200), events.next()).await.is_ok() {}
}

async fn ready(nodes: &[&Node]) {
    for node in nodes {
        node.until_bridge_says(" ready").await;
    }
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn only_the_events_that_both_files_list_cross() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let hall =
        start(directory.path(), &publisher("topics.\"news.>\" = { senders = [\"app:test\"] }"), &server);
    let kitchen =
        start(directory.path(), &listener("kitchen", "topics.\"news.*\" = { from = [\"hall\"] }"), &server);
    let attic =
        start(directory.path(), &listener("attic", "topics.\"news.>\" = { from = [\"cellar\"] }"), &server);
    ready(&[&hall, &kitchen, &attic]).await;
    let publisher = hall.client().await.peer().await;
    let (near, far) = (kitchen.client().await.peer().await, attic.client().await.peer().await);
    let (mut heard, mut not_heard) = (near.subscribe(">").await.unwrap(), far.subscribe(">").await.unwrap());
    until_heard(&publisher, &mut heard).await;
    let payload = vec![0, 255, b'\n'];
    for topic in ["news.today", "other", "news.a.b", "news.end"] {
        publisher.publish(topic, payload.clone()).await.unwrap();
    }
    for topic in ["news.today", "news.end"] {
        let event = next(&mut heard).await;
        assert_eq!((&*event.topic, &*event.sender, event.lost), (topic, "node:kitchen", 0));
        assert_eq!(event.payload, payload);
    }
    assert!(tokio::time::timeout(Duration::from_millis(200), not_heard.next()).await.is_err());
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn events_of_others_than_the_listed_senders_stay() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let export =
        "topics.\"news.>\" = { senders = [\"somebody\"] }\ntopics.\"open.>\" = { senders = [\"*\"] }";
    let hall = start(directory.path(), &publisher(export), &server);
    let mut plan = listener("kitchen", "topics.\">\" = { from = [\"*\"] }");
    plan.peer = "publishes = [\">\"]".to_owned();
    let kitchen = start(directory.path(), &plan, &server);
    ready(&[&hall, &kitchen]).await;
    let publisher = hall.client().await.peer().await;
    let listener = kitchen.client().await.peer().await;
    let mut heard = listener.subscribe(">").await.unwrap();
    publisher.publish("news.secret", "").await.unwrap();
    publisher.publish("open.end", "").await.unwrap();
    assert_eq!(next(&mut heard).await.topic, "open.end");
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn events_that_are_lost_while_nats_is_away_are_seen_in_the_next_one() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Server::start(directory.path(), "").await;
    let hall = start(directory.path(), &publisher("topics.\"news.>\" = { senders = [\"*\"] }"), &server);
    let kitchen =
        start(directory.path(), &listener("kitchen", "topics.\"news.>\" = { from = [\"*\"] }"), &server);
    ready(&[&hall, &kitchen]).await;
    let publisher = hall.client().await.peer().await;
    let listener = kitchen.client().await.peer().await;
    let mut heard = listener.subscribe("news.>").await.unwrap();
    until_heard(&publisher, &mut heard).await;
    publisher.publish("news.count", "1").await.unwrap();
    assert_eq!(next(&mut heard).await.payload, "1");
    server.kill();
    hall.until_bridge_says("NATS is away").await;
    for number in 2..=8 {
        publisher.publish("news.count", number.to_string()).await.unwrap();
    }
    server.start_again().await;
    until("both are there again", async || {
        let is_ready = |node: &Node| node.bridge_said().matches(" ready").count() >= 2;
        (is_ready(&hall) && is_ready(&kitchen)).then_some(())
    })
    .await;
    publisher.publish("news.count", "9").await.unwrap();
    let event = next(&mut heard).await;
    assert_eq!((event.payload, event.lost), ("9".into(), 7));
    publisher.publish("news.count", "10").await.unwrap();
    assert_eq!(next(&mut heard).await.lost, 0);
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn a_node_that_comes_later_gets_the_last_event_of_each_topic() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let export = "topics.\"news.>\" = { senders = [\"*\"], retained = true }";
    let hall = start(directory.path(), &publisher(export), &server);
    ready(&[&hall]).await;
    let publisher = hall.client().await.peer().await;
    for (topic, payload) in [("news.a", "old"), ("news.a", "new"), ("news.b.c", "b")] {
        publisher.publish(topic, payload).await.unwrap();
    }
    until("the server keeps two", async || (server.stored().await == 2).then_some(())).await;
    let import = "topics.\"news.>\" = { from = [\"hall\"], retained = true }";
    let mut kitchen = Node::new(directory.path(), &listener("kitchen", import), server.address());
    kitchen.start_main();
    let listener = kitchen.client().await.peer().await;
    let mut heard = listener.subscribe("news.>").await.unwrap();
    kitchen.start_bridge();
    let mut events =
        [next(&mut heard).await, next(&mut heard).await].map(|event| (event.topic, event.payload));
    events.sort();
    assert_eq!(events, [("news.a".into(), "new".into()), ("news.b.c".into(), "b".into())]);
    publisher.publish("news.a", "newest").await.unwrap();
    assert_eq!(next(&mut heard).await.payload, "newest");
}
