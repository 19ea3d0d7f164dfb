//! Where apps' messages stand in traces.

use serde_json::{Value, json};
use weir_host::{
    CallOptions,
    traces::{Span, TraceContext},
};

use crate::support::{Response, Stage, bearer};

const SPAN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

const FILE: &str = "
[queue.jobs]

[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1']
publishes = ['>']
puts = ['jobs']

[peer.'app:theirs']
tokens = ['HASH']
fulfills = ['theirs@1']
wants = ['echo@1']
takes = ['jobs']
";

const ALL: &str = "# main trace-one-in = 1\n";

fn span() -> TraceContext {
    SPAN.parse().unwrap()
}

fn recorded(stage: &Stage) -> Vec<Span> {
    stage.main.control().spans(0, Some(span().trace), 100).spans
}

async fn post(stage: &Stage, traceparent: &str, body: &Value) -> Response {
    let headers = [
        bearer("app:polite"),
        ("Content-Type", "application/json".to_owned()),
        ("traceparent", traceparent.to_owned()),
    ];
    stage.http("POST", "/v1/peers/app:polite/rpc", &headers, &body.to_string()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_part_of_the_span_that_its_header_or_itself_names() {
    let stage = Stage::new("", FILE).await;
    let call = |weir: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": "echo@1/empty", "weir": weir });
    let answered = json!({ "jsonrpc": "2.0", "result": null, "id": 1 });
    assert_eq!(post(&stage, SPAN, &call(json!({}))).await.json(), answered);
    assert_eq!(stage.main.control().spans(0, None, 9).recorded, 0, "apps are strangers");

    stage.reload(&format!("{ALL}{FILE}")).await;
    let other = SPAN.replace("b7ad6b7169203331", "1111111111111111");
    assert_eq!(post(&stage, SPAN, &call(json!({}))).await.json(), answered);
    let mut both = json!([call(json!({})), call(json!({ "traceparent": other }))]);
    both[1]["id"] = json!(2);
    let mut second = answered.clone();
    second["id"] = json!(2);
    assert_eq!(post(&stage, SPAN, &both).await.json(), json!([answered, second]));
    let mut app = stage.app("app:polite").await;
    for (method, params) in [
        ("echo@1/empty", json!({})),
        ("events.publish", json!({ "topic": "a" })),
        ("queues.put", json!({ "queue": "jobs" })),
    ] {
        app.call_with(method, params, json!({ "traceparent": SPAN })).await.unwrap();
    }
    stage.main.client().queue("jobs").unwrap().take().await.unwrap().done();
    let parents: Vec<_> = recorded(&stage).iter().map(|span| span.parent.unwrap().to_string()).collect();
    let (first, second) = ("b7ad6b7169203331", "1111111111111111");
    // The requests of a batch end in any order.
    assert_eq!(parents.iter().filter(|parent| *parent == second).count(), 1, "{parents:?}");
    assert_eq!(parents.iter().filter(|parent| *parent == first).count(), 5, "{parents:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_traceparent_is_refused() {
    let stage = Stage::new("", FILE).await;
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "echo@1/empty" });
    let mut app = stage.app("app:polite").await;
    for wrong in ["", "00", &SPAN[1..], &"0".repeat(8000)] {
        assert_eq!(post(&stage, wrong, &call).await.refusal(), (400, "invalid".to_owned()), "{wrong}");
        let answer = app.call_with("echo@1/empty", json!({}), json!({ "traceparent": wrong })).await;
        let error = answer.unwrap_err();
        assert_eq!(
            (&error["code"], &error["message"]),
            (&json!(-32600), &json!("`weir.traceparent` is no traceparent"))
        );
    }
    let number = app.call_with("echo@1/empty", json!({}), json!({ "traceparent": 1 })).await;
    assert_eq!(number.unwrap_err()["code"], -32600);
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_app_does_for_a_recorded_message_in_hand_is_part_of_its_trace() {
    let stage = Stage::new("", FILE).await;
    let mut theirs = stage.app("app:theirs").await;
    theirs.call("contracts.serve", json!({ "contract": "theirs@1", "operations": ["do"] })).await.unwrap();
    let options = CallOptions::default().trace(span());
    let called = stage.main.client().call_with("theirs@1", "do", "", options);
    let serve = async {
        let request = theirs.next().await;
        let own = json!({ "traceparent": request["weir"]["traceparent"] });
        theirs.call_with("echo@1/empty", json!({}), own.clone()).await.unwrap();
        let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": null });
        theirs.send(answer.to_string()).await;
        own
    };
    let (answer, own) = tokio::join!(called, serve);
    assert_eq!(answer, Ok("null".into()));
    // It is in hand no more.
    theirs.call_with("echo@1/empty", json!({}), own).await.unwrap();
    let [call, request] = &recorded(&stage)[..] else { panic!("{:?}", recorded(&stage)) };
    assert_eq!((call.parent, request.parent), (Some(request.span), Some(span().span)));

    stage.reload(&format!("{ALL}{FILE}")).await;
    stage.app("app:polite").await.call("queues.put", json!({ "queue": "jobs" })).await.unwrap();
    stage.reload(FILE).await;
    let job = theirs.call("queues.take", json!({ "queue": "jobs" })).await.unwrap();
    let own = json!({ "traceparent": job["traceparent"] });
    theirs.call_with("echo@1/empty", json!({}), own).await.unwrap();
    theirs.call("queues.done", json!({ "job": job["job"] })).await.unwrap();
    let spans = stage.main.control().spans(2, None, 9).spans;
    assert_eq!(spans.len(), 2, "{spans:?}");
    assert_eq!(spans[0].parent, Some(spans[1].span));
}
