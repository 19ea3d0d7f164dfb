//! Calls, their errors, and what ends them early.

use serde_json::{Value, json};

use crate::{
    app::code,
    support::{Stage, becomes},
};

const GATEWAY: &str = "
[gateway.alias]
'device.echo' = 'echo@1/echo'
'device.secret' = 'echo@1/big'
'device.news' = { topic = 'news.now' }
";

const FILE: &str = "
[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1/echo', 'echo@1/sender', 'echo@1/bytes', 'echo@1/empty', 'echo@1/refuse', 'echo@1/never', 'theirs@1', 'absent@1']
subscribes = ['news.>']
limits.message-size = '4 KiB'
limits.in-flight = 4

[peer.'app:theirs']
tokens = ['HASH']
fulfills = ['theirs@1']
";

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_goes_as_it_stands_both_ways_and_bytes_as_base64() {
    let stage = Stage::new(GATEWAY, FILE).await;
    let mut app = stage.app("app:polite").await;
    assert_eq!(app.call("echo@1/sender", json!([])).await, Ok(json!("app:polite")));
    assert_eq!(app.call("echo@1/bytes", json!([])).await, Ok(json!({ "$base64": "AP8B" })));
    assert_eq!(app.call("echo@1/echo", json!({ "$base64": "AP8B" })).await, Ok(json!({ "$base64": "AP8B" })));
    // Bytes that are JSON come back as such.
    assert_eq!(app.call("echo@1/echo", json!({ "$base64": "WzFd" })).await, Ok(json!([1])));
    assert_eq!(app.call("echo@1/empty", json!([])).await, Ok(Value::Null));
    app.send(r#"{"jsonrpc":"2.0","id":7,"method":"echo@1/echo"}"#).await;
    assert_eq!(app.text().await, r#"{"jsonrpc":"2.0","result":null,"id":7}"#);
    app.send(
        "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"device.echo\",\"params\": [ 1.0,\t1e400, \"\\u00e4\" ]}",
    )
    .await;
    assert_eq!(app.text().await, "{\"jsonrpc\":\"2.0\",\"result\":[ 1.0,\t1e400, \"\\u00e4\" ],\"id\":8}");
    let fault = app.call("echo@1/echo", json!({ "$base64": "!" })).await;
    assert_eq!(code(&fault), (-32602, "invalid"));
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_come_back_byte_for_byte() {
    let stage = Stage::new("", FILE).await;
    let mut app = stage.app("app:polite").await;
    let long = format!("\"{}\"", "x".repeat(254));
    for id in [
        "1",
        "-0",
        "1.0",
        "1e400",
        "18446744073709551616",
        "null",
        "\"\"",
        "\"\\u0041\"",
        "\"\\ud83d\\ude00\"",
        &long,
    ] {
        app.send(format!(r#"{{"id":{id},"jsonrpc":"2.0","method":"echo@1/empty"}}"#)).await;
        assert_eq!(app.text().await, format!(r#"{{"jsonrpc":"2.0","result":null,"id":{id}}}"#));
    }
    for id in ["true", "[1]", "{}", &format!("\"{}\"", "x".repeat(255)), &"9".repeat(60_000)] {
        app.send(format!(r#"{{"id":{id},"jsonrpc":"2.0","method":"echo@1/empty"}}"#)).await;
        let answer: Value = serde_json::from_str(&app.text().await).unwrap();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &Value::Null));
    }
    app.is_served().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_unknown_and_what_is_denied_are_alike_but_for_the_name() {
    let stage = Stage::new(GATEWAY, FILE).await;
    let mut app = stage.app("app:polite").await;
    // Granted to nobody, to another app, not at all, unknown, no name of a contract, no method.
    for method in [
        "echo@1/big",
        "echo@1/xxx",
        "else@1/big",
        "echo@9/big",
        "device.secret",
        "device.xxxxx",
        "rpc.else",
        "x",
        "/",
        "a/b",
        "echo@1/",
        "ECHO@1/big",
        "echo@1/big/",
        "events.event",
        "device.news/",
        "\u{1f600}",
    ] {
        for (params, weir) in [
            (json!([]), json!({})),
            (json!([]), json!({ "provider": "app:theirs" })),
            (json!([]), json!({ "provider": "nobody" })),
            (json!([]), json!({ "timeout-ms": 0 })),
            (json!({ "$base64": "AP8B" }), json!({})),
            (json!(["x".repeat(5000)]), json!({})),
        ] {
            let answer = app.call_with(method, params, weir.clone()).await;
            let message = format!("no method `{method}` is granted to `app:polite`");
            let expected =
                json!({ "code": -32601, "message": message, "data": { "code": "permission-denied" } });
            assert_eq!(answer, Err(expected), "{method} {weir}");
        }
    }
    // A name of any length is cut, and cannot forge a line.
    let answer = app.call(&format!("a\n\u{1b}[31m{}", "x".repeat(3000)), json!([])).await.unwrap_err();
    let message = answer["message"].as_str().unwrap();
    assert!(message.len() < 400 && !message.contains(['\n', '\u{1b}']), "{message}");
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_app_wrote_is_repeated_in_part_and_harmless() {
    let more = "publishes = ['own.>']\nfulfills = ['mine@1']\nsubscribes";
    let stage = Stage::new("", &FILE.replace("subscribes", more)).await;
    let mut app = stage.app("app:polite").await;
    let long = format!("\u{1b}[31m\n\u{202e}{}", "x".repeat(3000));
    let provider = app.call_with("echo@1/echo", json!([]), json!({ "provider": long })).await;
    assert_eq!(code(&provider), (-32002, "no-provider"));
    let mut answers = vec![provider];
    for (method, params) in [
        ("events.publish", json!({ "topic": "own.a", "to": long })),
        ("events.publish", json!({ "topic": long })),
        ("events.subscribe", json!({ "pattern": long })),
        ("events.unsubscribe", json!({ "pattern": long })),
        ("queues.put", json!({ "queue": long })),
        ("queues.take", json!({ "queue": long })),
        ("contracts.serve", json!({ "contract": long, "operations": ["do"] })),
        ("contracts.serve", json!({ "contract": "mine@1", "operations": [long] })),
        ("events.publish", json!({ (long.clone()): 1 })),
    ] {
        answers.push(app.call(method, params).await);
    }
    for answer in answers {
        let message = answer.unwrap_err()["message"].as_str().unwrap().to_owned();
        assert!(message.len() < 1100 && message.contains("31m"), "{message}");
        assert!(!message.contains(['\n', '\u{1b}', '\u{202e}']), "{message}");
    }
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_error_has_its_number_and_its_word() {
    let stage = Stage::new("", FILE).await;
    let mut app = stage.app("app:polite").await;
    let refused = app.call("echo@1/refuse", json!([])).await;
    assert_eq!(
        refused,
        Err(json!({ "code": -32010, "message": "not today", "data": { "code": "no", "provider": true } }))
    );
    let unknown = app.call("absent@1/do", json!([])).await;
    assert_eq!(code(&unknown), (-32601, "unknown-contract"));
    assert_eq!(code(&app.call("theirs@1/do", json!([])).await), (-32002, "no-provider"));
    let late = app.call_with("echo@1/never", json!([]), json!({ "timeout-ms": 20 })).await;
    assert_eq!(code(&late), (-32001, "timeout"));
    let elsewhere = app.call_with("echo@1/echo", json!([]), json!({ "provider": "nobody" })).await;
    assert_ne!(code(&elsewhere).1, "permission-denied", "{elsewhere:?}");
    // As on the peer socket, no time is the default.
    let default = app.call_with("echo@1/echo", json!([1]), json!({ "timeout-ms": 0 })).await;
    assert_eq!(default, Ok(json!([1])));
    let here = app.call_with("echo@1/echo", json!([1]), json!({ "provider": "main" })).await;
    assert_eq!(here, Ok(json!([1])));
    assert_eq!(code(&app.call("echo@1/echo", json!(["x".repeat(4096)])).await), (-32009, "too-large"));
    assert_eq!(
        code(&app.call("events.subscribe", json!({ "pattern": "other" })).await),
        (-32011, "permission-denied")
    );
    assert_eq!(
        code(&app.call("events.publish", json!({ "topic": "news.a" })).await),
        (-32011, "permission-denied")
    );
    assert_eq!(
        code(&app.call("contracts.serve", json!({ "contract": "theirs@1", "operations": ["a"] })).await),
        (-32011, "permission-denied")
    );
    for params in [
        json!({}),
        json!([]),
        json!({ "pattern": 1 }),
        json!({ "pattern": "news.a", "more": 1 }),
        json!({ "pattern": "news..a" }),
    ] {
        assert_eq!(code(&app.call("events.subscribe", params).await), (-32602, "invalid"));
    }
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn text_that_is_no_message_is_answered_and_the_connection_stays() {
    let stage = Stage::new("", FILE).await;
    let mut app = stage.app("app:polite").await;
    let deep = "[".repeat(60_000);
    let closed = format!("{}{}", "[".repeat(30_000), "]".repeat(30_000));
    for (text, number) in [
        ("", -32700),
        ("{", -32700),
        ("nonsense", -32700),
        ("{\"a\":1}x", -32700),
        (&*deep, -32700),
        ("[1", -32700),
        ("\u{0}", -32700),
        ("1", -32600),
        ("\"a\"", -32600),
        ("null", -32600),
        ("{}", -32600),
        ("[]", -32600),
        (r#"{"id":1,"method":"echo@1/echo"}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"echo@1/echo"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":1}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":1}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"echo@1/echo"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","weir":{"timeout-ms":-1}}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","weir":{"timeout-ms":1e9}}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","weir":{"else":1}}"#, -32600),
    ] {
        app.send(text).await;
        let answer: Value = serde_json::from_str(&app.text().await).unwrap();
        assert_eq!(answer["error"]["code"], number, "{text:.100} {answer}");
    }
    // A batch with one entry that is no message.
    app.send(closed).await;
    let answer: Value = serde_json::from_str(&app.text().await).unwrap();
    assert_eq!(
        (&answer[0]["error"]["code"], answer.as_array().map(Vec::len)),
        (&json!(-32600), Some(1)),
        "{answer}"
    );
    app.is_served().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deep_json_reaches_the_provider_and_comes_back_as_bytes() {
    let stage = Stage::new("", &FILE.replace("4 KiB", "256 KiB")).await;
    let mut app = stage.app("app:polite").await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    app.send(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"echo@1/echo","params":{deep}}}"#)).await;
    let answer: Value = serde_json::from_str(&app.text().await).unwrap();
    assert!(answer["result"]["$base64"].as_str().is_some_and(|text| text.len() > 200_000), "{answer:.200}");
    app.is_served().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_cancelled_has_no_answer_and_leaves_its_place() {
    let stage = Stage::new("", FILE).await;
    let mut app = stage.app("app:polite").await;
    let ids: Vec<u64> =
        [app.ask("echo@1/never", json!([])).await, app.ask("echo@1/never", json!([])).await].to_vec();
    becomes(|| stage.main.client().waiters() == 2, || "waiters".to_owned()).await;
    for id in ids {
        app.send(json!({ "jsonrpc": "2.0", "method": "rpc.cancel", "params": { "id": id } }).to_string())
            .await;
    }
    becomes(|| stage.main.client().waiters() == 0, || "waiters".to_owned()).await;
    // Nothing under this id, nothing readable, and a request for it.
    for params in [json!({ "id": 99 }), json!({}), json!([]), json!({ "id": [] })] {
        app.send(json!({ "jsonrpc": "2.0", "method": "rpc.cancel", "params": params }).to_string()).await;
    }
    assert_eq!(app.call("rpc.cancel", json!({ "id": 1 })).await, Ok(Value::Null));
    app.is_served().await;
    assert!(app.seen.is_empty(), "{:?}", app.seen);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_call_under_an_id_that_is_under_way_is_refused_and_the_first_can_be_cancelled() {
    let stage = Stage::new("", FILE).await;
    let mut app = stage.app("app:polite").await;
    let call = |operation: &str| {
        json!({ "jsonrpc": "2.0", "id": 1, "method": format!("echo@1/{operation}") }).to_string()
    };
    app.send(call("never")).await;
    app.send(call("never")).await;
    assert_eq!(code(&app.answer(1).await), (-32602, "invalid"));
    app.send(json!({ "jsonrpc": "2.0", "method": "rpc.cancel", "params": { "id": 1 } }).to_string()).await;
    becomes(|| stage.main.client().waiters() == 0, || "waiters".to_owned()).await;
    app.send(call("empty")).await;
    assert_eq!(app.answer(1).await, Ok(Value::Null));
    app.is_served().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_under_way_than_allowed_is_refused_one_by_one() {
    let stage = Stage::new("", FILE).await;
    let mut app = stage.app("app:polite").await;
    for _ in 0..4 {
        app.ask("echo@1/never", json!([])).await;
    }
    let fifth = app.ask("echo@1/never", json!([])).await;
    let refused = app.answer(fifth).await;
    assert_eq!(code(&refused), (-32007, "limit-exceeded"));
    assert_eq!(refused.unwrap_err()["message"], "limit `in-flight` exceeded: 5 of 4");
    app.leave().await;
    stage.sessions_become(0).await;
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_discovers_what_it_may_call_and_no_more() {
    let stage = Stage::new(GATEWAY, FILE).await;
    let mut app = stage.app("app:polite").await;
    let document = app.call("rpc.discover", json!({})).await.unwrap();
    let names: Vec<&str> = document["methods"]
        .as_array()
        .unwrap()
        .iter()
        .map(|method| method["name"].as_str().unwrap())
        .collect();
    for granted in
        ["events.subscribe", "rpc.discover", "device.echo", "device.news", "echo@1/echo", "echo@1/never"]
    {
        assert!(names.contains(&granted), "{granted} {names:?}");
    }
    for other in ["device.secret", "echo@1/big", "theirs@1/do", "absent@1/do"] {
        assert!(!names.contains(&other), "{other}");
    }
    let mut unique = names.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), names.len());
    assert_eq!(document["openrpc"], "1.3.2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_an_id_is_carried_out_also_if_the_app_leaves_right_after_it() {
    let stage = Stage::new(GATEWAY, FILE).await;
    let mut theirs = stage.app("app:theirs").await;
    let serve = json!({ "contract": "theirs@1", "operations": ["do"] });
    assert_eq!(theirs.call("contracts.serve", serve).await, Ok(Value::Null));
    for number in 0..50 {
        let mut app = stage.app("app:polite").await;
        // On a busy machine the last app leaves late.
        let patient = json!({ "timeout-ms": 60_000 });
        let call = json!({ "jsonrpc": "2.0", "method": "theirs@1/do", "params": [number], "weir": patient });
        app.send(call.to_string()).await;
        app.leave().await;
    }
    stage.sessions_become(1).await;
    for number in 0..50 {
        let request = theirs.next().await;
        assert_eq!((&request["method"], &request["params"]), (&json!("theirs@1/do"), &json!([number])));
        theirs.send(json!({ "jsonrpc": "2.0", "id": request["id"], "result": 1 }).to_string()).await;
    }
    becomes(|| stage.main.client().waiters() == 0, || "requests are left".to_owned()).await;
}
