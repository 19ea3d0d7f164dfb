//! The server dies in the middle of everything: callers are answered, local calls go on, and all is back in a second.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
    time::MissedTickBehavior,
};
use weir_peer::{Error, Peer};

use super::{
    client::Client,
    node::{Node, Plan},
    process::{PATIENCE, number, until},
    server::Server,
};

/// Between two remote calls, and two local ones.
const PACE: Duration = Duration::from_millis(1);

/// Most remote calls at once: on a busy machine the pace is slower, so that calls do not wait for each other.
const UNDER_WAY: usize = 128;

const DEADLINE: Duration = Duration::from_secs(2);

/// A caller that hears of its deadline hears so a little later.
const SLACK: Duration = Duration::from_millis(250);

/// More than the turn of another process: what waits so long waits for the bridge.
const STALL: Duration = Duration::from_millis(20);

const BACK_WITHIN: Duration = Duration::from_secs(1);

/// `near` calls the echo of `far`, hears its events, and gives it jobs. `alone` is as `near`.
fn nodes(directory: &std::path::Path, server: &Server) -> [Node; 3] {
    let near = Plan {
        name: "near".to_owned(),
        main: "[[extension]]\nid = \"courier\"\npath = \"courier.wasm\"\nfulfills = [\"courier@1\"]\n\
               publishes = [\"courier.received.>\"]\n[queue.work]\nstore = \"near.store@1\"\n"
            .to_owned(),
        app: "wants = [\"echo@1\", \"courier@1\"]\nsubscribes = [\"far.>\"]\nputs = [\"work\"]\n".to_owned(),
        peer: "fulfills = [\"echo@1\", \"near.store@1\"]\npublishes = [\"far.>\"]\nputs = [\"work\"]\n"
            .to_owned(),
        bridge_main: "store = \"near.store@1\"".to_owned(),
        bridge: "[export.queues.work]\nsenders = [\"*\"]\n\
                 [import.contracts.\"echo@1\"]\nfrom = [\"far\"]\noperations = [\"echo\"]\n\
                 [import.topics.\"far.>\"]\nfrom = [\"far\"]\n[limits]\ncalls = 4096\n"
            .to_owned(),
        ..Plan::default()
    };
    let far = Plan {
        name: "far".to_owned(),
        main: "[[extension]]\nid = \"echo\"\npath = \"echo.wasm\"\nfulfills = [\"echo@1\"]\n\
               [queue.work]\nmessages = 1000\n"
            .to_owned(),
        app: "publishes = [\"far.>\"]\ntakes = [\"work\"]\n".to_owned(),
        peer: "wants = [\"echo@1\"]\nsubscribes = [\"far.>\"]\nputs = [\"work\"]\n".to_owned(),
        bridge: "[export.contracts.\"echo@1\"]\nto = [\"near\"]\n\
                 [export.topics.\"far.>\"]\nsenders = [\"*\"]\n\
                 [import.queues.work]\nfrom = [\"near\"]\n[limits]\nserved = 4096\n"
            .to_owned(),
        ..Plan::default()
    };
    let alone = Plan { name: "alone".to_owned(), ..near.clone() };
    [near, far, alone].map(|plan| Node::new(directory, &plan, server.address()))
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn each_caller_has_one_answer_by_its_deadline_and_local_calls_do_not_notice() {
    let calls: u32 = number("WEIR_FLEET_CALLS", 10_000);
    let directory = tempfile::tempdir().unwrap();
    let mut server = Server::start(directory.path(), "").await;
    let [mut near, mut far, mut alone] = nodes(directory.path(), &server);
    near.start();
    far.start();
    // It has no bridge, and the same calls at the same time. So what else the machine does is in both figures.
    alone.start_main();
    for node in [&near, &alone] {
        node.client().await.until_answers("courier@1", "received").await;
    }
    near.client().await.until_answers("echo@1", "echo").await;

    let (over, is_over) = watch::channel(false);
    let [with_bridge, without] = [&near, &alone].map(|node| {
        let (socket, is_over) = (node.socket(), is_over.clone());
        tokio::spawn(async move { local_calls(&Client::connect(&socket).await, is_over).await })
    });
    let (killed, back) = (calls * 2 / 5, calls * 7 / 10);
    let (mut away, mut lived) = (None, None);
    let at = async |call: u32| {
        if call == killed {
            server.kill();
            away = Some(Instant::now());
        } else if call == back {
            lived = Some(Instant::now());
            server.start_again().await;
        }
    };
    let peers = [near.client().await.peer().await, alone.client().await.peer().await];
    let [outcomes, refused] = remote_calls(&peers, calls, at).await;
    over.send_replace(true);
    let (with_bridge, without) = (with_bridge.await.unwrap(), without.await.unwrap());
    let away = away.unwrap()..lived.unwrap();

    println!("the server was away for {:?}; remote calls: {outcomes:?}", away.end - away.start);
    let noise = without.iter().map(|sample| sample.took).max().unwrap();
    for (when, is_away) in [("there", false), ("away", true)] {
        let [with_bridge, without] = [&with_bridge, &without].map(|samples| {
            let samples = samples.iter().filter(|sample| away.contains(&sample.begun) == is_away);
            let mut times: Vec<_> = samples.map(|sample| sample.took).collect();
            times.sort_unstable();
            [50, 99].map(|percent| times[times.len() * percent / 100])
        });
        println!("local calls, server {when}: p50 and p99 {with_bridge:?}, without a bridge {without:?}");
        assert!(with_bridge[0] <= without[0] * 2, "half of the local calls");
        assert!(with_bridge[1] <= without[1] * 2 + STALL, "one local call of a hundred");
    }

    assert_eq!(outcomes.values().map(|outcome| outcome.count).sum::<u32>(), calls);
    let answered = outcomes["answered"].count;
    assert!(answered >= killed / 2, "the server was there most of the time");
    for (name, outcome) in &outcomes {
        assert!(outcome.longest <= DEADLINE + SLACK + noise, "{name}: {outcome:?}, and {noise:?} of noise");
        let known = ["answered", "no-provider", "peer-gone", "timeout", "overloaded"];
        assert!(known.contains(&name.as_str()), "{name}");
    }
    assert_eq!(refused.keys().collect::<Vec<_>>(), ["no-provider"], "nobody serves without a bridge");
    for node in [&mut near, &mut far, &mut alone] {
        node.assert_alive();
    }
}

#[ignore = "needs a NATS server: `cargo xtask test --full nats`"]
#[tokio::test]
async fn calls_events_and_jobs_are_back_a_second_after_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Server::start(directory.path(), "").await;
    let [mut near, mut far, _] = nodes(directory.path(), &server);
    near.start();
    far.start();
    let (here, there) = (near.client().await, far.client().await);
    here.until_answers("echo@1", "echo").await;
    let mut events = here.peer().await.subscribe("far.>").await.unwrap();
    let (puts, takes) = (here.peer().await.queue("work").unwrap(), there.peer().await.queue("work").unwrap());
    let publisher = there.peer().await;
    until("an event crosses", async || {
        publisher.publish("far.begin", "").await.unwrap();
        tokio::time::timeout(Duration::from_millis(10), events.next()).await.ok()
    })
    .await;
    puts.put("first").await.unwrap();
    takes.take().await.unwrap().done();

    let aways = [Duration::from_millis(50), Duration::from_secs(1), Duration::from_secs(8)];
    let (mut attempts, mut next) = (0, aways.into_iter());
    let mut away = next.next();
    while let Some(so_long) = away {
        server.kill();
        // What is to be seen is how long it takes after so long.
        tokio::time::sleep(so_long).await;
        server.start_again().await;
        attempts += 1;
        let (begun, topic) = (Instant::now(), format!("far.{attempts}"));
        let call = async {
            here.until_answers("echo@1", "echo").await;
            begun.elapsed()
        };
        let event = async {
            let mut tick = tokio::time::interval(Duration::from_millis(10));
            loop {
                tokio::select! {
                    _ = tick.tick() => { publisher.publish(&topic, "").await.unwrap(); }
                    event = events.next() => if event.unwrap().topic == topic { break begun.elapsed() },
                }
            }
        };
        let job = async {
            until("a job is put", async || puts.put_within(DEADLINE, topic.clone()).await.ok()).await;
            loop {
                let job = takes.take().await.unwrap();
                let is_it = job.payload() == topic.as_bytes();
                job.done();
                if is_it {
                    break begun.elapsed();
                }
            }
        };
        let all = async { tokio::join!(call, event, job) };
        let (call, event, job) = tokio::time::timeout(PATIENCE, all).await.unwrap();
        println!("after {so_long:?}: a call in {call:?}, an event in {event:?}, a job in {job:?}");
        // What waited for the processor may try again, twice in all. What waits by itself does so each time.
        let is_back = call.max(event).max(job) <= BACK_WITHIN;
        assert!(is_back || attempts < aways.len() + 2, "{call:?} {event:?} {job:?}");
        if is_back {
            away = next.next();
        }
    }
    near.assert_alive();
    far.assert_alive();
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    begun: Instant,
    took: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    count: u32,
    longest: Duration,
}

/// Local calls at a pace, until it is over.
async fn local_calls(client: &Client, is_over: watch::Receiver<bool>) -> Vec<Sample> {
    let (peer, mut samples) = (client.peer().await, Vec::new());
    let mut tick = tokio::time::interval(PACE);
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    while !*is_over.borrow() {
        tick.tick().await;
        let begun = Instant::now();
        peer.call("courier@1", "received", "").await.unwrap();
        samples.push(Sample { begun, took: begun.elapsed() });
    }
    samples
}

/// Remote calls at a pace, by each of both. Before each, `at` is called with its number.
async fn remote_calls(
    peers: &[Peer; 2],
    calls: u32,
    mut at: impl AsyncFnMut(u32),
) -> [BTreeMap<String, Outcome>; 2] {
    let mut under_way = JoinSet::new();
    let mut outcomes = [BTreeMap::<String, Outcome>::new(), BTreeMap::new()];
    let mut count = |ended: Result<(usize, String, Duration), JoinError>| {
        let (of, name, took) = ended.unwrap();
        let outcome = outcomes[of].entry(name).or_default();
        outcome.count += 1;
        outcome.longest = outcome.longest.max(took);
    };
    let mut tick = tokio::time::interval(PACE);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for call in 0..calls {
        tick.tick().await;
        while under_way.len() >= UNDER_WAY {
            under_way.join_next().await.map(&mut count);
        }
        at(call).await;
        for (of, peer) in peers.iter().cloned().enumerate() {
            under_way.spawn(async move {
                let (payload, start) = (call.to_le_bytes(), Instant::now());
                let answer = peer.call_within(DEADLINE, "echo@1", "echo", payload.to_vec()).await;
                (of, outcome(answer.as_deref(), &payload), start.elapsed())
            });
        }
    }
    while let Some(ended) = under_way.join_next().await {
        count(ended);
    }
    outcomes
}

fn outcome(answer: Result<&[u8], &Error>, payload: &[u8]) -> String {
    match answer {
        Ok(answer) if answer == payload => "answered".to_owned(),
        Ok(answer) => format!("the answer to another call: {answer:?}"),
        // A bridge that speaks the second version of the protocol can say it in its own words alone.
        Err(Error::Handler(error)) => error.code.clone(),
        Err(Error::NoProvider(_)) => "no-provider".to_owned(),
        Err(Error::Overloaded(_)) => "overloaded".to_owned(),
        Err(Error::PeerGone) => "peer-gone".to_owned(),
        Err(Error::Timeout) => "timeout".to_owned(),
        Err(error) => format!("{error:?}"),
    }
}
