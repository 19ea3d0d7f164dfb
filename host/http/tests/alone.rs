//! What the sender takes of the process: in a program of its own, so that nobody else has threads and files there.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[expect(dead_code, reason = "for the other tests")]
#[path = "http/support.rs"]
mod support;

use std::{fs, time::Duration};

use weir_http::Timeouts;

use self::support::*;

/// How often each of the sender's threads has gone to sleep.
fn sleeps() -> Vec<u64> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let of = tasks.filter_map(|task| {
        let path = task.ok()?.path();
        let is_sender = fs::read_to_string(path.join("comm")).ok()?.trim() == "weir-http";
        let status = is_sender.then(|| fs::read_to_string(path.join("status")).ok())??;
        status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?.trim().parse().ok()
    });
    of.collect()
}

fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[tokio::test]
async fn a_sender_takes_nothing_before_its_first_request_little_while_idle_and_nothing_after() {
    let server = Server::echo().await;
    let grants = [grant(&server.url(""))];
    let bench = Bench::with(|config| config.idle_timeout = Duration::from_millis(20));
    let guest = bench.guest(&grants);
    let before = open_files();
    assert!(guest.get("https://nowhere.test").await.is_err());
    assert!(sleeps().is_empty());
    // The thread hears of a request that reads once its body has begun, and so only once.
    let url = server.url("/");
    let unbegun = guest.client.send(with_no_beginning(&url), Timeouts::default()).unwrap();
    assert!(tokio::time::timeout(Duration::ZERO, unbegun).await.is_err());
    assert!(sleeps().is_empty());

    for _ in 0..3000 {
        guest.fetch(&server.url("/")).await.unwrap();
    }
    for _ in 0..200 {
        bench.guest(&grants).fetch(&server.url("/")).await.unwrap();
    }
    bench.connections(0, 0).await;
    let idle = sleeps();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let later = sleeps();
    // It may still have been on its way to sleep, and the pool's last timer was to come.
    assert!(idle.len() == 1 && later[0] - idle[0] <= 2, "{idle:?} {later:?}");

    drop(guest);
    drop(bench);
    assert!(sleeps().is_empty());
    eventually(|| open_files() == before).await;
}
