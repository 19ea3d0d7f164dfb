//! Contracts that an app serves.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weir_host::{CallOptions, Error};

use crate::{
    app::{App, code},
    support::{Stage, becomes, soon},
};

const FILE: &str = "
[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1', 'theirs@1']

[peer.'app:theirs']
tokens = ['HASH']
fulfills = ['theirs@1']
wants = ['echo@1']
limits.in-flight = 3
limits.inbox.messages = 4
";

async fn serving(stage: &Stage) -> App {
    let mut theirs = stage.app("app:theirs").await;
    let serve = json!({ "contract": "theirs@1", "operations": ["do", "else"] });
    assert_eq!(theirs.call("contracts.serve", serve).await, Ok(Value::Null));
    theirs
}

async fn answer(app: &mut App, request: &Value, what: Value) {
    let mut answer = json!({ "jsonrpc": "2.0", "id": request["id"] });
    answer.as_object_mut().unwrap().extend(what.as_object().unwrap().clone());
    app.send(answer.to_string()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_comes_with_its_sender_and_its_answer_goes_back() {
    let stage = Stage::new("", FILE).await;
    let (mut polite, mut theirs) = (stage.app("app:polite").await, serving(&stage).await);
    for (params, arrives, result, comes) in [
        (json!({ "a": 1 }), Some(json!({ "a": 1 })), json!({ "b": 2 }), json!({ "b": 2 })),
        (
            json!({ "$base64": "AP8B" }),
            Some(json!({ "$base64": "AP8B" })),
            json!({ "$base64": "AP8B" }),
            json!({ "$base64": "AP8B" }),
        ),
        (json!({ "$base64": "" }), None, json!({ "$base64": "" }), Value::Null),
        // A payload that is JSON, but no `params`, comes as its bytes.
        (json!({ "$base64": "MQ==" }), Some(json!({ "$base64": "MQ==" })), json!("text"), json!("text")),
        (json!([]), Some(json!([])), Value::Null, Value::Null),
    ] {
        let id = polite.ask("theirs@1/do", params).await;
        let request = theirs.next().await;
        assert_eq!(request.get("params").cloned(), arrives);
        assert_eq!(
            (&request["method"], &request["weir"]["sender"]),
            (&json!("theirs@1/do"), &json!("app:polite"))
        );
        let left = request["weir"]["timeout-ms"].as_u64().unwrap();
        assert!((1..=5000).contains(&left), "{left}");
        answer(&mut theirs, &request, json!({ "result": result })).await;
        assert_eq!(polite.answer(id).await, Ok(comes));
    }
    let within = stage.main.client().call("theirs@1", "else", "");
    let serve = async {
        let request = theirs.next().await;
        assert_eq!(request["weir"]["sender"], "main");
        answer(&mut theirs, &request, json!({ "result": [1] })).await;
    };
    assert_eq!(tokio::join!(within, serve).0, Ok("[1]".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_has_the_handlers_code_and_a_malformed_answer_fails_at_once() {
    let stage = Stage::new("", FILE).await;
    let (mut polite, mut theirs) = (stage.app("app:polite").await, serving(&stage).await);
    for (what, word) in [
        (json!({ "error": { "code": 1, "message": "no", "data": { "code": "not-today" } } }), "not-today"),
        (json!({ "error": { "code": 1, "message": "no" } }), "failed"),
        (json!({ "error": "no" }), "failed"),
        (json!({ "error": null }), "failed"),
        (json!({ "result": 1, "error": { "code": 1, "message": "no" } }), "failed"),
        (json!({ "result": { "$base64": "!" } }), "failed"),
        (json!({ "jsonrpc": "1.0", "result": 1 }), "failed"),
    ] {
        let id = polite.ask("theirs@1/do", json!([])).await;
        let request = theirs.next().await;
        answer(&mut theirs, &request, what.clone()).await;
        let answer = polite.answer(id).await;
        assert_eq!(code(&answer), (-32010, word), "{what}");
    }
    // Answers to nothing are not answered.
    for id in [json!(99), json!(null), json!("1"), json!(-1), json!(1e99)] {
        theirs.send(json!({ "jsonrpc": "2.0", "id": id, "result": 1 }).to_string()).await;
    }
    theirs.is_served().await;
    assert!(theirs.seen.is_empty(), "{:?}", theirs.seen);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_nobody_waits_for_is_cancelled_and_its_answer_counts_as_late() {
    let stage = Stage::new("", FILE).await;
    let (mut polite, mut theirs) = (stage.app("app:polite").await, serving(&stage).await);
    let id = polite.ask("theirs@1/do", json!([])).await;
    let request = theirs.next().await;
    polite
        .send(json!({ "jsonrpc": "2.0", "method": "rpc.cancel", "params": { "id": id } }).to_string())
        .await;
    let cancel = theirs.next().await;
    assert_eq!(
        cancel,
        json!({ "jsonrpc": "2.0", "method": "rpc.cancel", "params": { "id": request["id"] } })
    );
    // And one whose time is over.
    let options = CallOptions::default().timeout(Duration::from_millis(30));
    assert_eq!(stage.main.client().call_with("theirs@1", "do", "", options).await, Err(Error::Timeout));
    let second = theirs.next().await;
    assert_eq!(theirs.next().await["params"]["id"], second["id"]);
    for request in [request, second] {
        answer(&mut theirs, &request, json!({ "result": 1 })).await;
    }
    theirs.is_served().await;
    let late = || stage.main.peers().list().iter().map(|peer| peer.counts.late).sum::<u64>();
    assert_eq!(late(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_caller_hears_at_once_that_the_app_has_gone() {
    let stage = Stage::new("", FILE).await;
    let mut polite = stage.app("app:polite").await;
    for how in ["drop", "close", "ended", "binary"] {
        let mut theirs = serving(&stage).await;
        let id = polite.ask("theirs@1/do", json!([])).await;
        theirs.next().await;
        let began = Instant::now();
        let mut left = Some(theirs);
        match how {
            "drop" => drop(left.take()),
            "close" => left.take().unwrap().leave().await,
            "binary" => left.as_mut().unwrap().send_bytes(&[0x82, 0x80, 0, 0, 0, 0]).await,
            _ => {
                let list = stage.main.peers().list();
                let peer = list.iter().find(|peer| peer.name.as_str() == "app:theirs").unwrap();
                assert!(stage.main.peers().end(peer.sessions[0].id));
            }
        }
        assert_eq!(code(&polite.answer(id).await), (-32005, "peer-gone"), "{how}");
        assert!(began.elapsed() < Duration::from_millis(400), "{how}: {:?}", began.elapsed());
        drop(left);
        stage.sessions_become(1).await;
    }
    assert_eq!(code(&polite.call("theirs@1/do", json!([])).await), (-32002, "no-provider"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_gets_as_many_requests_as_it_may_have_and_the_rest_wait_or_are_refused() {
    let stage = Stage::new("", FILE).await;
    let (mut polite, mut theirs) = (stage.app("app:polite").await, serving(&stage).await);
    let ids: Vec<u64> = {
        let mut ids = Vec::new();
        for _ in 0..3 {
            ids.push(polite.ask("theirs@1/do", json!([])).await);
        }
        ids
    };
    let mut in_hand = Vec::new();
    for _ in 0..3 {
        in_hand.push(theirs.next().await);
    }
    let mut overloaded = 0;
    let mut asked = Vec::new();
    for _ in 0..10 {
        asked.push(polite.ask("theirs@1/do", json!([])).await);
    }
    polite.is_served().await;
    becomes(|| stage.main.client().waiters() == 7, || format!("{}", stage.main.client().waiters())).await;
    overloaded += polite.seen.iter().filter(|answer| answer["error"]["data"]["code"] == "overloaded").count();
    assert_eq!(overloaded, 6);
    theirs.is_served().await;
    assert!(theirs.seen.is_empty(), "{:?}", theirs.seen);
    for request in &in_hand {
        answer(&mut theirs, request, json!({ "result": 1 })).await;
    }
    for id in ids {
        assert_eq!(polite.answer(id).await, Ok(json!(1)));
    }
    for _ in 0..3 {
        soon(theirs.next()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contract_that_is_another_apps_or_malformed_is_refused() {
    let stage = Stage::new("", FILE).await;
    let (_theirs, mut second) = (serving(&stage).await, stage.app("app:theirs").await);
    for (params, expected) in [
        (json!({ "contract": "theirs@1", "operations": ["do"] }), (-32602, "invalid")),
        (json!({ "contract": "echo@1", "operations": ["do"] }), (-32011, "permission-denied")),
        (json!({ "contract": "nonsense", "operations": [] }), (-32602, "invalid")),
        (json!({ "contract": "theirs@1", "operations": ["\n"] }), (-32602, "invalid")),
        (json!({ "contract": "theirs@1" }), (-32602, "invalid")),
        (json!({ "contract": "theirs@1", "operations": "do" }), (-32602, "invalid")),
    ] {
        assert_eq!(code(&second.call("contracts.serve", params.clone()).await), expected, "{params}");
    }
    second.is_served().await;
}
