//! Jobs: put, taken, finished, given back.

use serde_json::{Value, json};

use crate::{
    app::{App, code},
    support::{Stage, becomes},
};

const FILE: &str = "
[queue.jobs]
messages = 100
[queue.closed]

[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1']
puts = ['jobs']
takes = ['jobs']
limits.in-flight = 4
";

async fn put(app: &mut App, payload: Value) -> String {
    let put = app.call("queues.put", json!({ "queue": "jobs", "payload": payload })).await.unwrap();
    put["id"].as_str().unwrap().to_owned()
}

fn in_hand(stage: &Stage) -> (u64, u64) {
    let jobs =
        stage.main.control().queues().into_iter().find(|queue| queue.queue.as_str() == "jobs").unwrap();
    (jobs.waiting, jobs.in_hand)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_put_taken_returned_and_done() {
    let stage = Stage::new("", FILE).await;
    let (mut app, mut reader) = (stage.app("app:polite").await, stage.app("app:polite").await);
    let id = put(&mut app, json!({ "n": 1 })).await;
    let job = reader.call("queues.take", json!({ "queue": "jobs" })).await.unwrap();
    let expected = json!({ "job": job["job"], "id": id, "deliveries": 1, "sender": "app:polite", "payload": { "n": 1 } });
    assert_eq!(job, expected);
    assert_eq!(reader.call("queues.return", json!({ "job": job["job"] })).await, Ok(Value::Null));
    let job = reader.call("queues.take", json!({ "queue": "jobs" })).await.unwrap();
    assert_eq!((&job["id"], &job["deliveries"]), (&json!(id), &json!(2)));
    assert_eq!(reader.call("queues.done", json!({ "job": job["job"] })).await, Ok(Value::Null));
    assert_eq!(in_hand(&stage), (0, 0));
    for method in ["queues.done", "queues.return"] {
        assert_eq!(code(&reader.call(method, json!({ "job": job["job"] })).await), (-32602, "invalid"));
    }
    // Not another's.
    put(&mut app, json!(1)).await;
    let job = reader.call("queues.take", json!({ "queue": "jobs" })).await.unwrap();
    assert_eq!(code(&app.call("queues.done", json!({ "job": job["job"] })).await), (-32602, "invalid"));
    for (method, params) in
        [("queues.take", json!({ "queue": "closed" })), ("queues.put", json!({ "queue": "closed" }))]
    {
        assert_eq!(code(&app.call(method, params).await), (-32011, "permission-denied"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn taking_waits_for_a_job_and_ends_with_null_in_its_time() {
    let stage = Stage::new("", FILE).await;
    let (mut app, mut reader) = (stage.app("app:polite").await, stage.app("app:polite").await);
    let none = reader.call_with("queues.take", json!({ "queue": "jobs" }), json!({ "timeout-ms": 20 })).await;
    assert_eq!(none, Ok(Value::Null));
    let waiting = reader.ask("queues.take", json!({ "queue": "jobs" })).await;
    put(&mut app, json!("late")).await;
    let job = reader.answer(waiting).await.unwrap();
    assert_eq!(job["payload"], "late");
}

#[tokio::test(flavor = "multi_thread")]
async fn until_done_is_answered_when_a_reader_has_finished_it_or_its_time_is_over() {
    let stage = Stage::new("", FILE).await;
    let (mut app, mut reader) = (stage.app("app:polite").await, stage.app("app:polite").await);
    let id = app.ask("queues.put", json!({ "queue": "jobs", "payload": [1], "until-done": true })).await;
    let job = reader.call("queues.take", json!({ "queue": "jobs" })).await.unwrap();
    app.is_served().await;
    reader.call("queues.done", json!({ "job": job["job"] })).await.unwrap();
    assert_eq!(app.answer(id).await, Ok(Value::Null));
    let late = app
        .call_with(
            "queues.put",
            json!({ "queue": "jobs", "payload": [2], "until-done": true }),
            json!({ "timeout-ms": 50 }),
        )
        .await;
    assert_eq!(code(&late), (-32001, "timeout"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_in_hand_goes_back_when_the_app_goes_or_nobody_could_hear_of_it() {
    let stage = Stage::new("", FILE).await;
    let (mut app, mut reader) = (stage.app("app:polite").await, stage.app("app:polite").await);
    put(&mut app, json!(1)).await;
    reader.call("queues.take", json!({ "queue": "jobs" })).await.unwrap();
    assert_eq!(in_hand(&stage), (0, 1));
    drop(reader);
    becomes(|| in_hand(&stage) == (1, 0), || format!("{:?}", in_hand(&stage))).await;
    // A notification, and a request that is cancelled.
    app.send(json!({ "jsonrpc": "2.0", "method": "queues.take", "params": { "queue": "jobs" } }).to_string())
        .await;
    app.is_served().await;
    becomes(|| in_hand(&stage) == (1, 0), || format!("{:?}", in_hand(&stage))).await;
    let job = app.call("queues.take", json!({ "queue": "jobs" })).await.unwrap();
    app.call("queues.done", json!({ "job": job["job"] })).await.unwrap();
    let waiting = app.ask("queues.take", json!({ "queue": "jobs" })).await;
    app.send(json!({ "jsonrpc": "2.0", "method": "rpc.cancel", "params": { "id": waiting } }).to_string())
        .await;
    put(&mut app, json!(2)).await;
    becomes(|| in_hand(&stage) == (1, 0), || format!("{:?}", in_hand(&stage))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_holds_no_more_jobs_than_it_may_have_under_way() {
    let stage = Stage::new("", FILE).await;
    let mut app = stage.app("app:polite").await;
    for number in 0..6 {
        put(&mut app, json!(number)).await;
    }
    for _ in 0..4 {
        app.call("queues.take", json!({ "queue": "jobs" })).await.unwrap();
    }
    assert_eq!(code(&app.call("queues.take", json!({ "queue": "jobs" })).await), (-32007, "limit-exceeded"));
    assert_eq!(in_hand(&stage), (2, 4));
    // Also when many are asked for at once.
    for number in 1..=4 {
        app.call("queues.return", json!({ "job": number })).await.unwrap();
    }
    let take = |id: u32| json!({ "jsonrpc": "2.0", "id": id, "method": "queues.take", "params": { "queue": "jobs" } });
    for _ in 0..3 {
        app.send(json!([take(1), take(2), take(3), take(4)]).to_string()).await;
        app.next().await;
    }
    assert!(in_hand(&stage).1 <= 4, "{:?}", in_hand(&stage));
}
