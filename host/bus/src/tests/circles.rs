//! Waits that would never end are refused, with the names of the waiting peers.

use weir_names::{Policy, QueuePolicy};

use super::*;

fn circle(names: &[&str]) -> Error {
    Error::WouldDeadlock(names.iter().map(|&name| name.to_owned()).collect())
}

#[tokio::test(start_paused = true)]
async fn a_blocking_call_to_oneself_is_refused() {
    let bus = TestBus::new();
    let a = bus.ready("a", &["a@1"], &["a@1"]);
    assert_eq!(blocking(&bus, &a, "a@1").unwrap_err(), circle(&["a", "a"]));
    let invalid = Error::Invalid("`a` sends a request to itself".to_owned());
    assert_eq!(bus.send(&a, "a@1", "").unwrap_err(), invalid);
}

#[tokio::test(start_paused = true)]
async fn a_circle_of_two_is_refused_and_names_both() {
    let bus = TestBus::new();
    let (a, b) = (bus.ready("a", &["a@1"], &["b@1"]), bus.ready("b", &["b@1"], &["a@1"]));
    let call = blocking(&bus, &a, "b@1").unwrap();
    assert_eq!(blocking(&bus, &b, "a@1").unwrap_err(), circle(&["b", "a", "b"]));
    drop(take_request(&b));
    assert_eq!(call.answer().await, Err(Error::PeerGone));
    drop(blocking(&bus, &b, "a@1").expect("nobody waits any more"));
}

#[tokio::test(start_paused = true)]
async fn a_circle_of_three_is_refused_and_names_all() {
    let bus = TestBus::new();
    let a = bus.ready("a", &["a@1"], &["b@1"]);
    let b = bus.ready("b", &["b@1"], &["c@1"]);
    let c = bus.ready("c", &["c@1"], &["a@1"]);
    let calls = [blocking(&bus, &a, "b@1").unwrap(), blocking(&bus, &b, "c@1").unwrap()];
    assert_eq!(blocking(&bus, &c, "a@1").unwrap_err(), circle(&["c", "a", "b", "c"]));
    drop(calls);
}

#[tokio::test(start_paused = true)]
async fn who_waits_without_blocking_can_still_answer_and_closes_no_circle() {
    let bus = TestBus::new();
    let (a, b) = (bus.ready("a", &["a@1"], &["b@1"]), bus.ready("b", &["b@1"], &["a@1"]));
    bus.send(&a, "b@1", "").unwrap();
    let back = blocking(&bus, &b, "a@1").unwrap();
    take_request(&a).responder.give(ok("still here"));
    assert_eq!(back.answer().await, ok("still here"));
    take_request(&b).responder.give(ok(""));
    take_reply(&a);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_gave_up_or_timed_out_is_in_no_circle() {
    let bus = TestBus::new();
    let (a, b) = (bus.ready("a", &["a@1"], &["b@1"]), bus.ready("b", &["b@1"], &["a@1"]));
    drop(blocking(&bus, &a, "b@1").unwrap());
    drop(blocking(&bus, &b, "a@1").unwrap());
    assert_eq!(blocking(&bus, &a, "b@1").unwrap().answer().await, Err(Error::Timeout));
    drop(blocking(&bus, &b, "a@1").unwrap());
}

/// Circles of waits for room: every real one is found, and no other.
fn block(bus: &TestBus, peer: &Arc<Peer>, pattern: &str, messages: u32) {
    let delivery = LaneSettings { policy: Policy::Block, messages, bytes: u64::MAX };
    bus.bus.subscribe(peer, peer.inbox(), pattern, Some(delivery)).unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_fills_its_own_inbox_with_the_first_of_two_subscriptions_does_not_wait_for_itself() {
    let bus = TestBus::new();
    let peer = bus.ready("a", &[], &[]);
    block(&bus, &peer, "t.*", 100);
    block(&bus, &peer, "t.x", 100);
    // Room for one more.
    for number in 0..7 {
        let topic = format!("t.{number}y");
        bus.publish(bus.main(), None, &topic, "".into()).unwrap();
    }
    let publishing = bus.bus.publish(&peer, None, "t.x", "".into(), (None, Parent::default()));
    let outcome = publishing.map(|publishing| publishing.receipt().now_or_never());
    assert!(!matches!(outcome, Ok(None)), "it waits for itself, to its deadline");
}

#[tokio::test(start_paused = true)]
async fn who_has_made_room_is_not_waited_for_any_more() {
    let bus = TestBus::new();
    let publisher = bus.ready("p", &["p@1"], &[]);
    let (quick, slow) = (bus.ready("quick", &[], &["p@1"]), bus.ready("slow", &[], &[]));
    for peer in [&quick, &slow] {
        block(&bus, peer, "t", 1);
    }
    bus.publish(bus.main(), None, "t", "".into()).unwrap();
    let waits = bus.bus.publish(&publisher, None, "t", "".into(), (None, Parent::default())).unwrap();
    take_event(quick.inbox());
    let mut target = bus.open(&quick, "p@1", "do", None).unwrap();
    let deadline = bus.term(&target, None, Parent::default());
    let call = bus.call_to(&quick, &mut target, Bytes::new(), deadline.clone(), true).map(drop);
    drop(waits);
    assert_eq!(call, Ok(()), "`p` waits for `slow` alone, which waits for nobody");
}

#[tokio::test(start_paused = true)]
async fn an_extension_that_waits_for_a_program_that_waits_for_it_closes_no_circle_and_ends_in_time() {
    let bus = TestBus::new();
    let name = bus.name("sidecar:x", &["x@1"], &["a@1"]);
    let (session, extension) = (bus.arrive_with(&name, LIMITS, &["x@1"]), bus.ready("a", &["a@1"], &["x@1"]));
    let of_the_program = bus.call(&session, "a@1", "").unwrap();
    let of_the_extension = blocking(&bus, &extension, "x@1").unwrap();
    // A circle among the program's own tasks ends in time, too.
    let started = Instant::now();
    assert_eq!(of_the_extension.answer().await, Err(Error::Timeout));
    assert_eq!(of_the_program.answer().await, Err(Error::Timeout));
    assert_eq!(started.elapsed(), LIMITS.request_timeout);
}

#[tokio::test(start_paused = true)]
async fn a_program_that_waits_for_room_still_answers_and_closes_no_circle() {
    let bus = TestBus::new();
    let name = bus.name("sidecar:x", &["x@1"], &["a@1"]);
    let session = bus.arrive_with(&name, LIMITS, &["x@1"]);
    let inbox = InboxLimits { messages: 1, bytes: 4096 };
    let limits = PeerLimits { inbox, when_full: RequestPolicy::Block, ..LIMITS };
    let extension = bus.add_with("a", limits, &["a@1"], &["x@1"]);
    start(&extension, &["a@1"]);
    let filling = bus.call(bus.main(), "a@1", "").unwrap();
    let mut target = bus.open(&session, "a@1", "do", None).unwrap();
    let term = bus.term(&target, None, Parent::default());
    let (waiter, _sending) = bus.bus.send(&session, &mut target, Bytes::new(), term.clone()).unwrap();
    let back = blocking(&bus, &extension, "x@1").map(|call| {
        take_request(&session).responder.give(ok("still here"));
        call.answer().now_or_never()
    });
    waiter.cancel();
    drop(filling);
    assert_eq!(back, Ok(Some(ok("still here"))));
}

#[tokio::test(start_paused = true)]
async fn a_program_that_is_the_only_reader_of_a_full_queue_may_wait_for_room_there() {
    let bus = TestBus::new();
    let settings =
        QueueSettings { messages: 1, when_full: QueuePolicy::Block, max_deliveries: 1, ..queues::SETTINGS };
    bus.configure_queues(vec![("q".parse().unwrap(), settings, None)]);
    let queue = bus.queue("q").unwrap();
    let access = Access { puts: vec![queue.name().clone()], ..Access::default() };
    let session = bus.arrive(&bus.add_name(&"app:x".parse().unwrap(), access).unwrap(), LIMITS);
    queue.join(session.id());
    let put = || bus.bus.put(&session, &queue, Bytes::new(), (None, Parent::default())).unwrap().put();
    put().now_or_never().unwrap().unwrap();
    let mut waiting = Box::pin(put());
    assert!((&mut waiting).now_or_never().is_none());
    queue.take(&JobReader::new("reader".into(), u64::MAX, None, || {})).unwrap().done();
    waiting.now_or_never().unwrap().unwrap();

    bus.leave(&session);
    let late = bus.bus.put(&session, &queue, Bytes::new(), (None, Parent::default()));
    assert_eq!(late.map(drop), Err(Error::PeerGone));
}
