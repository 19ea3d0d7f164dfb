//! One topic, 1024 subscribers, and one that never reads. Alone in its process, because it measures its memory.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::{
    fs,
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use test_guests::amount;
use weir_host::{
    Client, Config, ExtensionConfig, Main, MainConfig,
    client::Receipt,
    config::{Limits, Policy, RestartPolicy},
    traffic::SubscriptionStatus,
};

const SUBSCRIBERS: usize = 1024;

/// Bytes.
const PACKET: usize = 1024;

/// Events that may wait for each.
const INBOX: u64 = 50;

/// Events published one by one.
const STEPS: usize = 60;

const PATIENCE: Duration = Duration::from_secs(120);

/// A stalled one, the others, and one that never reads, one after the other in one process.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn many_deliveries_arrive_in_order_and_what_is_not_read_stays_within_its_bounds() {
    let main = start().await;
    let client = main.client().clone();

    let rounds = usize::try_from(amount(250_000, 1_000_000)).unwrap().div_ceil(SUBSCRIBERS);
    let curve = broadcast(&main, rounds).await;
    for subscriber in 0..SUBSCRIBERS {
        assert_eq!(
            heard(&client, subscriber, rounds).await,
            format!("{rounds} {rounds} 0 0"),
            "{subscriber}"
        );
    }
    let grown = curve.iter().max().unwrap() - curve[0];
    eprintln!("resident KiB, ten times over {} deliveries: {:?}", rounds * SUBSCRIBERS, kib(&curve));
    // Inboxes hold references: copies would take up to 50 MiB.
    assert!(grown <= 8 * 1024 * 1024, "{grown} bytes more than at first");

    // A stalled one changes nothing for the others: they get each event before the next.
    let before = in_step(&main, 0, STEPS).await;
    assert!(ask(&client, 0, "stall").await.starts_with(&(rounds + STEPS).to_string()));
    let memory = resident();
    let beside = in_step(&main, 1, STEPS).await;
    eprintln!("a step takes {before:?}, and {beside:?} with one that stalls");
    // Other load may fall on one of the two.
    assert!(beside < 20 * before, "{beside:?} for a step that took {before:?}");
    let grown = resident().saturating_sub(memory);
    assert!(grown <= 8 * 1024 * 1024, "{grown} bytes more with one that stalls");
    for subscriber in 1..SUBSCRIBERS {
        let all = rounds + 2 * STEPS;
        assert_eq!(heard(&client, subscriber, all).await, format!("{all} {all} 0 0"), "{subscriber}");
    }
    let stalled = main.control().status("s0").unwrap();
    assert!(stalled.inbox_bytes <= 64 * 1024);
    let lag = subscription(&main, "s0");
    assert_eq!((&*lag.policy, lag.waiting, lag.shed), ("drop-oldest", INBOX, STEPS as u64 - INBOX));

    stored_once(&main).await;
    never_reads(&main).await;
    main.shutdown().await.unwrap();
}

/// Publishes `steps` packets, each after all but the first `stalled` got the one before; returns the median time.
async fn in_step(main: &Main, stalled: usize, steps: usize) -> Duration {
    let packet = vec![b'x'; PACKET];
    let mut took = Vec::new();
    for step in 1..=steps as u64 {
        let began = Instant::now();
        let receipt = main.client().publish("flood", packet.clone()).now_or_never();
        let receipt = receipt.expect("the publisher waits for nobody").unwrap();
        let shed = if step > INBOX { stalled } else { 0 };
        let Receipt { delivered, refused, .. } = receipt;
        let shed_now = receipt.shed as usize;
        assert_eq!((delivered as usize, shed_now, refused), (SUBSCRIBERS, shed, 0), "step {step}");
        while waiting(main) > stalled as u64 * step.min(INBOX) {
            assert!(began.elapsed() < PATIENCE, "{} events wait", waiting(main));
            tokio::task::yield_now().await;
        }
        took.push(began.elapsed());
    }
    took.sort();
    took[took.len() / 2]
}

/// With no reader, each inbox fills up, and memory holds each event once.
async fn stored_once(main: &Main) {
    for subscriber in 1..SUBSCRIBERS {
        ask(main.client(), subscriber, "stall").await;
    }
    let before = resident();
    for _ in 0..INBOX {
        let receipt = main.client().publish("flood", vec![b'x'; PACKET]).now_or_never();
        let Receipt { delivered, refused, .. } = receipt.expect("there is room").unwrap();
        assert_eq!((delivered as usize, refused), (SUBSCRIBERS, 0));
    }
    let grown = resident().saturating_sub(before);
    let waiting = waiting(main);
    assert_eq!(waiting, SUBSCRIBERS as u64 * INBOX);
    eprintln!("{waiting} events of {PACKET} bytes wait, each with {SUBSCRIBERS}: {} KiB more", grown / 1024);
    assert!(grown <= 8 * 1024 * 1024, "{grown} bytes more");
}

async fn never_reads(main: &Main) {
    let client = main.client();
    let before = resident();
    let packet = vec![b'x'; 512];
    let events = amount(1_000_000, 10_000_000);
    for number in 0..events {
        let receipt = client.publish("ignored", packet.clone()).await.unwrap();
        assert_eq!((receipt.delivered, receipt.refused), (1, 0));
        if number % (events / 10) == 0 {
            let status = main.control().status("deaf").unwrap();
            assert!(status.inbox_bytes <= 64 * 1024, "{} bytes wait", status.inbox_bytes);
        }
    }
    let grown = resident().saturating_sub(before);
    eprintln!("after {events} events that nobody reads: {} KiB more", grown / 1024);
    assert!(grown <= 1024 * 1024, "{grown} bytes more");
    let status = main.control().status("deaf").unwrap();
    assert_eq!(status.shed + status.inbox_messages, events);
}

/// Publishes packets, at most an inbox ahead of any subscriber; returns ten samples of resident memory.
async fn broadcast(main: &Main, rounds: usize) -> Vec<u64> {
    let client = main.client();
    let mut curve = vec![resident()];
    let packet = vec![b'x'; PACKET];
    for round in 1..=rounds {
        let Receipt { delivered, shed, refused, .. } = client.publish("flood", packet.clone()).await.unwrap();
        assert_eq!((delivered as usize, shed, refused), (SUBSCRIBERS, 0, 0));
        // The others make the publisher wait.
        if round % 32 == 0 {
            heard(client, 0, round).await;
        }
        if round % (rounds / 10).max(1) == 0 {
            curve.push(resident());
        }
    }
    curve
}

fn subscription(main: &Main, subscriber: &str) -> SubscriptionStatus {
    let mut all = main.control().topics().subscriptions.into_iter();
    all.find(|subscription| subscription.subscriber == subscriber).unwrap()
}

fn waiting(main: &Main) -> u64 {
    let all = main.control().topics().subscriptions.into_iter();
    all.filter(|subscription| subscription.subscriber != "deaf").map(|own| own.waiting).sum()
}

/// A subscriber's report after this many events.
async fn heard(client: &Client, subscriber: usize, events: usize) -> String {
    let began = Instant::now();
    loop {
        let told = ask(client, subscriber, "told").await;
        if told.split(' ').next().unwrap().parse::<usize>().unwrap() >= events {
            return told;
        }
        assert!(began.elapsed() < PATIENCE, "{subscriber} has heard no more than {told}");
    }
}

async fn ask(client: &Client, subscriber: usize, what: &'static str) -> String {
    let contract = format!("s{subscriber}@1");
    let answer = tokio::time::timeout(PATIENCE, client.call(&contract, "run", what)).await.unwrap();
    String::from_utf8(answer.unwrap().to_vec()).unwrap()
}

async fn start() -> Main {
    let mut extensions: Vec<_> = (0..SUBSCRIBERS).map(|n| listener(&format!("s{n}"), "flood")).collect();
    for waited_for in extensions.iter_mut().skip(1) {
        waited_for.subscribes[0].policy = Policy::Block;
    }
    let mut deaf = listener("deaf", "ignored");
    deaf.fulfills = vec!["deaf@1".parse().unwrap()];
    extensions.push(deaf);
    let mut main = MainConfig::default();
    main.request_timeout = PATIENCE;
    let main = Main::builder(Config::new(main, extensions)).start().await.unwrap();
    let stalls = main.client().call("deaf@1", "run", "stall").await.unwrap();
    assert_eq!(stalls, "0 0 0 0");
    main
}

fn listener(id: &str, pattern: &str) -> ExtensionConfig {
    let mut listener = ExtensionConfig::new(id.parse().unwrap(), test_guests::path("listener"));
    listener.limits = Limits::min();
    listener.limits.inbox_messages = u32::try_from(INBOX).unwrap();
    listener.limits.inbox_bytes = 64 * 1024;
    listener.limits.ready_timeout = PATIENCE;
    listener.limits.stop_timeout = Duration::from_millis(100);
    listener.restart.policy = RestartPolicy::Never;
    listener.fulfills = vec![format!("{id}@1").parse().unwrap()];
    listener.subscribes = vec![pattern.parse().unwrap()];
    listener.config.insert("contract".to_owned(), format!("{id}@1"));
    listener.config.insert("pattern".to_owned(), pattern.to_owned());
    listener
}

fn kib(curve: &[u64]) -> Vec<u64> {
    curve.iter().map(|bytes| bytes / 1024).collect()
}

fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}
