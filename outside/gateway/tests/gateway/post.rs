//! JSON-RPC over HTTP.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::support::{Response, Stage, bearer, becomes, request};

const FILE: &str = "
[queue.jobs]

[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1']
publishes = ['>']
subscribes = ['>']
puts = ['jobs']
takes = ['jobs']
fulfills = ['theirs@1']
limits.in-flight = 4
limits.message-size = '2 KiB'

[peer.'app:slow']
tokens = ['HASH']
wants = ['echo@1']
limits.message-rate = 16
";

const RPC: &str = "/v1/peers/app:polite/rpc";

fn call(method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

fn headers() -> [(&'static str, String); 2] {
    [bearer("app:polite"), ("Content-Type", "application/json; charset=utf-8".to_owned())]
}

#[tokio::test(flavor = "multi_thread")]
async fn one_request_has_one_answer_and_leaves_no_session() {
    let stage = Stage::new("", FILE).await;
    let answer = stage.post("app:polite", &call("echo@1/echo", json!([1]))).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, r#"{"jsonrpc":"2.0","result":[1],"id":1}"#));
    assert!(answer.head.contains("content-type: application/json"), "{answer:?}");
    let put = stage.post("app:polite", &call("queues.put", json!({ "queue": "jobs" }))).await;
    assert!(put.json()["result"]["id"].is_string(), "{put:?}");
    let published = stage.post("app:polite", &call("events.publish", json!({ "topic": "a" }))).await;
    assert_eq!(published.json()["result"], json!({ "delivered": 0, "shed": 0, "refused": 0 }));
    for (body, number) in [("x", -32700), ("[]", -32600), ("{}", -32600), ("", -32700)] {
        assert_eq!(stage.post("app:polite", body).await.json()["error"]["code"], number, "{body}");
    }
    let denied = stage.post("app:polite", &call("else@1/echo", json!([]))).await;
    assert_eq!((denied.status, denied.json()["error"]["code"].clone()), (200, json!(-32601)));
    stage.sessions_become(0).await;
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_and_notifications_are_answered_as_on_a_websocket() {
    let stage = Stage::new("", FILE).await;
    let one = |id: u32, operation: &str| json!({ "jsonrpc": "2.0", "id": id, "method": format!("echo@1/{operation}") });
    let notification = json!({ "jsonrpc": "2.0", "method": "echo@1/echo" });
    let answer = stage
        .post("app:polite", &json!([one(1, "sender"), notification, one(2, "refuse"), {}]).to_string())
        .await;
    let answer = answer.json();
    assert_eq!(answer.as_array().map(Vec::len), Some(3));
    assert_eq!(
        (&answer[0]["result"], &answer[1]["error"]["data"]["code"], &answer[2]["error"]["code"]),
        (&json!("app:polite"), &json!("no"), &json!(-32600))
    );
    let response = json!({ "jsonrpc": "2.0", "id": 1, "result": 1 });
    for body in [
        notification.clone(),
        json!([notification, response]),
        response,
        json!({ "jsonrpc": "2.0", "method": "rpc.cancel", "params": { "id": 1 } }),
    ] {
        let answer = stage.post("app:polite", &body.to_string()).await;
        assert_eq!((answer.status, answer.body.as_str()), (204, ""), "{body}");
    }
    let five: Vec<Value> = (1..=5).map(|id| one(id, "sender")).collect();
    let answer = stage.post("app:polite", &Value::from(five).to_string()).await;
    assert_eq!(answer.json()["error"]["code"], -32600);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_a_connection_says_so() {
    let stage = Stage::new("[gateway.alias]\n'onNews' = { topic = 'news' }", FILE).await;
    for (method, params) in [
        ("events.subscribe", json!({ "pattern": "a" })),
        ("events.unsubscribe", json!({ "pattern": "a" })),
        ("onNews", json!({ "listen": true })),
        ("queues.take", json!({ "queue": "jobs" })),
        ("queues.done", json!({ "job": 1 })),
        ("queues.return", json!({ "job": 1 })),
        ("contracts.serve", json!({ "contract": "theirs@1", "operations": ["do"] })),
        ("rpc.cancel", json!({ "id": 1 })),
    ] {
        let answer = stage.post("app:polite", &call(method, params)).await.json();
        assert_eq!(answer["error"]["code"], -32600, "{method} {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("WebSocket"), "{method} {answer}");
    }
    assert_eq!(stage.main.client().publish("a", "").await.unwrap().delivered, 0);
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_none_are_refused_each_with_its_status() {
    let stage = Stage::new("", FILE).await;
    let large = call("echo@1/echo", json!(["x".repeat(2 * 2048 + 64 * 1024)]));
    let token = [bearer("app:polite")];
    let form = [bearer("app:polite"), ("Content-Type", "application/x-www-form-urlencoded".to_owned())];
    let text = [bearer("app:polite"), ("Content-Type", "text/plain".to_owned())];
    for (method, path, headers, body, status, code) in [
        ("POST", RPC, &headers()[..], &*large, 413, "body"),
        ("POST", RPC, &token[..], "{}", 415, "media-type"),
        ("POST", RPC, &form[..], "{}", 415, "media-type"),
        ("POST", RPC, &text[..], "{}", 415, "media-type"),
        ("GET", RPC, &token[..], "", 426, "upgrade-required"),
        ("PUT", RPC, &headers()[..], "{}", 405, "method"),
        ("OPTIONS", RPC, &[][..], "", 405, "method"),
        ("TRACE", RPC, &[][..], "", 405, "method"),
        ("GET", "/v1/peers/app:polite/tickets", &token[..], "", 405, "method"),
        ("GET", "/", &[][..], "", 404, "not-found"),
        ("GET", "/v1/peers/app:polite/rpc/", &token[..], "", 404, "not-found"),
        ("GET", "/v1/peers/../../etc/passwd", &[][..], "", 404, "not-found"),
        ("GET", "//", &[][..], "", 404, "not-found"),
    ] {
        let answer = stage.http(method, path, headers, body).await;
        assert_eq!(answer.refusal(), (status, code.to_owned()), "{method} {path}");
    }
    for (method, path) in
        [("GET", "/v1/peers/%ff/rpc"), ("POST", "/v1/peers/%ff/rpc"), ("POST", "/v1/peers/%ff/tickets")]
    {
        let answer = stage.http(method, path, &headers(), if method == "POST" { "{}" } else { "" }).await;
        assert_eq!(answer.status, 400, "{method} {path}");
        assert!(answer.head.contains("content-type: application/json"), "{answer:?}");
        assert_eq!(answer.refusal().1, "invalid", "{answer:?}");
    }
    // A method of any length is not repeated whole.
    let long = stage.http(&"X".repeat(9000), RPC, &token, "").await;
    assert_eq!(long.refusal(), (405, "method".to_owned()));
    assert!(long.body.len() < 200, "{long:?}");
    // Bytes that are no text.
    let mut stream = stage.connect().await;
    let mut bytes = request("POST", RPC, &headers(), "xx").into_bytes();
    let length = bytes.len();
    bytes[length - 2..].copy_from_slice(&[0xff, 0xfe]);
    stream.write_all(&bytes).await.unwrap();
    assert_eq!(Response::read(&mut stream).await.unwrap().refusal(), (400, "invalid".to_owned()));
    stage.sessions_become(0).await;
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_come_is_waited_for_ten_seconds() {
    let stage = Stage::new("", FILE).await;
    let (mut polite, began) = (stage.app("app:polite").await, Instant::now());
    let mut stream = stage.connect().await;
    let mut head = headers().to_vec();
    head.push(("Content-Length", "1000".to_owned()));
    stream.write_all(request("POST", RPC, &head, "").as_bytes()).await.unwrap();
    let mut chunked = stage.connect().await;
    head.pop();
    head.push(("Transfer-Encoding", "chunked".to_owned()));
    chunked.write_all((request("POST", RPC, &head, "") + "3e8\r\n").as_bytes()).await.unwrap();
    let drip = async {
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            if chunked.write_all(b"x").await.is_err() {
                break;
            }
        }
    };
    let answer = tokio::select! {
        answer = Response::read(&mut stream) => answer.unwrap(),
        () = drip => panic!(),
    };
    assert_eq!(answer.refusal(), (413, "body".to_owned()));
    assert!(began.elapsed() > Duration::from_secs(9) && began.elapsed() < Duration::from_secs(14));
    assert_eq!(Response::read(&mut chunked).await.unwrap().refusal(), (413, "body".to_owned()));
    polite.is_served().await;
    stage.sessions_become(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_beyond_the_rate_are_refused_and_the_rate_is_the_names() {
    let stage = Stage::new("", FILE).await;
    let mut statuses = Vec::new();
    for _ in 0..40 {
        statuses.push(stage.post("app:slow", &call("echo@1/echo", json!([]))).await.status);
    }
    assert!(statuses.contains(&200) && statuses.contains(&429), "{statuses:?}");
    // Others are not held up, and the rate comes back.
    stage.works().await;
    let began = Instant::now();
    while stage.post("app:slow", &call("echo@1/echo", json!([]))).await.status != 200 {
        assert!(began.elapsed() < Duration::from_secs(2));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // A batch counts as many, and those that are refused take nothing.
    let batch = Value::from(vec![json!(0); 40]).to_string();
    while stage.post("app:slow", &batch).await.status != 200 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let began = Instant::now();
    while stage.post("app:slow", &batch).await.status != 200 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let took = began.elapsed();
    assert!(took > Duration::from_secs(2) && took < Duration::from_secs(4), "{took:?}");
    // A new limit holds at once.
    stage.reload(&FILE.replace("message-rate = 16", "message-rate = 100_000")).await;
    assert_eq!(stage.post("app:slow", &batch).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_gives_up_its_request() {
    let stage = Stage::new("", FILE).await;
    let mut stream = stage.connect().await;
    stream
        .write_all(request("POST", RPC, &headers(), &call("echo@1/never", json!([]))).as_bytes())
        .await
        .unwrap();
    becomes(|| stage.main.client().waiters() == 1, || "waiters".to_owned()).await;
    drop(stream);
    becomes(|| stage.main.client().waiters() == 0, || "waiters".to_owned()).await;
    stage.sessions_become(0).await;
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_ends_with_its_answer() {
    let stage = Stage::new("", FILE).await;
    let none = [("Content-Type", "application/json".to_owned())];
    let call = call("echo@1/echo", json!([1]));
    for (text, status) in [
        (request("POST", RPC, &headers(), &call), 200),
        (request("POST", RPC, &none, &call), 401),
        (request("GET", "/", &[], ""), 404),
    ] {
        let mut stream = stage.connect().await;
        stream.write_all(text.as_bytes()).await.unwrap();
        let answer = Response::read(&mut stream).await.unwrap();
        assert_eq!(answer.status, status);
        assert!(answer.head.contains("connection: close"), "{answer:?}");
        assert!(Response::read(&mut stream).await.is_none());
    }
    stage.works().await;
}
