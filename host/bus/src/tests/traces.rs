//! What is recorded of sampled messages.

use weir_names::TraceContext;
use weir_reports::{Span, SpanKind};

use super::{
    queues::{SETTINGS, configure, put},
    *,
};

const CONTEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn within(bus: &Bus) -> Parent {
    Parent { trace: bus.join_trace(&CONTEXT.parse().unwrap(), true), ..Parent::default() }
}

/// `caller provider outcome`, and what it was.
fn told(bus: &Bus) -> Vec<String> {
    let kind = |kind: &SpanKind| match kind {
        SpanKind::Request { contract, operation } => format!("{contract} {operation}"),
        SpanKind::Job { queue } => format!("queue {queue}"),
        SpanKind::Event { topic } => format!("event {topic}"),
        other => panic!("{other:?}"),
    };
    let spans = bus.spans(0, None, usize::MAX).spans;
    let tell = |span: &Span| {
        let provider = span.provider.as_deref().unwrap_or("-");
        format!("{} {provider} {}: {}", span.caller, span.outcome, kind(&span.kind))
    };
    spans.iter().map(tell).collect()
}

#[tokio::test(start_paused = true)]
async fn a_request_and_what_is_done_for_it_are_one_trace() {
    let bus = TestBus::new();
    let (a, b) = (bus.ready("a", &["a@1"], &["b@1"]), bus.ready("b", &["b@1"], &[]));
    let mut target = bus.open(bus.main(), "a@1", "do", None).unwrap();
    let term = bus.term(&target, None, within(&bus));
    let call = bus.call_to(bus.main(), &mut target, Bytes::new(), term, false).unwrap();
    tokio::time::advance(Duration::from_millis(3)).await;
    let outer = take_request(&a);
    let context = *outer.responder.span().unwrap().context();
    let mut target = bus.open(&a, "b@1", "do", None).unwrap();
    let parent = Parent { trace: Some(SpanOrigin::within(&context)), ..Parent::default() };
    let term = bus.term(&target, None, parent);
    let inner = bus.call_to(&a, &mut target, Bytes::new(), term, false).unwrap();
    let request = take_request(&b);
    let span = request.responder.span().unwrap().clone();
    span.note_fuel_before(100);
    span.note_fuel(350);
    tokio::time::advance(Duration::from_millis(4)).await;
    assert!(request.responder.give(ok("")));
    inner.answer().await.unwrap();
    drop(outer);
    assert_eq!(call.answer().await, Err(Error::PeerGone));

    assert_eq!(told(&bus), ["a b ok: b@1 do", "main a peer-gone: a@1 do"]);
    let spans = bus.spans(0, None, usize::MAX).spans;
    let [inner, outer] = &spans[..] else { panic!("{spans:?}") };
    let caller: TraceContext = CONTEXT.parse().unwrap();
    assert_eq!((outer.trace, outer.parent), (caller.trace, Some(caller.span)));
    assert_eq!((inner.trace, inner.parent), (caller.trace, Some(outer.span)));
    let ms = Duration::from_millis;
    assert_eq!((outer.waited, outer.worked, outer.duration), (Some(ms(3)), Some(ms(4)), ms(7)));
    assert_eq!((inner.waited, inner.worked, inner.fuel), (Some(ms(0)), Some(ms(4)), Some(250)));
    assert_eq!(outer.fuel, None);
}

#[tokio::test(start_paused = true)]
async fn each_way_that_a_request_ends_is_recorded_once() {
    let bus = TestBus::new();
    bus.configure_traces(u32::MAX, 100);
    let provider = bus.ready("p", &["p@1"], &[]);
    let caller = bus.ready("c", &[], &["p@1"]);
    let mut target = bus.open(&caller, "p@1", "do", None).unwrap();
    let mut send = || {
        let term = bus.term(&target, None, Parent::default());
        bus.call_to(&caller, &mut target, Bytes::new(), term, false)
    };
    let (given_up, answered, late) = (send().unwrap(), send().unwrap(), send().unwrap());
    drop(given_up);
    take_request(&provider).responder.give(Err(Error::Trapped));
    assert_eq!(answered.answer().await, Err(Error::Trapped));
    assert_eq!(late.answer().await, Err(Error::Timeout));
    provider.set_phase(Phase::Down);
    send().unwrap_err();
    let ended = ["cancelled", "trapped", "timeout"].map(|end| format!("c p {end}: p@1 do"));
    assert_eq!(told(&bus), ended);
    assert!(bus.spans(0, None, 9).spans.iter().all(|span| span.parent.is_none()));
}

#[tokio::test]
async fn a_full_inbox_is_recorded_as_the_end_of_a_request() {
    let bus = TestBus::new();
    bus.configure_traces(u32::MAX, 100);
    let _provider = bus.ready("p", &["p@1"], &[]);
    let mut target = bus.open(bus.main(), "p@1", "do", None).unwrap();
    let mut calls = Vec::new();
    let refused = loop {
        let term = bus.term(&target, None, Parent::default());
        match bus.call_to(bus.main(), &mut target, Bytes::new(), term, false) {
            Ok(call) => calls.push(call),
            Err(error) => break error,
        }
    };
    assert_eq!(refused, Error::Overloaded("p".into()));
    assert_eq!(told(&bus), ["main p overloaded: p@1 do"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_names_the_span_that_published_it() {
    let bus = TestBus::new();
    let peer = bus.ready("s", &[], &[]);
    bus.subscribe(&peer, peer.inbox(), "t").unwrap();
    let parent = within(&bus);
    bus.bus.publish(bus.main(), None, "t", "1".into(), (None, parent)).unwrap().receipt().await.unwrap();
    bus.publish(bus.main(), None, "t", "2".into()).unwrap();
    let [traced, plain] = [take_event(peer.inbox()), take_event(peer.inbox())];
    assert_eq!(told(&bus), ["main - ok: event t"]);
    let span = bus.spans(0, None, 9).spans.remove(0);
    let context = traced.published.trace.as_deref().unwrap();
    assert_eq!((context.trace, context.span), (span.trace, span.span));
    assert_eq!(plain.published.trace, None);

    // What a subscriber then does is another trace, with a link to it.
    let caused = || (None, Parent { trace: Some(SpanOrigin::after(context)), ..Parent::default() });
    drop(bus.bus.publish(bus.main(), None, "t", "3".into(), caused()).unwrap());
    assert_eq!(bus.span_counts(), (1, 0), "sampled as all others are");
    bus.configure_traces(u32::MAX, 100);
    drop(bus.bus.publish(bus.main(), None, "t", "4".into(), caused()).unwrap());
    let spans = bus.spans(1, None, 9).spans;
    assert_eq!((spans[0].link, spans[0].parent), (Some(*context), None));
    assert_ne!(spans[0].trace, span.trace);
}

#[tokio::test(start_paused = true)]
async fn each_delivery_of_a_job_is_recorded_with_the_trace_of_its_put() {
    let bus = TestBus::new();
    let queue = configure(&bus, SETTINGS);
    let parent = within(&bus);
    bus.bus.put(bus.main(), &queue, "1".into(), (None, parent)).unwrap().put().await.unwrap();
    put(&bus, &queue, "2").unwrap();
    let reader = JobReader::new("reader".into(), u64::MAX, None, || {});
    tokio::time::advance(Duration::from_millis(5)).await;
    drop(queue.take(&reader).unwrap());
    let job = queue.take(&reader).unwrap();
    assert_eq!(job.span().unwrap().context().trace, CONTEXT.parse::<TraceContext>().unwrap().trace);
    job.done();
    let plain = queue.take(&reader).unwrap();
    assert!(plain.span().is_none());
    plain.done();
    assert_eq!(told(&bus), ["main reader returned: queue q", "main reader ok: queue q"]);
    let spans = bus.spans(0, None, 9).spans;
    assert_eq!(spans[0].waited, Some(Duration::from_millis(5)));
    assert_eq!(spans[0].parent, spans[1].parent);
    assert_ne!(spans[0].span, spans[1].span);
}

#[tokio::test]
async fn what_need_not_be_recorded_is_sampled_as_all_others_are() {
    let bus = TestBus::new();
    let context = CONTEXT.parse().unwrap();
    assert!(bus.join_trace(&context, true).is_some());
    assert!(bus.join_trace(&context, false).is_none());
    bus.configure_traces(u32::MAX, 100);
    assert!(bus.join_trace(&context, false).is_some());
}

#[tokio::test]
async fn the_last_spans_are_kept_and_the_lost_are_counted() {
    let bus = TestBus::new();
    bus.configure_traces(u32::MAX, 4);
    for _ in 0..10 {
        bus.publish(bus.main(), None, "t", "".into()).unwrap();
    }
    let numbers = |after, max| {
        let spans = bus.spans(after, None, max);
        (spans.spans.iter().map(|span| span.number).collect::<Vec<_>>(), spans.recorded, spans.lost)
    };
    assert_eq!(numbers(0, 9), (vec![7, 8, 9, 10], 10, 6));
    assert_eq!(numbers(8, 1), (vec![9], 10, 6));
    assert_eq!(numbers(10, 9), (vec![], 10, 6));
    assert_eq!(numbers(u64::MAX, 9), (vec![], 10, 6));
    let one = bus.spans(0, None, 1).spans.remove(0);
    assert_eq!(bus.spans(0, Some(one.trace), 9).spans, [one]);
    bus.configure_traces(0, 2);
    bus.publish(bus.main(), None, "t", "".into()).unwrap();
    assert_eq!(numbers(0, 9), (vec![9, 10], 10, 8));
    assert_eq!(bus.span_counts(), (10, 8));
}

#[tokio::test]
async fn about_as_many_traces_are_sampled_as_configured() {
    let bus = TestBus::new();
    bus.configure_traces(u32::MAX / 4, 10_000);
    for _ in 0..4000 {
        bus.publish(bus.main(), None, "t", "".into()).unwrap();
    }
    let (sampled, _) = bus.span_counts();
    // Six standard deviations: once in a thousand million runs.
    assert!((1000 - 165..=1000 + 165).contains(&sampled), "{sampled}");
}
