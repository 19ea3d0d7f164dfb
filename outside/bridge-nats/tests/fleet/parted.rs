//! Fifty machines, whose cables are cut and mended at random: all heal.

use std::{
    fs,
    time::{Duration, Instant},
};

use fastrand::Rng;
use tokio::task::JoinSet;
use weir_peer::Peer;

use super::{
    client::Client,
    node::{Node, Plan},
    process::number,
    proxy::{Cable, Proxy},
    server::Server,
};

/// Time for a node to be back after its cable is whole.
const HEALED_WITHIN: Duration = Duration::from_secs(30);

const ROUNDS: usize = 5;

/// A node that echoes, calls all others' echo, hears their events and says when it is parted.
fn plan(name: &str) -> Plan {
    Plan {
        name: name.to_owned(),
        main: "[[extension]]\nid = \"echo\"\npath = \"echo.wasm\"\nclass = \"min\"\nfulfills = [\"echo@1\"]\n"
            .to_owned(),
        app: "wants = [\"far.echo@1\"]\nsubscribes = [\"said.>\"]\npublishes = [\"said.>\"]\n".to_owned(),
        peer: "fulfills = [\"far.echo@1\"]\nwants = [\"echo@1\"]\nsubscribes = [\"said.>\"]\npublishes = [\"said.>\"]\n"
            .to_owned(),
        nats: "ping-interval = \"1s\"".to_owned(),
        bridge: "[export]\ncontracts.\"echo@1\" = { to = [\"*\"] }\ntopics.\"said.>\" = { senders = [\"*\"] }\n\n\
                 [import]\ntopics.\"said.>\" = { from = [\"*\"] }\n\
                 contracts.\"echo@1\" = { from = [\"*\"], operations = [\"echo\"], as = \"far.echo@1\", prefer = \"any\" }\n"
            .to_owned(),
        ..Plan::default()
    }
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn parted_nodes_heal() {
    let count: usize = number("WEIR_FLEET_NODES", 10);
    let seed = number("WEIR_FLEET_SEED", fastrand::u64(..));
    println!("{count} nodes, WEIR_FLEET_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path(), "").await;
    let (mut nodes, mut cables, mut clients) = (Vec::new(), Vec::new(), Vec::new());
    let begun = Instant::now();
    for number in 0..count {
        let cable = Proxy::start(server.address()).await;
        let mut node = Node::new(directory.path(), &plan(&format!("node-{number}")), cable.address());
        node.start();
        // The first compiles for all.
        clients.push(node.client().await);
        nodes.push(node);
        cables.push(cable);
    }
    all_heal(&clients, HEALED_WITHIN * 4).await;
    println!("all hear and answer each other {:?} after the first start", begun.elapsed());
    println!("private memory of the bridges: {} KiB at most", largest(&nodes));

    for round in 0..ROUNDS {
        let parted: Vec<_> = (0..count).filter(|_| rng.bool()).collect();
        for node in &parted {
            cables[*node].set(if rng.bool() { Cable::Cut } else { Cable::Silent });
        }
        // Some of them see it by their pings, and some not before it is over.
        tokio::time::sleep(Duration::from_millis(rng.u64(100..6000))).await;
        for node in &parted {
            cables[*node].set(Cable::Whole);
        }
        let mended = Instant::now();
        all_heal(&clients, HEALED_WITHIN).await;
        println!(
            "round {round}: {} of {count} were parted, and back in {:?}",
            parted.len(),
            mended.elapsed()
        );
    }
    for node in &mut nodes {
        node.assert_alive();
    }
    println!("private memory of the bridges: {} KiB at most", largest(&nodes));
}

/// Waits until each node's call is answered, and each hears an event of each.
async fn all_heal(clients: &[Client], within: Duration) {
    let mut hearing = JoinSet::new();
    let mut peers = Vec::new();
    for client in clients {
        peers.push(client.peer().await);
    }
    for peer in peers.iter().cloned() {
        hearing.spawn(hears_all(peer, clients.len()));
    }
    let publish = async {
        let mut tick = tokio::time::interval(Duration::from_millis(500));
        loop {
            tick.tick().await;
            for (number, peer) in peers.iter().enumerate() {
                peer.announce(&format!("said.{number}"), "").await.unwrap();
            }
        }
    };
    let heal = async {
        for client in clients {
            client.until_answers("far.echo@1", "echo").await;
        }
        while let Some(heard) = hearing.join_next().await {
            heard.unwrap();
        }
    };
    let healed = tokio::time::timeout(within, async {
        tokio::select! {
            () = publish => {}
            () = heal => {}
        }
    });
    healed.await.unwrap_or_else(|_| panic!("not healed within {within:?}"));
}

async fn hears_all(peer: Peer, count: usize) {
    let mut events = peer.subscribe("said.>").await.unwrap();
    let mut heard = vec![false; count];
    while heard.contains(&false) {
        let event = events.next().await.unwrap();
        let number: usize = event.topic.strip_prefix("said.").unwrap().parse().unwrap();
        heard[number] = true;
    }
}

/// Private memory of the largest bridge, in KiB.
fn largest(nodes: &[Node]) -> u64 {
    let private = |node: &Node| {
        let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", node.bridge_id())).unwrap();
        let lines = rollup.lines().filter(|line| line.starts_with("Private_"));
        lines.map(|line| line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()).sum()
    };
    nodes.iter().map(private).max().unwrap()
}
