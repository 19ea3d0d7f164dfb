//! Waits of programs outside Main: they wait independently, so none of them closes a circle.

use weir_names::QueuePolicy;

use super::*;

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
