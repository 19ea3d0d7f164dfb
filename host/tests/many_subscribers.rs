//! One topic and 1024 subscribers, and a subscriber that never reads. Alone in its process, since it
//! measures its memory.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::{
    fs,
    time::{Duration, Instant},
};

use weir_host::{Client, Config, ExtensionConfig, Limits, Main, MainConfig, Policy, RestartPolicy};

const SUBSCRIBERS: usize = 1024;
const DELIVERIES: usize = 1_000_000;

/// What a packet has.
const PACKET: usize = 1024;

/// A day's worth of events.
const DAY: usize = 10_000_000;

const PATIENCE: Duration = Duration::from_secs(120);

/// One that stalls, the others, and one that does not read: all in one process, one after the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_million_deliveries_arrive_in_order_and_what_is_not_read_stays_within_its_bounds() {
    let main = start().await;
    let client = main.client().clone();

    let (rounds, curve) = broadcast(&main, false, DELIVERIES.div_ceil(SUBSCRIBERS)).await;
    for subscriber in 0..SUBSCRIBERS {
        assert_eq!(
            heard(&client, subscriber, rounds).await,
            format!("{rounds} {rounds} 0 0"),
            "{subscriber}"
        );
    }
    // Each inbox may hold 64 KiB; most hold next to nothing at any moment.
    let allowed = (SUBSCRIBERS * (64 + 1)) as u64 * 1024;
    let grown = curve.iter().max().unwrap() - curve[0];
    eprintln!("resident KiB, ten times over {} deliveries: {:?}", rounds * SUBSCRIBERS, kib(&curve));
    assert!(grown <= allowed, "{grown} bytes more than at first");

    // One that stalls changes nothing for the others.
    assert!(ask(&client, 0, "stall").await.starts_with(&rounds.to_string()));
    let (more, curve) = broadcast(&main, true, 200).await;
    eprintln!("and with one that stalls: {:?}", kib(&curve));
    for subscriber in 1..SUBSCRIBERS {
        let all = rounds + more;
        assert_eq!(heard(&client, subscriber, all).await, format!("{all} {all} 0 0"), "{subscriber}");
    }
    let stalled = main.control().status("s0").unwrap();
    assert!(stalled.inbox_bytes <= 64 * 1024);
    let lag = main.control().topics().subscriptions.into_iter().find(|s| s.subscriber == "s0").unwrap();
    assert_eq!((lag.policy, lag.waiting, lag.shed), (Policy::DropOldest, 50, more as u64 - 50));

    never_reads(&main).await;
    main.shutdown().await.unwrap();
}

/// Ten million events to one that never reads.
async fn never_reads(main: &Main) {
    let client = main.client();
    let before = resident();
    let packet = vec![b'x'; 512];
    for number in 0..DAY {
        let receipt = client.publish("ignored", packet.clone()).await.unwrap();
        assert_eq!((receipt.delivered, receipt.refused), (1, 0));
        if number % (DAY / 10) == 0 {
            let status = main.control().status("deaf").unwrap();
            assert!(status.inbox_bytes <= 64 * 1024, "{} bytes wait", status.inbox_bytes);
        }
    }
    let grown = resident().saturating_sub(before);
    eprintln!("after {DAY} events that nobody reads: {} KiB more", grown / 1024);
    assert!(grown <= 1024 * 1024, "{grown} bytes more");
    let status = main.control().status("deaf").unwrap();
    assert_eq!(status.shed + status.inbox_messages, DAY as u64);
}

/// Publishes so many packets, never more ahead of any subscriber than an inbox holds, but for the first if
/// that has stalled; and the resident memory, ten times.
async fn broadcast(main: &Main, has_stalled: bool, rounds: usize) -> (usize, Vec<u64>) {
    let client = main.client();
    let mut curve = vec![resident()];
    let packet = vec![b'x'; PACKET];
    for round in 1..=rounds {
        let receipt = client.publish("flood", packet.clone()).await.unwrap();
        assert_eq!(receipt.delivered as usize, SUBSCRIBERS);
        // All others have the publisher wait.
        if round % 32 == 0 && !has_stalled {
            heard(client, 0, round).await;
        }
        if round % (rounds / 10).max(1) == 0 {
            curve.push(resident());
        }
    }
    (rounds, curve)
}

/// What a subscriber has to tell once it has heard so many events.
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
    listener.limits.inbox_messages = 50;
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

/// Bytes of this process in memory.
fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}
