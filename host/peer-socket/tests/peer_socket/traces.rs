//! Where programs' messages stand in traces.

use weir_host::{CallOptions, HandlerError, traces::Span};
use weir_peer::{
    TraceContext,
    frame::{FromMain, FromPeer, Hello},
};

use crate::support::{Raw, Stage, call, token_of};

const SPAN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

const FILE: &str = "
[queue.jobs]

[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1/echo', 'theirs@1']
publishes = ['news.>']
puts = ['jobs']

[peer.'sidecar:theirs']
tokens = ['HASH']
fulfills = ['theirs@1']
wants = ['echo@1/echo']
publishes = ['news.>']
puts = ['jobs']
takes = ['jobs']
";

fn span() -> TraceContext {
    SPAN.parse().unwrap()
}

/// The recorded spans of the trace that a caller has sent.
fn recorded(stage: &Stage, caller: &str) -> Vec<Span> {
    let mut spans = stage.main.control().spans(0, Some(span().trace), 100).spans;
    spans.retain(|span| span.caller == caller);
    spans
}

impl Stage {
    /// A program that speaks this version alone.
    pub(super) async fn speaks(&self, name: &str, version: u16) -> Raw {
        let (mut raw, token) = (self.silent().await, token_of(name));
        let (oldest, newest) = (version, version);
        let hello = Hello { oldest, newest, requests: 8, events: 0, name, token: Some(&token) };
        raw.send(&[FromPeer::Hello(hello)]).await;
        raw.next().await.unwrap();
        raw
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_sidecar_does_for_a_recorded_request_is_part_of_its_trace() {
    let stage = Stage::new(FILE).await;
    let theirs = stage.connect("sidecar:theirs").await;
    let mut requests = theirs.serve("theirs@1", &["do"]).await.unwrap();
    let jobs = theirs.queue("jobs").unwrap();
    let serving = tokio::spawn(async move {
        let request = requests.next().await.unwrap();
        let own = theirs.part_of(request.trace());
        own.call("echo@1", "echo", "").await.unwrap();
        own.publish("news.of", "").await.unwrap();
        own.queue("jobs").unwrap().put("job").await.unwrap();
        request.answer(Ok::<_, HandlerError>("")).await;
        // It is in hand no more.
        own.call("echo@1", "echo", "").await.unwrap();
        // None of the trace.
        theirs.call("echo@1", "echo", "").await.unwrap();
        let job = jobs.take().await.unwrap();
        theirs.part_of(job.trace()).call("echo@1", "echo", "").await.unwrap();
        job.done();
        // Answered after what was sent before.
        theirs.publish("news.of", "").await.unwrap();
    });
    let options = CallOptions::default().trace(span());
    stage.main.client().call_with("theirs@1", "do", "", options).await.unwrap();
    serving.await.unwrap();

    let [request] = &recorded(&stage, "main")[..] else { panic!() };
    assert_eq!(request.parent, Some(span().span));
    let spans = recorded(&stage, "sidecar:theirs");
    let [call, event, of_job, job] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!([call, event, job].map(|span| span.parent), [Some(request.span); 3], "{spans:?}");
    assert_eq!(of_job.parent, Some(job.span), "{spans:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_span_that_the_session_has_not_in_hand_is_recorded_by_chance_alone() {
    let stage = Stage::new(FILE).await;
    let polite = stage.connect("app:polite").await.part_of(Some(span()));
    polite.call("echo@1", "echo", "").await.unwrap();
    assert_eq!(stage.main.control().spans(0, None, 9).recorded, 0);
    stage.reload(&format!("main.trace-one-in = 1\n{FILE}")).await;
    polite.call("echo@1", "echo", "").await.unwrap();
    polite.announce("news.of", "").await.unwrap();
    polite.publish("news.of", "").await.unwrap();
    let spans = recorded(&stage, "app:polite");
    assert_eq!(spans.len(), 3, "{spans:?}");
    assert!(spans.iter().all(|recorded| recorded.parent == Some(span().span)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_of_version_1_is_told_of_no_spans_and_may_name_none() {
    let stage = Stage::new(FILE).await;
    for version in [1, 2] {
        let mut theirs = stage.speaks("sidecar:theirs", version).await;
        theirs.send(&[FromPeer::Serve { id: 1, contract: "theirs@1", operations: vec!["do"] }]).await;
        theirs.next().await.unwrap();
        let (client, options) = (stage.main.client().clone(), CallOptions::default().trace(span()));
        let called = tokio::spawn(async move { client.call_with("theirs@1", "do", "", options).await });
        let mut told = theirs.next().await.unwrap();
        if version == 2 {
            let Ok(FromMain::Trace { span: own }) = FromMain::decode(&told) else { panic!("{told:?}") };
            assert_eq!(own.trace, span().trace);
            told = theirs.next().await.unwrap();
        }
        let Ok(FromMain::Request { request, .. }) = FromMain::decode(&told) else { panic!("{told:?}") };
        theirs.send(&[FromPeer::Reply { request, payload: "x".into() }]).await;
        assert_eq!(called.await.unwrap(), Ok("x".into()));
        drop(theirs);
        stage.sessions_become(0).await;
    }
    let describe = FromPeer::Describe { id: 1, documents: "{}".into() };
    for (frame, name) in [(FromPeer::Trace { span: span() }, "TRACE"), (describe, "DESCRIBE")] {
        let mut old = stage.speaks("app:polite", 1).await;
        old.send(&[frame]).await;
        assert_eq!(old.closed().await, ("protocol".to_owned(), format!("{name} is of version 2")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_span_without_a_message_that_is_part_of_it_ends_the_session() {
    let stage = Stage::new(FILE).await;
    let trace = FromPeer::Trace { span: span() };
    for (frames, text) in [
        (vec![trace.clone(), trace.clone()], "TRACE before TRACE"),
        (vec![trace.clone(), FromPeer::Credit { events: 1 }], "TRACE before CREDIT"),
        (vec![trace.clone(), FromPeer::Describe { id: 2, documents: "".into() }], "TRACE before DESCRIBE"),
    ] {
        let mut raw = stage.speaks("app:polite", 2).await;
        raw.send(&[trace.clone(), call(1, "echo", "")]).await;
        raw.next().await.unwrap();
        raw.send(&frames).await;
        assert_eq!(raw.closed().await, ("protocol".to_owned(), text.to_owned()));
    }
    let mut raw = stage.speaks("app:polite", 2).await;
    // A `traceparent` of three bytes.
    raw.send_bytes(&[5, 0, 0, 0, 0x1d, 3, b'0', b'0', b'-']).await;
    let text = "TRACE: `traceparent` is no traceparent";
    assert_eq!(raw.closed().await, ("protocol".to_owned(), text.to_owned()));
    stage.works().await;
}
