//! Apps that come and go in great number.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::{
    alone,
    app::App,
    process::{open_files, private_memory},
    support::{Stage, bearer, becomes, request, token_of},
};

const GATEWAY: &str = "
[gateway.origins]
'app:polite' = ['http://127.0.0.1:8080']
[gateway.alias]
'onNews' = { topic = 'a.b' }
";

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
    let stage = Stage::new(GATEWAY, FILE).await;
    // The first fill what stays.
    run(&stage, 1000).await;
    settled(&stage).await;
    let (files, memory) = (open_files(), private_memory());
    run(&stage, 9000).await;
    settled(&stage).await;
    becomes(|| open_files() <= files, || format!("{} open files, {files} before", open_files())).await;
    let grown = private_memory().saturating_sub(memory);
    assert!(grown < 4 << 20, "{grown} bytes after 9,000 sessions");
    let peer = &stage.main.peers().list()[0];
    assert!(peer.sessions_so_far >= 10_000);
}

fn message(id: u32, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Sixteen apps at a time, each with something of every kind under way when it leaves.
async fn run(stage: &Stage, sessions: usize) {
    let mut random = fastrand::Rng::with_seed(sessions as u64);
    let line = |rest: &str| format!("app:polite {} {rest}", token_of("app:polite"));
    let mut left = sessions;
    while left > 0 {
        let mut all: Vec<App> = Vec::new();
        for _ in 0..left.min(12) {
            all.push(stage.app("app:polite").await);
        }
        left -= all.len();
        // A post that is not waited for, a stream each way, and a head that is cut off.
        let mut post = stage.connect().await;
        let headers = [bearer("app:polite"), ("Content-Type", "application/json".to_owned())];
        let body = message(1, "echo@1/never", json!([])).to_string();
        post.write_all(request("POST", "/v1/peers/app:polite/rpc", &headers, &body).as_bytes())
            .await
            .unwrap();
        let mut half = stage.connect().await;
        half.write_all(b"GET /v1/peers/app").await.unwrap();
        let mut hears = stage.stream(&line("subscribe a.b lines")).await;
        hears.line().await.unwrap();
        let mut says = stage.stream(&line("publish a.b lines")).await;
        says.send(b"1\n2").await;
        if random.u8(0..8) == 0 {
            let ticket = stage.ticket("app:polite", "http://127.0.0.1:8080").await;
            let path = format!("/v1/peers/app:polite/rpc?ticket={ticket}");
            let origin = [("Origin", "http://127.0.0.1:8080".to_owned())];
            all.push(App::open_at(stage.connect().await, &path, &origin).await.unwrap());
        }
        for app in &mut all {
            let until_done = random.bool();
            app.send(
                message(1, "contracts.serve", json!({ "contract": "theirs@1", "operations": ["do"] }))
                    .to_string(),
            )
            .await;
            app.send(
                json!([
                    message(2, "events.subscribe", json!({ "pattern": "a.>" })),
                    message(3, "onNews", json!({ "listen": true })),
                    message(4, "echo@1/never", json!([])),
                ])
                .to_string(),
            )
            .await;
            app.send(message(5, "queues.take", json!({ "queue": "jobs" })).to_string()).await;
            app.send(
                message(
                    6,
                    "queues.put",
                    json!({ "queue": "jobs", "payload": "job", "until-done": until_done }),
                )
                .to_string(),
            )
            .await;
            app.send(message(7, "events.publish", json!({ "topic": "a.b", "payload": "event" })).to_string())
                .await;
            app.send(message(8, "echo@1/never", json!(["request"])).to_string()).await;
            app.send(message(9, "echo@1/echo", json!(["request"])).to_string()).await;
            for _ in 0..random.usize(0..4) {
                app.next().await;
            }
        }
        let options = weir_host::CallOptions::default().timeout(Duration::from_millis(1));
        stage.main.client().call_with("theirs@1", "do", "", options).await.unwrap_err();
        if random.bool() {
            for app in all {
                app.leave().await;
            }
        }
    }
}

async fn settled(stage: &Stage) {
    stage.sessions_become(0).await;
    // What they put and nobody finished: each job that came back too often is dead.
    let mut reader = stage.main.client().queue("jobs").unwrap();
    while let Some(job) = reader.try_take() {
        job.done();
    }
    let jobs =
        || stage.main.control().queues().into_iter().find(|queue| queue.queue.as_str() == "jobs").unwrap();
    becomes(|| (jobs().waiting, jobs().in_hand, jobs().bytes) == (0, 0, 0), || format!("{:?}", jobs())).await;
    becomes(|| stage.main.control().topics().subscriptions.is_empty(), || "subscriptions".to_owned()).await;
    stage.works().await;
}
