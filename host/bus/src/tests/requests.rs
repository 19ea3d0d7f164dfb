//! Every request is answered once, by value or by error, within its deadline.

use super::*;

#[tokio::test(start_paused = true)]
async fn an_answer_reaches_the_caller_and_a_second_one_nobody() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let call = bus.call(&caller, "c@1", "question").unwrap();
    assert_eq!(bus.waiters(), 1);
    let request = take_request(&provider);
    assert_eq!((request.responder.sender(), &*request.payload), (caller.id(), &b"question"[..]));
    assert!(request.responder.give(ok("first")));
    assert!(!request.responder.give(ok("second")));
    drop(request);
    assert_eq!(call.answer().await, ok("first"));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_watched_yet_has_an_end_however_it_goes_on() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let mut target = bus.open(&caller, "c@1", "do", None).unwrap();
    let term = bus.term(&target, None, Parent::default());
    let mut send = || bus.bus.call(&caller, &mut target, Bytes::new().into(), term.clone(), false).unwrap();
    let [answered, given_up, in_time, after_the_end] = [send(), send(), send(), send()];
    assert_eq!(bus.waiters(), 0);
    take_request(&provider).responder.give(ok("at once"));
    assert_eq!(bus.watch(answered).answer().await, ok("at once"));
    let request = take_request(&provider);
    drop(given_up);
    assert!(request.responder.is_done());
    let in_time = bus.watch(in_time);
    assert_eq!(bus.waiters(), 1);
    assert_eq!(in_time.answer().await, Err(Error::Timeout));
    bus.close();
    assert_eq!(bus.watch(after_the_end).answer().await, Err(Error::PeerGone));
    assert_eq!(bus.waiters(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_providers_own_error_arrives_as_it_was_given() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let call = bus.call(&caller, "c@1", "").unwrap();
    let error = Error::from(HandlerError::new("not-found", "no such key"));
    take_request(&provider).responder.give(Err(error.clone()));
    assert_eq!(call.answer().await, Err(error));
}

#[tokio::test(start_paused = true)]
async fn a_request_dropped_unanswered_is_answered_peer_gone() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let call = bus.call(&caller, "c@1", "").unwrap();
    drop(take_request(&provider));
    assert_eq!(call.answer().await, Err(Error::PeerGone));
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_stops_leaves_nobody_waiting_for_what_it_had_not_reached() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let call = bus.call(&caller, "c@1", "").unwrap();
    let sent = bus.send(&caller, "c@1", "").unwrap().id();
    provider.set_phase(Phase::Down);
    provider.inbox().clear(Seat::FIRST);
    assert_eq!(call.answer().await, Err(Error::PeerGone));
    let reply = take_reply(&caller);
    assert_eq!((reply.id, reply.outcome), (sent, Err(Error::PeerGone)));
}

#[tokio::test(start_paused = true)]
async fn at_its_deadline_a_request_is_a_timeout_and_the_late_answer_is_heard_by_nobody() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let call = bus.call(&caller, "c@1", "").unwrap();
    let request = take_request(&provider);
    let sent = Instant::now();
    assert_eq!(call.answer().await, Err(Error::Timeout));
    assert_eq!(sent.elapsed().as_secs(), 5);
    assert!(request.responder.is_done());
    assert!(!request.responder.give(ok("late")));
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_one_that_is_gone_ends_at_its_own_deadline_and_not_later() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let in_hand = bus.call(&caller, "c@1", "").unwrap();
    let request = take_request(&provider);
    let sent = Instant::now();
    let waits = [1, 3].map(|seconds| {
        let mut target = bus.open(&caller, "c@1", "do", None).unwrap();
        let deadline = bus.term(&target, Some(Duration::from_secs(seconds)), Parent::default());
        bus.call_to(&caller, &mut target, "".into(), deadline.clone(), false).unwrap()
    });
    // It dies; its inbox is not cleared, and it does not start again.
    request.responder.give(Err(Error::Trapped));
    provider.set_phase(Phase::Down);
    assert_eq!(in_hand.answer().await, Err(Error::Trapped));
    assert_eq!(sent.elapsed(), Duration::ZERO);
    for (call, seconds) in waits.into_iter().zip([1, 3]) {
        assert_eq!(call.answer().await, Err(Error::Timeout));
        // To the millisecond, as tokio's timers count.
        assert_eq!(sent.elapsed().as_millis().div_ceil(1000), seconds, "{:?}", sent.elapsed());
    }
    provider.begin_instance();
    assert!(matches!(provider.take(), Taken::Empty), "nobody wants it any more");
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_is_still_starting_at_the_deadline_is_not_ready() {
    let bus = TestBus::new();
    let caller = bus.ready("a", &[], &["c@1"]);
    let provider = bus.add("p", &["c@1"], &[]);
    provider.begin_instance();
    let call = bus.call(&caller, "c@1", "").unwrap();
    let Err(Error::NotReady(text)) = call.answer().await else { panic!("not `not-ready`") };
    assert_eq!(text, "`p` is still starting");
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_receiver_refuses_at_once_and_says_why() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    provider.set_phase_if_up(Phase::Interrupted("no network".to_owned()));
    let refused = bus.call(&caller, "c@1", "").unwrap_err();
    assert_eq!(refused, Error::NotReady("`p` is interrupted: no network".to_owned()));
    provider.set_phase_if_up(Phase::Ready);
    drop(bus.call(&caller, "c@1", "").unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_is_down_or_stopping_refuses_at_once() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    for (phase, text) in [(Phase::Draining, "`p` is stopping"), (Phase::Down, "`p` is not running")] {
        provider.set_phase(phase);
        assert_eq!(bus.call(&caller, "c@1", "").unwrap_err(), Error::NoProvider(text.to_owned()));
        // Its own word does not bring it back.
        provider.set_phase_if_up(Phase::Ready);
        assert_eq!(bus.send(&caller, "c@1", "").unwrap_err(), Error::NoProvider(text.to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_gives_up_is_forgotten_and_its_request_never_delivered() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    drop(bus.call(&caller, "c@1", "abandoned").unwrap());
    bus.send(&caller, "c@1", "cancelled").unwrap().cancel();
    assert_eq!(bus.waiters(), 0);
    assert!(matches!(provider.take(), Taken::Empty));
    assert!(matches!(caller.take(), Taken::Empty));
}

#[tokio::test(start_paused = true)]
async fn a_request_cancelled_in_hand_leaves_no_reply_behind() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let waiter = bus.send(&caller, "c@1", "").unwrap();
    let request = take_request(&provider);
    waiter.cancel();
    assert!(!request.responder.give(ok("too late")));
    assert!(matches!(caller.take(), Taken::Empty));
    caller.stop();
    assert!(matches!(caller.take(), Taken::Stop));
    assert!(matches!(caller.take(), Taken::Stop), "no reply is still to come");
}

#[tokio::test(start_paused = true)]
async fn an_inbox_full_by_count_refuses_by_name_and_counts() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let waiting: Vec<_> = (0..8).map(|_| bus.call(&caller, "c@1", "").unwrap()).collect();
    for _ in 0..5 {
        assert_eq!(bus.call(&caller, "c@1", "").unwrap_err(), Error::Overloaded("p".to_owned()));
        assert_eq!(bus.send(&caller, "c@1", "").unwrap_err(), Error::Overloaded("p".to_owned()));
    }
    assert_eq!(bus.waiters(), 8);
    assert_eq!(provider.stats().shed.load(Ordering::Relaxed), 10);
    let told: Vec<u64> = bus.losses.lock().unwrap().iter().map(|(_, total)| *total).collect();
    assert_eq!(told, [1, 2, 4, 8], "a flood of messages is no flood of events");
    assert!(matches!(caller.take(), Taken::Empty), "what was refused gets no reply, too");
    drop(waiting);
}

#[tokio::test(start_paused = true)]
async fn an_inbox_full_by_bytes_refuses() {
    let bus = TestBus::new();
    let (_provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let payload = Bytes::from(vec![0; 1024]);
    let mut target = bus.open(&caller, "c@1", "do", None).unwrap();
    let deadline = bus.term(&target, None, Parent::default());
    let mut send = || bus.call_to(&caller, &mut target, payload.clone(), deadline.clone(), false);
    // Each counts 1024 bytes and its envelope: three fit into 4096.
    let waiting: Vec<_> = (0..3).map(|_| send().unwrap()).collect();
    assert_eq!(send().unwrap_err(), Error::Overloaded("p".to_owned()));
    drop(waiting);
}

#[tokio::test(start_paused = true)]
async fn requests_that_nobody_waits_for_any_more_make_room() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let mut waiting: Vec<_> = (0..8).map(|_| bus.call(&caller, "c@1", "").unwrap()).collect();
    assert!(bus.call(&caller, "c@1", "").is_err());
    waiting.truncate(7);
    let last = bus.call(&caller, "c@1", "last").unwrap();
    waiting.push(last);
    for _ in 0..7 {
        assert_eq!(take_request(&provider).payload, "");
    }
    assert_eq!(take_request(&provider).payload, "last");
    assert!(matches!(provider.take(), Taken::Empty));
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_for_sender_receiver_or_caller_says_so() {
    let bus = TestBus::new();
    let small = PeerLimits { message_size: 16, ..LIMITS };
    let provider = bus.add_with("p", small, &["c@1"], &["d@1"]);
    start(&provider, &["c@1"]);
    let other = bus.ready("a", &["d@1"], &["c@1"]);
    let long = "longer than sixteen bytes";
    let too_large = Error::TooLarge { bytes: 25, allowed: 16 };
    // Over the receiver's limit, and over the sender's.
    assert_eq!(bus.call(&other, "c@1", long).unwrap_err(), too_large);
    assert_eq!(bus.call(&provider, "d@1", long).unwrap_err(), too_large);
    // An answer over the caller's limit.
    let call = bus.call(&provider, "d@1", "").unwrap();
    take_request(&other).responder.give(ok(long));
    assert_eq!(call.answer().await, Err(too_large));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_is_the_shortest_of_what_is_asked_left_and_possible() {
    let bus = TestBus::new();
    let (_provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let target = bus.open(&caller, "c@1", "do", None).unwrap();
    let (now, second) = (Instant::now(), Duration::from_secs(1));
    assert_eq!(bus.term(&target, None, Parent::default()).deadline, now + 5 * second);
    assert_eq!(bus.term(&target, Some(9 * second), Parent::default()).deadline, now + 9 * second);
    assert_eq!(bus.term(&target, Some(9 * second), by(now + second)).deadline, now + second);
    assert_eq!(bus.term(&target, Some(second), by(now + 2 * second)).deadline, now + second);
    assert_eq!(
        bus.term(&target, Some(Duration::MAX), Parent::default()).deadline,
        now + 7 * 24 * 3600 * second
    );
}

#[tokio::test(start_paused = true)]
async fn deadlines_end_in_their_own_order_whatever_the_order_of_sending() {
    let bus = TestBus::new();
    let (_provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let mut target = bus.open(&caller, "c@1", "do", None).unwrap();
    let began = Instant::now();
    let mut sent = Vec::new();
    for seconds in [3, 1, 2] {
        let term = Term::new(began, began + Duration::from_secs(seconds));
        sent.push(bus.bus.send(&caller, &mut target, Bytes::new(), term.clone()).unwrap().0.id());
        // The timer is armed for the earliest so far before the next send.
        tokio::task::yield_now().await;
    }
    for (seconds, index) in [(1, 1), (2, 2), (3, 0)] {
        caller.readable().await;
        let reply = take_reply(&caller);
        assert_eq!((reply.id, reply.outcome), (sent[index], Err(Error::Timeout)));
        assert_eq!(began.elapsed().as_secs(), seconds);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_has_passed_already_ends_the_request_all_the_same() {
    let bus = TestBus::new();
    let (_provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let mut target = bus.open(&caller, "c@1", "do", None).unwrap();
    let now = Instant::now();
    let term = Term::new(now, now);
    let call = bus.call_to(&caller, &mut target, Bytes::new(), term.clone(), false).unwrap();
    assert_eq!(call.answer().await, Err(Error::Timeout));
}

#[tokio::test(start_paused = true)]
async fn requests_and_replies_keep_the_order_of_sender_and_receiver() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let sent: Vec<_> = (0..8).map(|_| bus.send(&caller, "c@1", "").unwrap().id()).collect();
    for id in &sent {
        let request = take_request(&provider);
        assert_eq!(request.responder.id(), *id);
        request.responder.give(ok(""));
    }
    for id in &sent {
        assert_eq!(take_reply(&caller).id, *id);
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_reaches_the_next_instance_under_its_own_numbers() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1", "d@1"], &[]), bus.ready("a", &[], &["c@1", "d@1"]));
    let mut target = bus.open(&caller, "d@1", "do", None).unwrap();
    let deadline = bus.term(&target, None, Parent::default());
    let waiting = bus.call_to(&caller, &mut target, "waits".into(), deadline.clone(), false).unwrap();
    start(&provider, &["d@1", "c@1"]);
    let later = bus.call_to(&caller, &mut target, "later".into(), deadline.clone(), false).unwrap();
    for payload in ["waits", "later"] {
        let request = take_request(&provider);
        assert_eq!((request.number, &*request.payload), (0, payload.as_bytes()));
        request.responder.give(ok("done"));
    }
    assert_eq!(waiting.answer().await, ok("done"));
    assert_eq!(later.answer().await, ok("done"));
}

#[tokio::test(start_paused = true)]
async fn what_the_next_instance_does_not_serve_is_answered_for_it() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1", "d@1"], &[]), bus.ready("a", &[], &["c@1", "d@1"]));
    let mut target = bus.open(&caller, "d@1", "do", None).unwrap();
    let deadline = bus.term(&target, None, Parent::default());
    let call = bus.call_to(&caller, &mut target, Bytes::new(), deadline.clone(), false).unwrap();
    start(&provider, &["c@1"]);
    assert!(matches!(provider.take(), Taken::Empty));
    let unknown = Error::Invalid("`d@1` has no operation `do` in `p`".to_owned());
    assert_eq!(call.answer().await, Err(unknown.clone()));
    assert_eq!(
        bus.call_to(&caller, &mut target, Bytes::new(), deadline.clone(), false).unwrap_err(),
        unknown
    );
    assert_eq!(
        bus.open(&caller, "c@1", "undo", None).unwrap_err(),
        Error::Invalid("`c@1` has no operation `undo` in `p`; it has `do`".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn who_asks_for_an_operation_that_there_is_not_is_told_the_first_that_there_are() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.add("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    provider.begin_instance();
    let operations: Vec<_> = (0..18).map(|number| format!("o{number}")).collect();
    provider.serve("c@1", &operations).unwrap();
    provider.set_phase_if_up(Phase::Ready);
    let Error::Invalid(told) = bus.open(&caller, "c@1", "p", None).unwrap_err() else {
        panic!("it is there")
    };
    assert!(told.starts_with("`c@1` has no operation `p` in `p`; it has `o0`, `o1`,"), "{told}");
    assert!(told.ends_with(" `o15` and 2 more"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn replies_to_a_dead_instance_do_not_reach_the_next() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let waiter = bus.send(&caller, "c@1", "").unwrap();
    bus.send(&caller, "c@1", "").unwrap();
    let (first, second) = (take_request(&provider), take_request(&provider));
    second.responder.give(ok("in the lane already"));
    waiter.cancel();
    start(&caller, &[]);
    first.responder.give(ok("late"));
    assert!(matches!(caller.take(), Taken::Empty));
}

#[tokio::test]
async fn a_hold_that_counts_what_was_given_up_holds_whatever_senders_do() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let [given_up, _waits] = [bus.call(&caller, "c@1", "").unwrap(), bus.call(&caller, "c@1", "").unwrap()];
    let _in_hand = take_request(&provider);
    drop(given_up);
    let held = |counts_abandoned| {
        let options = TakeOptions { events: true, hold: Some(true), counts_abandoned, task: None };
        provider.take_with(&options)
    };
    assert!(matches!(held(true), Taken::Empty));
    assert!(matches!(held(true), Taken::Empty));
    assert!(matches!(held(false), Taken::Message(Incoming::Request(_))));
}

/// Values that are some numbers, and their payload.
#[derive(Debug)]
struct Numbers(ValueTypes, &'static [u8]);

impl CarriedValues for Numbers {
    fn types(&self) -> ValueTypes {
        self.0.clone()
    }

    fn bytes(&self) -> u64 {
        1000
    }

    fn payload(&self, most: u64) -> Result<Bytes, Error> {
        match self.1.len() as u64 {
            bytes if bytes > most => Err(Error::TooLarge { bytes, allowed: most }),
            _ => Ok(Bytes::from_static(self.1)),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn values_go_to_a_receiver_that_takes_values_of_their_types_and_count_as_what_they_take() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let types: ValueTypes = Arc::new("numbers");
    let mut target = bus.open(&caller, "c@1", "do", None).unwrap();
    assert!(bus.bus.value_types(&caller, &mut target).is_none());
    provider.take_values([types.clone()]);
    let found = bus.bus.value_types(&caller, &mut target).unwrap();
    assert!(Arc::ptr_eq(&found, &types));

    let term = bus.term(&target, None, Parent::default());
    let values = || Carried::Values(Arc::new(Numbers(types.clone(), b"[1]")));
    let call = bus.watch(bus.bus.call(&caller, &mut target, values(), term.clone(), false).unwrap());
    let request = take_request(&provider);
    assert_eq!((request.payload.len(), request.values.as_ref().unwrap().bytes()), (0, 1000));
    request.responder.give(ok(""));
    drop(request);
    assert_eq!(call.answer().await, ok(""));

    // Whoever takes others gets the payload, and so does the next instance until it says what it takes.
    let others = Carried::Values(Arc::new(Numbers(Arc::new("others"), b"[2]")));
    drop(bus.bus.call(&caller, &mut target, others, term.clone(), false).unwrap());
    provider.end_instance();
    start(&provider, &["c@1"]);
    let call = bus.watch(bus.bus.call(&caller, &mut target, values(), term, false).unwrap());
    let request = take_request(&provider);
    assert_eq!((&*request.payload, request.values.is_none()), (&b"[1]"[..], true));
    drop((call, request));

    // Of 4,096 bytes, each takes 1,128.
    provider.take_values([types.clone()]);
    let term = bus.term(&target, None, Parent::default());
    let mut send = || bus.bus.call(&caller, &mut target, values(), term.clone(), false);
    let sent: Vec<_> = (0..4).map(|_| send()).collect();
    assert_eq!(sent.iter().filter(|sent| sent.is_ok()).count(), 3);
}
