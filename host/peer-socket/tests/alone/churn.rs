//! Programs that come and go in great number.

use std::time::{Duration, Instant};

use tokio::time::sleep;
use weir_peer::frame::FromPeer;

use crate::{
    alone,
    process::{open_files, private_memory},
    support::{PATIENCE, Stage, call},
};

const FILE: &str = "
[queue.jobs]
messages = 100_000
bytes = '64 MiB'

[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1']
fulfills = ['theirs@1']
publishes = ['>']
subscribes = ['>']
puts = ['jobs']
takes = ['jobs']
limits.sessions = 64
";

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_that_come_and_go_under_load_leave_nothing() {
    let _alone = alone().await;
    let stage = Stage::new(FILE).await;
    // The first fill what stays.
    run(&stage, 500).await;
    settled(&stage).await;
    let (files, memory) = (open_files(), private_memory());
    run(&stage, 9500).await;
    settled(&stage).await;
    let began = Instant::now();
    while open_files() > files {
        assert!(began.elapsed() < PATIENCE, "{} open files, {files} before", open_files());
        sleep(Duration::from_millis(5)).await;
    }
    let grown = private_memory().saturating_sub(memory);
    assert!(grown < 4 << 20, "{grown} bytes after 9,500 sessions");
    let peer = &stage.main.peers().list()[0];
    assert!(peer.sessions_so_far >= 10_000);
}

/// Sixteen programs at a time, each with something of every kind under way when it leaves.
async fn run(stage: &Stage, sessions: usize) {
    let mut random = fastrand::Rng::with_seed(sessions as u64);
    let mut left = sessions;
    while left > 0 {
        let mut all = Vec::new();
        for _ in 0..left.min(16) {
            all.push(stage.raw("app:polite").await);
        }
        left -= all.len();
        for raw in &mut all {
            raw.send(&[
                FromPeer::Serve { id: 1, contract: "theirs@1", operations: vec!["do"] },
                FromPeer::Subscribe { id: 2, pattern: "a.>" },
                FromPeer::Take { id: 3, jobs: 2, queue: "jobs" },
                FromPeer::Put {
                    id: 4,
                    timeout_ms: 0,
                    until_done: random.bool(),
                    queue: "jobs",
                    payload: "job".into(),
                },
                FromPeer::Publish { id: 5, timeout_ms: 0, to: None, topic: "a.b", payload: "event".into() },
                call(6, "never", "request"),
                call(7, "echo", "request"),
                FromPeer::Credit { events: 4 },
            ])
            .await;
            for _ in 0..random.usize(0..6) {
                raw.next().await.unwrap();
            }
        }
        let call = stage.main.client().call_with(
            "theirs@1",
            "do",
            "",
            weir_host::CallOptions::default().timeout(Duration::from_millis(1)),
        );
        call.await.unwrap_err();
    }
}

async fn settled(stage: &Stage) {
    stage.sessions_become(0).await;
    // What they put and nobody finished: each job that came back too often is dead.
    let queue = stage.main.client().queue("jobs").unwrap();
    let mut reader = queue.clone();
    while let Some(job) = reader.try_take() {
        job.done();
    }
    let jobs =
        stage.main.control().queues().into_iter().find(|queue| queue.queue.as_str() == "jobs").unwrap();
    assert_eq!((jobs.waiting, jobs.in_hand, jobs.bytes), (0, 0, 0));
    let topics = stage.main.control().topics();
    assert!(topics.subscriptions.is_empty());
    stage.works().await;
}
