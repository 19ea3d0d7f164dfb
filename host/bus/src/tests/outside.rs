//! Programs outside Main: how they come and go under their names, and what others notice of it.

use weir_names::Policy;

use super::*;

fn invalid(text: &str) -> Result<(), Error> {
    Err(Error::Invalid(text.to_owned()))
}

fn no_provider(text: &str) -> Error {
    Error::NoProvider(text.to_owned())
}

fn serve(bus: &TestBus, session: &Arc<Peer>, contract: &str) -> Result<(), Error> {
    bus.bus.serve(session, contract, &["do".to_owned()])
}

#[tokio::test(start_paused = true)]
async fn a_program_serves_until_it_leaves_and_then_nobody_is_connected() {
    let bus = TestBus::new();
    let name = bus.name("sidecar:x", &["x@1"], &[]);
    let gone = no_provider("`sidecar:x` is not connected");
    let call = |payload| bus.call(bus.main(), "x@1", payload);
    let contract = "x@1".parse().unwrap();
    assert_eq!((call("too early").map(drop), bus.is_served(&contract)), (Err(gone.clone()), false));

    let session = bus.arrive_with(&name, LIMITS, &["x@1"]);
    assert!(bus.is_served(&contract));
    let served = call("1").unwrap();
    take_request(&session).responder.give(ok("2"));
    assert_eq!(served.answer().await, ok("2"));

    let (in_hand, waiting) = (call("in hand").unwrap(), call("waiting").unwrap());
    let request = take_request(&session);
    bus.leave(&session);
    assert_eq!(waiting.answer().now_or_never(), Some(Err(Error::PeerGone)));
    assert_eq!((call("too late").map(drop), bus.is_served(&contract)), (Err(gone), false));
    drop(request);
    assert_eq!(in_hand.answer().now_or_never(), Some(Err(Error::PeerGone)));
    assert_eq!(bus.owner_of(&contract).unwrap().id(), name.id());
    assert!(matches!(session.take(), Taken::Stop));
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_was_looked_up_follows_its_contract_from_one_program_to_the_next() {
    let bus = TestBus::new();
    let name = bus.name("sidecar:x", &["x@1"], &[]);
    let first = bus.arrive_with(&name, LIMITS, &["x@1"]);
    let mut target = bus.open(bus.main(), "x@1", "do", None).unwrap();
    let mut named = bus.open(bus.main(), "x@1", "do", Some("sidecar:x")).unwrap();
    bus.leave(&first);
    let next = bus.arrive(&name, LIMITS);
    // The numbers of operations are those of the program that serves.
    bus.bus.serve(&next, "x@1", &["undo".to_owned(), "do".to_owned()]).unwrap();
    for target in [&mut target, &mut named] {
        let term = bus.term(target, None, Parent::default());
        let call = bus.call_to(bus.main(), target, "".into(), term.clone(), false).unwrap();
        let request = take_request(&next);
        assert_eq!(request.number, 1);
        request.responder.give(ok("by the next"));
        assert_eq!(call.answer().await, ok("by the next"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_looked_up_before_its_program_came_has_the_timeout_of_that_program() {
    let bus = TestBus::new();
    let name = bus.name("sidecar:x", &["x@1"], &[]);
    let early = bus.open(bus.main(), "x@1", "do", None).unwrap();
    let _session = bus.arrive_with(&name, LIMITS, &["x@1"]);
    let term = bus.term(&early, None, Parent::default());
    assert_eq!(u128::from(term.allowed), LIMITS.request_timeout.as_nanos());
}

#[tokio::test(start_paused = true)]
async fn of_two_programs_with_one_name_the_second_serves_a_contract_once_the_first_has_left() {
    let bus = TestBus::new();
    let name = bus.name("sidecar:x", &["x@1", "y@1"], &[]);
    let first = bus.arrive_with(&name, LIMITS, &["x@1"]);
    let second = bus.arrive_with(&name, LIMITS, &["y@1"]);
    let taken = invalid("`x@1` is served by another session of `sidecar:x`");
    assert_eq!(serve(&bus, &second, "x@1"), taken);
    assert_eq!(serve(&bus, &first, "x@1"), invalid("`x@1` is served already"));
    let call = bus.call(bus.main(), "x@1", "").unwrap();
    assert!(matches!(second.take(), Taken::Empty));
    take_request(&first).responder.give(ok(""));
    call.answer().await.unwrap();

    bus.leave(&first);
    serve(&bus, &second, "x@1").unwrap();
    for contract in ["x@1", "y@1"] {
        let call = bus.call(bus.main(), contract, "").unwrap();
        take_request(&second).responder.give(ok(contract));
        assert_eq!(call.answer().await, ok(contract));
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_one_program_takes_nothing_from_another_with_its_name() {
    let bus = TestBus::new();
    let name = bus.name("sidecar:x", &["x@1"], &[]);
    let first = bus.arrive(&name, LIMITS);
    let second = bus.arrive_with(&name, LIMITS, &["x@1"]);
    for session in [&first, &second] {
        bus.subscribe(session, session.inbox(), "t").unwrap();
    }
    let call = bus.call(bus.main(), "x@1", "").unwrap();
    bus.leave(&first);
    assert_eq!(bus.publish(bus.main(), None, "t", "1".into()).unwrap().delivered, 1);
    take_request(&second).responder.give(ok("2"));
    assert_eq!(call.answer().await, ok("2"));
    assert_eq!(take_event(second.inbox()).published.payload, "1");
}

#[tokio::test(start_paused = true)]
async fn what_an_extension_owns_no_program_serves() {
    let bus = TestBus::new();
    let name = bus.name("sidecar:x", &["x@1"], &[]);
    let session = bus.arrive(&name, LIMITS);
    bus.ready("a", &["x@1"], &[]);
    assert_eq!(serve(&bus, &session, "x@1"), invalid("`x@1` is served by `a`"));
    assert_eq!(bus.owner_of(&"x@1".parse().unwrap()).unwrap().name(), "a");
}

#[tokio::test(start_paused = true)]
async fn a_program_that_has_left_begins_nothing_more() {
    let bus = TestBus::new();
    let name = bus.name("sidecar:x", &["x@1"], &[]);
    let session = bus.arrive_with(&name, LIMITS, &["x@1"]);
    bus.subscribe(&session, session.inbox(), "t").unwrap();
    bus.leave(&session);
    assert_eq!(serve(&bus, &session, "x@1"), Err(Error::PeerGone));
    assert_eq!(bus.subscribe(&session, session.inbox(), "u").map(drop), Err(Error::PeerGone));
    assert_eq!((bus.subscribers(&"t".parse().unwrap()), bus.subscriptions().len()), (0, 0));
    // To leave twice is to leave once.
    let next = bus.arrive_with(&name, LIMITS, &["x@1"]);
    bus.leave(&session);
    drop(bus.call(bus.main(), "x@1", "").unwrap());
    assert_eq!(next.inbox().depth().0, 1);
}

#[tokio::test(start_paused = true)]
async fn messages_of_a_program_carry_its_name_also_after_it_has_left_and_never_that_of_another() {
    let bus = TestBus::new();
    bus.retain(["t".parse().unwrap()]);
    let name = bus.name("app:x", &[], &["a@1"]);
    bus.bus
        .add_name(
            &"app:x".parse().unwrap(),
            Access { puts: vec!["q".parse().unwrap()], ..any_topic(&[], &["a@1"]) },
        )
        .unwrap();
    let extension = bus.ready("a", &["a@1"], &[]);
    let queue = queue(&bus, &["q"]);
    let session = bus.arrive(&name, LIMITS);
    let call = bus.call(&session, "a@1", "").unwrap();
    bus.publish(&session, None, "t", "last".into()).unwrap();
    let put = bus.bus.put(&session, &queue, "".into(), (None, Parent::default())).unwrap().put();
    put.now_or_never().unwrap().unwrap();
    drop(call);
    bus.leave(&session);
    bus.name("app:y", &[], &[]);
    for _ in 0..3 {
        bus.arrive(&bus.name("app:y", &[], &[]), LIMITS);
    }

    bus.subscribe(&extension, extension.inbox(), "t").unwrap();
    let event = take_event(extension.inbox());
    let job = &queue.jobs(1)[0];
    for sender in [event.published.sender, job.sender, name.id()] {
        assert_eq!(bus.peer(sender).unwrap().name(), "app:x");
    }
    assert!(bus.peer(session.id()).is_none());
}

#[tokio::test(start_paused = true)]
async fn an_extension_sees_the_name_as_the_sender_of_a_request() {
    let bus = TestBus::new();
    let name = bus.name("app:x", &[], &["a@1"]);
    let extension = bus.ready("a", &["a@1"], &[]);
    let session = bus.arrive(&name, LIMITS);
    let call = bus.call(&session, "a@1", "").unwrap();
    let request = take_request(&extension);
    bus.leave(&session);
    assert_eq!(bus.peer(request.responder.sender()).unwrap().name(), "app:x");
    drop((request, call));
}

#[tokio::test(start_paused = true)]
async fn an_event_to_a_name_reaches_all_its_programs_and_nobody_once_they_have_left() {
    let bus = TestBus::new();
    let name = bus.name("app:x", &[], &[]);
    let to_it = || bus.publish(bus.main(), Some("app:x"), "t", "".into());
    let nobody = no_provider("`app:x` does not run or has not subscribed to `t`");
    assert_eq!(to_it(), Err(nobody.clone()));
    let sessions = [(); 3].map(|()| bus.arrive(&name, LIMITS));
    let other = bus.arrive(&bus.name("app:y", &[], &[]), LIMITS);
    for session in sessions.iter().chain([&other]) {
        bus.subscribe(session, session.inbox(), "t").unwrap();
    }
    assert_eq!(to_it().unwrap().delivered, 3);
    sessions.iter().for_each(|session| drop(take_event(session.inbox())));
    assert!(matches!(other.take(), Taken::Empty));
    sessions.iter().for_each(|session| bus.leave(session));
    assert_eq!(to_it(), Err(nobody));
}

#[tokio::test(start_paused = true)]
async fn senders_that_wait_for_room_in_the_inbox_of_a_program_hear_at_once_that_it_has_left() {
    let bus = TestBus::new();
    let name = bus.name("sidecar:x", &["x@1"], &[]);
    let inbox = InboxLimits { messages: 1, bytes: 4096 };
    let limits = PeerLimits { inbox, when_full: RequestPolicy::Block, ..LIMITS };
    let session = bus.arrive_with(&name, limits, &["x@1"]);
    let block = LaneSettings { policy: Policy::Block, messages: 1, bytes: u64::MAX };
    bus.bus.subscribe(&session, session.inbox(), "t", Some(block)).unwrap();
    bus.publish(bus.main(), None, "t", "".into()).unwrap();
    let publishing =
        bus.bus.publish(bus.main(), None, "t", "".into(), (None, Parent::default())).unwrap().receipt();
    let mut publishing = Box::pin(publishing);
    let calls = [(); 3].map(|()| bus.call(bus.main(), "x@1", "").unwrap());
    let extension = bus.ready("a", &[], &["x@1"]);
    let mut target = bus.open(&extension, "x@1", "do", None).unwrap();
    let term = bus.term(&target, None, Parent::default());
    let (_waiter, sending) = bus.bus.send(&extension, &mut target, "".into(), term.clone()).unwrap();
    assert!((&mut publishing).now_or_never().is_none());

    bus.leave(&session);
    assert_eq!(publishing.now_or_never().unwrap().unwrap(), Receipt { refused: 1, ..Receipt::default() });
    for call in calls {
        assert_eq!(call.answer().now_or_never(), Some(Err(Error::PeerGone)));
    }
    sending.sent().now_or_never().unwrap();
    assert_eq!(take_reply(&extension).outcome, Err(Error::PeerGone));
}

#[tokio::test(start_paused = true)]
async fn a_name_keeps_its_number_and_there_are_4096_at_most() {
    let bus = TestBus::new();
    let first = bus.name("app:n0", &[], &[]);
    for number in 1..4096 {
        bus.name(&format!("app:n{number}"), &[], &[]);
    }
    let one_more = bus.add_name(&"app:n4096".parse().unwrap(), Access::default());
    let over = Error::LimitExceeded { name: "peer-names".into(), used: 4097, allowed: 4096 };
    assert_eq!(one_more.map(drop), Err(over));
    // Configured without it, and with it again.
    bus.add_name(&"app:n0".parse().unwrap(), Access::default()).unwrap();
    assert_eq!(bus.name("app:n0", &[], &[]).id(), first.id());
}

#[tokio::test(start_paused = true)]
async fn the_number_of_a_program_that_is_there_is_given_to_no_other() {
    let bus = TestBus::new();
    let name = bus.name("app:x", &[], &[]);
    let sessions = [(); 3].map(|()| bus.arrive(&name, LIMITS));
    // After two thousand million programs, the numbers begin again.
    bus.owners().count_sessions_from(PeerId(u32::MAX - 1));
    let later = [(); 3].map(|()| bus.arrive(&name, LIMITS));
    let mut numbers: Vec<_> = sessions.iter().chain(&later).map(|session| session.id()).collect();
    assert!(numbers.iter().all(|number| *number >= PeerId::FIRST_SESSION));
    numbers.sort();
    numbers.dedup();
    assert_eq!(numbers.len(), 6);
    assert!(
        sessions.iter().chain(&later).all(|session| bus.peer(session.id()).unwrap().id() == session.id())
    );
}

/// The first of these queues, each with room for everything.
pub(super) fn queue(bus: &TestBus, names: &[&str]) -> Arc<SharedQueue> {
    let settings = QueueSettings { messages: 100, bytes: 1 << 20, ..queues::SETTINGS };
    let configured = names.iter().map(|name| (name.parse().unwrap(), settings.clone(), None));
    bus.configure_queues(configured.collect());
    bus.queue(names[0]).unwrap()
}
