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
    let late = within(call(12, "never"), 50);
    send(&mut app, &[call(11, "echo"), notification("echo"), late, call(13, "refuse")]).await;
    // Answers to single calls come meanwhile.
    app.is_served().await;
    let answer = app.next().await;
    assert_eq!(ids(&answer), [11, 12, 13]);
    for entry in answer.as_array().unwrap() {
        match entry["id"].as_u64().unwrap() {
            11 => assert_eq!(entry["result"], json!([11])),
            12 => assert_eq!(entry["error"]["data"]["code"], "timeout"),
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

fn cancel(id: u32) -> Value {
    json!({ "jsonrpc": "2.0", "method": "rpc.cancel", "params": { "id": id } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_of_a_batch_has_no_answer_and_the_batch_waits_for_the_others_alone() {
    let stage = Stage::new("", FILE).await;
    let mut app = stage.app("app:polite").await;
    // In the batch itself, in another one, and alone.
    send(&mut app, &[call(1, "never"), call(2, "echo"), cancel(1)]).await;
    assert_eq!(ids(&app.next().await), [2]);
    for separate in [cancel(1), Value::from(vec![cancel(1)])] {
        send(&mut app, &[call(1, "never"), call(2, "echo")]).await;
        app.send(separate.to_string()).await;
        assert_eq!(ids(&app.next().await), [2]);
    }
    becomes(|| stage.main.client().waiters() == 0, || "waiters".to_owned()).await;
    // Without a call that is left there is no answer at all.
    send(&mut app, &[call(1, "never"), call(2, "never"), cancel(1)]).await;
    app.send(cancel(2).to_string()).await;
    app.is_served().await;
    assert!(app.seen.is_empty(), "{:?}", app.seen);
    // A cancel that asks for an answer has one.
    let mut asks = cancel(2);
    asks["id"] = json!(3);
    send(&mut app, &[within(call(1, "never"), 50), call(2, "never"), asks]).await;
    assert_eq!(ids(&app.next().await), [1, 3]);
    // Each cancelled call has made room for another.
    for _ in 0..8 {
        send(&mut app, &[call(1, "never"), call(2, "never"), cancel(1), cancel(2)]).await;
    }
    app.is_served().await;
    becomes(|| stage.main.client().waiters() == 0, || "waiters".to_owned()).await;
}

/// The ids of requests that were refused because theirs was in use.
fn in_use(answer: &Value) -> Vec<u64> {
    let refused = answer.as_array().unwrap().iter().filter(|entry| {
        entry["error"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("with this id is under way already"))
    });
    refused.map(|entry| entry["id"].as_u64().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_used_once_until_its_batch_is_answered() {
    let stage = Stage::new("", FILE).await;
    let mut app = stage.app("app:polite").await;
    // Whether the first is still under way or has its answer already.
    send(&mut app, &[within(call(1, "never"), 50), call(1, "echo"), call(2, "echo"), call(2, "echo")]).await;
    let answer = app.next().await;
    assert_eq!((ids(&answer), in_use(&answer)), (vec![1, 1, 2, 2], vec![1, 2]));
    // Beside the batch, and in another one.
    send(&mut app, &[call(1, "never"), call(2, "echo")]).await;
    app.send(call(1, "echo").to_string()).await;
    app.send(call(2, "echo").to_string()).await;
    for id in [1, 2] {
        let refused = app.next().await;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(id), &json!(-32602)));
    }
    send(&mut app, &[call(1, "echo"), call(3, "echo")]).await;
    assert_eq!(in_use(&app.next().await), [1]);
    app.send(cancel(1).to_string()).await;
    assert_eq!(ids(&app.next().await), [2]);
    // From then on it is free.
    send(&mut app, &[call(1, "echo"), call(2, "echo")]).await;
    let answer = app.next().await;
    assert_eq!((ids(&answer), in_use(&answer)), (vec![1, 2], vec![]));
    // Over HTTP, too.
    let batch = Value::from(vec![call(1, "echo"), call(1, "echo"), call(2, "echo")]);
    let answer = stage.post("app:polite", &batch.to_string()).await.json();
    assert_eq!((ids(&answer), in_use(&answer)), (vec![1, 1, 2], vec![1]));
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_wait_for_the_rest_of_their_batch_count_as_under_way() {
    let stage = Stage::new("", FILE).await;
    let mut app = stage.app("app:polite").await;
    // Each leaves one open and three answered: with no bound they would pile up.
    let mut refused = 0;
    for round in 1..=20 {
        let id = |number: u32| 10 * round + number;
        let never = within(call(id(9), "never"), 2000);
        send(&mut app, &[call(id(1), "big"), call(id(2), "big"), call(id(3), "big"), never]).await;
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
