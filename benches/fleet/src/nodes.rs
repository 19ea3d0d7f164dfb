//! A whole fleet on one machine: what it calls and publishes in a second, what its bridges hold, and what wakes them.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use futures_util::future::try_join_all;
use weir_peer::{Peer, Subscription};

use crate::{
    Measure, Measured,
    site::{Plan, Site, wait},
};

/// Each node gives its echo and its events to all, and takes those of all.
const PLAN: Plan = Plan {
    name: String::new(),
    main: "[[extension]]\nid = \"echo\"\npath = \"echo.wasm\"\nclass = \"min\"\nfulfills = [\"echo@1\"]\n",
    app: "wants = [\"far.echo@1\"]\npublishes = [\"said\"]\nsubscribes = [\"said\"]",
    peer: "fulfills = [\"far.echo@1\"]\nwants = [\"echo@1\"]\npublishes = [\"said\"]\nsubscribes = [\"said\"]",
    bridge: "[export]\ncontracts.\"echo@1\" = { to = [\"*\"] }\ntopics.said = { senders = [\"*\"] }\n[import]\n\
             contracts.\"echo@1\" = { from = [\"*\"], operations = [\"echo\"], as = \"far.echo@1\", prefer = \"any\" }\n\
             topics.said = { from = [\"*\"] }\n",
};

/// Time for what the work leaves behind: deadlines, and threads that wait for more.
const SETTLING: Duration = Duration::from_secs(11);

/// Calls under way of each node.
const AT_ONCE: usize = 2;

const SIZE: usize = 1024;

pub(crate) async fn measure(measure: &Measure) -> Result<Vec<Measured>> {
    let (count, span) = (measure.nodes, Duration::from_secs(measure.seconds));
    let case = format!("{count} nodes");
    eprintln!("  {case}");
    let site = Site::new(measure).await?;
    let (mut nodes, mut peers) = (Vec::new(), Vec::new());
    for number in 0..count {
        let node = site.node(&Plan { name: format!("node-{number}"), ..PLAN }).await?;
        peers.push(node.peer().await?);
        nodes.push(node);
    }
    for peer in &peers {
        let begun = Instant::now();
        while peer.call("far.echo@1", "echo", "").await.is_err() {
            wait(begun, "a node").await?;
        }
    }
    let one = |metric: &str, unit, value| Measured::new(&*case, metric, unit, vec![value]);
    let private = || nodes.iter().map(|node| node.bridge.private()).collect::<Result<Vec<_>>>();
    let woken = || nodes.iter().map(|node| node.bridge.wakeups()).collect::<Result<Vec<_>>>();
    let memory = private()?;
    let calls = calls(&peers, span).await?;
    let [published, delivered, lost] = events(&peers, span).await?;

    tokio::time::sleep(SETTLING).await;
    let before = woken()?;
    tokio::time::sleep(span).await;
    let after = woken()?;
    let woken = before.iter().zip(after).map(|(before, after)| (after - before) / span.as_secs_f64());
    let woken: Vec<_> = woken.collect();
    Ok(vec![
        one("calls", "per second", calls),
        one("events published", "per second", published),
        one("events delivered", "per second", delivered),
        one("events lost", "per second", lost),
        one("private memory of a bridge, the largest", "KiB", greatest(&memory)),
        one("the same after the work", "KiB", greatest(&private()?)),
        one("wakeups of an idle bridge, the most", "per second", greatest(&woken)),
    ])
}

fn greatest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// All nodes call any.
async fn calls(peers: &[Peer], span: Duration) -> Result<f64> {
    let begun = Instant::now();
    let row = |peer: Peer| async move {
        let mut calls = 0_u32;
        while begun.elapsed() < span {
            peer.call("far.echo@1", "echo", vec![0x5a; SIZE]).await?;
            calls += 1;
        }
        anyhow::Ok(calls)
    };
    let rows = peers.iter().flat_map(|peer| std::iter::repeat_n(peer, AT_ONCE));
    let counts = try_join_all(rows.cloned().map(row)).await?;
    Ok(f64::from(counts.iter().sum::<u32>()) / begun.elapsed().as_secs_f64())
}

/// All nodes publish, and hear all. Published, delivered and lost in a second.
async fn events(peers: &[Peer], span: Duration) -> Result<[f64; 3]> {
    let mut heard = try_join_all(peers.iter().map(|peer| peer.subscribe("said"))).await?;
    let (delivered, lost) = (Cell::new(0_u64), Cell::new(0_u64));
    let begun = Instant::now();
    let publishing = try_join_all(peers.iter().map(async |peer| {
        let mut published = 0_u32;
        while begun.elapsed() < span {
            peer.publish("said", vec![0x5a; SIZE]).await?;
            published += 1;
        }
        anyhow::Ok(published)
    }));
    let hearing = try_join_all(heard.iter_mut().map(|events| hear(events, &delivered, &lost)));
    let published = tokio::select! {
        published = publishing => published?,
        ended = hearing => {
            ended?;
            anyhow::bail!("nothing is heard any more")
        }
    };
    let seconds = begun.elapsed().as_secs_f64();
    let all = f64::from(published.iter().sum::<u32>());
    Ok([all, delivered.get() as f64, lost.get() as f64].map(|count| count / seconds))
}

async fn hear(events: &mut Subscription, delivered: &Cell<u64>, lost: &Cell<u64>) -> Result<()> {
    loop {
        let event = events.next().await.context("a session has ended")?;
        delivered.set(delivered.get() + 1);
        lost.set(lost.get() + event.lost);
    }
}
