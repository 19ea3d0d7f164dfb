//! Three nodes that give each other everything: each message crosses once, and then there is silence.

use std::{collections::BTreeMap, time::Duration};

use super::{
    node::{Node, Plan},
    process::until,
    server::{Counts, Server},
};

const NAMES: [&str; 3] = ["one", "two", "three"];

/// Time in which a message that goes round would show many times.
const SILENCE: Duration = Duration::from_secs(2);

/// Each gives its echo, all topics and a queue to all, and takes the same of all.
fn nodes(directory: &std::path::Path, server: &Server) -> Vec<Node> {
    let plan = |name: &str| {
        Plan {
        name: name.to_owned(),
        main: "[[extension]]\nid = \"echo\"\npath = \"echo.wasm\"\nfulfills = [\"echo@1\"]\n\
               [queue.work]\nstore = \"work.store@1\"\nmessages = 1000\n"
            .to_owned(),
        app: "wants = [\"any.echo@1\"]\npublishes = [\">\"]\nputs = [\"work\"]\ntakes = [\"work\"]\n\
              subscribes = [{ topic = \">\", messages = 10_000 }]\n"
            .to_owned(),
        peer: "fulfills = [\"any.echo@1\", \"work.store@1\"]\nwants = [\"echo@1\"]\n\
               subscribes = [\">\"]\npublishes = [\">\"]\nputs = [\"work\"]\n"
            .to_owned(),
        bridge_main: "store = \"work.store@1\"".to_owned(),
        bridge: "[export]\ncontracts.\"echo@1\" = { to = [\"*\"] }\ntopics.\">\" = { senders = [\"*\"] }\n\
                 queues.work = { senders = [\"*\"] }\n\n[import]\n\
                 contracts.\"echo@1\" = { from = [\"*\"], operations = [\"echo\"], as = \"any.echo@1\", prefer = \"any\" }\n\
                 topics.\">\" = { from = [\"*\"] }\nqueues.work = { from = [\"*\"] }\n"
            .to_owned(),
        ..Plan::default()
    }
    };
    let mut nodes: Vec<_> =
        NAMES.iter().map(|name| Node::new(directory, &plan(name), server.address())).collect();
    nodes.iter_mut().for_each(Node::start);
    nodes
}

/// Waits until nothing moves at the server for a while, and returns what it has counted.
async fn silence(server: &Server) -> Counts {
    let mut before = server.counts().await;
    loop {
        tokio::time::sleep(SILENCE).await;
        let now = server.counts().await;
        if now == before {
            return now;
        }
        before = now;
    }
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn what_three_nodes_give_each_other_crosses_once_and_never_goes_round() {
    const EACH: usize = 200;
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let mut nodes = nodes(directory.path(), &server);
    let mut clients = Vec::new();
    for node in &nodes {
        let client = node.client().await;
        client.until_answers("any.echo@1", "echo").await;
        clients.push(client.peer().await);
    }
    // All hear all: each has heard the first event of each.
    let mut heard = Vec::new();
    for client in &clients {
        heard.push(client.subscribe(">").await.unwrap());
    }
    for (own, events) in heard.iter_mut().enumerate() {
        for (publisher, name) in clients.iter().zip(NAMES) {
            until("nodes hear each other", async || {
                publisher.publish(&format!("begin.{own}.{name}"), "").await.unwrap();
                let wait = Duration::from_millis(20);
                while let Ok(event) = tokio::time::timeout(wait, events.next()).await {
                    if event.unwrap().topic == format!("begin.{own}.{name}") {
                        return Some(());
                    }
                }
                None
            })
            .await;
        }
    }
    let begun = silence(&server).await;

    for (publisher, name) in clients.iter().zip(NAMES) {
        for number in 0..EACH {
            publisher.publish(&format!("said.{name}"), number.to_string()).await.unwrap();
        }
    }
    let said = silence(&server).await;
    println!("{} events: {begun:?}, then {said:?}", NAMES.len() * EACH);
    // Each goes to the server once, and from there to all three: a node ignores its own.
    assert_eq!(said.in_messages - begun.in_messages, (NAMES.len() * EACH) as u64);
    assert_eq!(said.out_messages - begun.out_messages, (NAMES.len() * NAMES.len() * EACH) as u64);
    for events in &mut heard {
        let mut counts = BTreeMap::<String, usize>::new();
        while let Ok(event) = tokio::time::timeout(Duration::from_millis(100), events.next()).await {
            let event = event.unwrap();
            assert_eq!(event.lost, 0);
            if event.topic.starts_with("said.") {
                *counts.entry(event.topic).or_default() += 1;
            }
        }
        assert_eq!(counts, NAMES.map(|name| (format!("said.{name}"), EACH)).into());
    }

    for client in &clients {
        for number in 0..EACH {
            let payload = number.to_string();
            assert_eq!(client.call("any.echo@1", "echo", payload.clone()).await.unwrap(), payload);
        }
    }
    let called = silence(&server).await;
    println!("{} calls: {called:?}", NAMES.len() * EACH);
    // A request and its answer.
    assert!(called.in_messages - said.in_messages <= 2 * (NAMES.len() * EACH) as u64);

    let mut taken = BTreeMap::<String, usize>::new();
    for (client, name) in clients.iter().zip(NAMES) {
        let queue = client.queue("work").unwrap();
        for number in 0..EACH {
            queue.put(format!("{name} {number}")).await.unwrap();
        }
    }
    until("the server has no job left", async || {
        for client in &clients {
            let queue = client.queue("work").unwrap();
            let wait = Duration::from_millis(100);
            while let Ok(job) = tokio::time::timeout(wait, queue.take()).await {
                let job = job.unwrap();
                let payload = String::from_utf8(job.payload().to_vec()).unwrap();
                *taken.entry(payload).or_default() += 1;
                job.done();
            }
        }
        (server.stored().await == 0).then_some(())
    })
    .await;
    let worked = silence(&server).await;
    println!("{} jobs: {worked:?}", NAMES.len() * EACH);
    assert_eq!(taken.len(), NAMES.len() * EACH);
    assert!(taken.values().all(|times| *times == 1), "{taken:?}");
    // A job, its confirmation, its acknowledgement, and what asks for more.
    let each = (worked.in_messages - called.in_messages) as f64 / (NAMES.len() * EACH) as f64;
    assert!(each <= 8.0, "{each} messages a job");
    for node in &mut nodes {
        node.assert_alive();
    }
}
