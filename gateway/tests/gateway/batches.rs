//! Batches: one answer for all, once all are done.

use serde_json::{Value, json};

use crate::{
    app::App,
    support::{Stage, becomes},
};

const FILE: &str = "
[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1']
limits.in-flight = 4
";

fn call(id: u32, operation: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": format!("echo@1/{operation}"), "params": [id] })
}

fn within(mut call: Value, ms: u32) -> Value {
    call["weir"] = json!({ "timeout-ms": ms });
    call
}

fn notification(operation: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": format!("echo@1/{operation}") })
}

/// Ids of the entries, in order.
fn ids(answer: &Value) -> Vec<u64> {
    let mut ids: Vec<u64> =
        answer.as_array().unwrap().iter().map(|entry| entry["id"].as_u64().unwrap_or(0)).collect();
    ids.sort_unstable();
    ids
}

async fn send(app: &mut App, entries: &[Value]) {
    app.send(Value::from(entries).to_string()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_answered_once_all_of_it_is_done() {
    let stage = Stage::new("", &FILE.replace("in-flight = 4", "in-flight = 8")).await;
    let mut app = stage.app("app:polite").await;
    send(&mut app, &[call(1, "echo"), notification("echo"), within(call(2, "never"), 50), call(3, "refuse")])
        .await;
    // Answers to single calls come meanwhile.
    app.is_served().await;
    let answer = app.next().await;
    assert_eq!(ids(&answer), [1, 2, 3]);
    for entry in answer.as_array().unwrap() {
        match entry["id"].as_u64().unwrap() {
            1 => assert_eq!(entry["result"], json!([1])),
            2 => assert_eq!(entry["error"]["data"]["code"], "timeout"),
            _ => assert_eq!(entry["error"]["data"]["code"], "no"),
        }
    }
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_notifications_has_no_answer_and_faults_in_it_have_each_their_own() {
    let stage = Stage::new("", FILE).await;
    let mut app = stage.app("app:polite").await;
    send(&mut app, &[notification("echo"), notification("refuse"), notification("xxx")]).await;
    send(
        &mut app,
        &[json!({ "jsonrpc": "2.0", "id": 1, "result": 1 }), json!({ "jsonrpc": "2.0", "error": {} })],
    )
    .await;
    app.is_served().await;
    assert!(app.seen.is_empty(), "{:?}", app.seen);
    send(&mut app, &[json!(1), json!({}), notification("echo"), call(3, "echo")]).await;
    let answer = app.next().await;
    assert_eq!(ids(&answer), [0, 0, 3]);
    assert_eq!(answer[0]["error"]["code"], -32600);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_with_more_than_may_be_under_way_is_refused_whole() {
    let stage = Stage::new("", FILE).await;
    let mut app = stage.app("app:polite").await;
    let five: Vec<Value> = (1..=5).map(|id| call(id, "echo")).collect();
    let huge = format!("[{}]", vec!["0"; 50_000].join(","));
    for text in [Value::from(five).to_string(), huge] {
        app.send(text).await;
        let answer = app.next().await;
        assert_eq!(answer["error"]["code"], -32600);
        assert_eq!(
            (&answer["id"], &answer["error"]["message"]),
            (&Value::Null, &json!("a batch has at most 4 entries"))
        );
    }
    let main = stage.main.client();
    assert_eq!(main.waiters(), 0);
    app.is_served().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_answered_whole_also_when_a_call_of_it_is_cancelled() {
    let stage = Stage::new("", FILE).await;
    let mut app = stage.app("app:polite").await;
    let cancel = |id: u32| json!({ "jsonrpc": "2.0", "method": "rpc.cancel", "params": { "id": id } });
    send(&mut app, &[within(call(1, "never"), 100), call(2, "echo"), cancel(1)]).await;
    app.send(cancel(1).to_string()).await;
    assert_eq!(ids(&app.next().await), [1, 2]);
    becomes(|| stage.main.client().waiters() == 0, || "waiters".to_owned()).await;
    // A cancel that asks for an answer has one.
    let mut asks = cancel(1);
    asks["id"] = json!(3);
    send(&mut app, &[call(2, "echo"), asks]).await;
    assert_eq!(ids(&app.next().await), [2, 3]);
    app.is_served().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_wait_for_the_rest_of_their_batch_count_as_under_way() {
    let stage = Stage::new("", FILE).await;
    let mut app = stage.app("app:polite").await;
    // Each leaves one open and three answered: with no bound they would pile up.
    let mut refused = 0;
    for _ in 0..20 {
        send(&mut app, &[call(1, "big"), call(2, "big"), call(3, "big"), within(call(9, "never"), 2000)])
            .await;
    }
    for _ in 0..20 {
        let answer = app.next().await;
        let entries = answer.as_array().cloned().unwrap_or_else(|| vec![answer]);
        refused += entries
            .iter()
            .filter(|entry| entry.get("error").is_some_and(|error| error["code"] == -32007))
            .count();
    }
    assert!(refused >= 19, "{refused}");
    app.is_served().await;
}
