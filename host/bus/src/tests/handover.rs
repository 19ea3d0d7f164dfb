//! Two instances of one peer: where messages go, and contracts that change hands.

use super::*;

/// The grants of a renewed peer: as many as before, or fewer.
fn access(fulfills: &[&str], subscribes: &str) -> Access {
    Access {
        subscribes: vec![(subscribes.parse().unwrap(), LaneSettings::default())],
        ..any_topic(fulfills, &["c@1"])
    }
}

/// An instance of a renewed peer, beside the one that serves.
fn beside(peer: &Peer, fulfills: &[&str]) -> Arc<Peer> {
    let successor = peer.renewed(LIMITS, access(fulfills, ">"));
    successor.begin_beside();
    for contract in fulfills {
        successor.serve(contract, &["other".to_owned(), "do".to_owned()]).unwrap();
    }
    successor
}

fn hand_over(bus: &TestBus, successor: &Arc<Peer>) {
    bus.replace(successor, true);
    successor.become_current();
    successor.set_phase(Phase::Ready);
}

fn publish(bus: &TestBus, topic: &str, payload: &'static str) -> u32 {
    bus.publish(bus.main(), None, topic, payload.into()).unwrap().delivered
}

#[tokio::test(start_paused = true)]
async fn requests_and_events_go_to_the_old_one_until_the_hand_over_and_replies_to_who_asked() {
    let bus = TestBus::new();
    let (old, client) = (bus.ready("a", &["a@1"], &["c@1"]), bus.ready("client", &["c@1"], &["a@1"]));
    bus.subscribe(&old, old.inbox(), "t").unwrap();
    let new = beside(&old, &["a@1"]);
    assert!(old.is_current() && !new.is_current());
    new.set_phase_if_up(Phase::Interrupted("nobody asked it".to_owned()));
    assert_eq!(old.phase(), Phase::Ready);

    let calls = ["1", "2", "3"].map(|payload| bus.call(&client, "a@1", payload).unwrap());
    publish(&bus, "t", "e1");
    bus.send(&old, "c@1", "of the old").unwrap();
    bus.send(&new, "c@1", "of the new").unwrap();
    assert!(matches!(new.take(), Taken::Empty));
    let first = take_request(&old);
    for _ in 0..2 {
        let request = take_request(&client);
        let payload = request.payload.clone();
        request.responder.give(Ok(payload));
    }
    assert_eq!(take_reply(&new).outcome.unwrap(), "of the new");

    hand_over(&bus, &new);
    assert!(matches!(old.take(), Taken::Stop));
    assert_eq!(take_reply(&old).outcome.unwrap(), "of the old");
    assert!(matches!(old.take(), Taken::Stop), "no reply is still to come");
    first.responder.give(ok("by the old"));
    for payload in ["2", "3"] {
        let request = take_request(&new);
        // It serves the operation under another number.
        assert_eq!((&*request.payload, request.number), (payload.as_bytes(), 1));
        request.responder.give(ok("by the new"));
    }
    assert_eq!(take_event(new.inbox()).published.payload, "e1");
    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.answer().await.unwrap());
    }
    assert_eq!(answers, ["by the old", "by the new", "by the new"]);
    old.end_instance();
    assert!(matches!(old.take(), Taken::Stop));
    assert!(!new.is_stopping());
}

#[tokio::test(start_paused = true)]
async fn a_hand_over_wakes_both() {
    let bus = TestBus::new();
    let (old, client) = (bus.ready("a", &["a@1"], &[]), bus.ready("client", &[], &["a@1"]));
    let new = beside(&old, &["a@1"]);
    let call = bus.call(&client, "a@1", "").unwrap();
    drop(take_request(&old));
    assert_eq!(call.answer().await, Err(Error::PeerGone));
    let waiting = [&old, &new].map(|peer| {
        let peer = peer.clone();
        tokio::spawn(async move { peer.readable().await })
    });
    tokio::task::yield_now().await;
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()));
    let call = bus.call(&client, "a@1", "").unwrap();
    // Not taken yet.
    hand_over(&bus, &new);
    for waiting in waiting {
        waiting.await.unwrap();
    }
    take_request(&new).responder.give(ok("1"));
    assert_eq!(call.answer().await, ok("1"));
}

#[tokio::test]
async fn what_a_successor_subscribes_to_is_for_it_alone_and_ends_with_it() {
    let bus = TestBus::new();
    let old = bus.ready("a", &["a@1"], &[]);
    let known = bus.subscribe(&old, old.inbox(), "t").unwrap().number();
    let failed = beside(&old, &["a@1"]);
    assert_eq!(bus.subscribe(&failed, failed.inbox(), "t").unwrap().number(), known);
    bus.subscribe(&failed, failed.inbox(), "new.>").unwrap();
    publish(&bus, "new.1", "lost with it");
    publish(&bus, "t", "1");
    assert_eq!(take_event(old.inbox()).published.payload, "1");
    assert!(matches!(old.take(), Taken::Empty));
    bus.discard(&failed);
    assert_eq!((publish(&bus, "new.1", "nobody's"), old.inbox().depth()), (0, (0, 0)));
    assert_eq!(publish(&bus, "t", "2"), 1);

    let new = beside(&old, &["a@1"]);
    bus.subscribe(&new, new.inbox(), "new.>").unwrap();
    publish(&bus, "new.1", "3");
    assert_eq!(take_event(old.inbox()).published.payload, "2");
    assert!(matches!(old.take(), Taken::Empty));
    hand_over(&bus, &new);
    assert_eq!(take_event(new.inbox()).published.payload, "3");
}

#[tokio::test]
async fn what_one_that_failed_had_subscribed_to_stays_for_those_beside_it_and_ends_with_the_last() {
    let bus = TestBus::new();
    let old = bus.ready("a", &[], &[]);
    let copy = bus.add_peer(&"a-2".parse().unwrap(), LIMITS, access(&[], ">"), Some(&old));
    let failed = old.renewed(LIMITS, access(&[], ">"));
    bus.replace_on_trial(&failed);
    failed.begin_instance();
    start(&copy, &[]);
    bus.subscribe(&failed, failed.inbox(), "its.own").unwrap();
    for peer in [&failed, &copy] {
        bus.subscribe(peer, peer.inbox(), "both").unwrap();
    }
    bus.discard(&failed);
    assert_eq!((publish(&bus, "its.own", "nobody's"), publish(&bus, "both", "1")), (0, 1));
    match copy.take() {
        Taken::Message(Incoming::Event(event)) => assert_eq!(event.published.payload, "1"),
        other => panic!("no event but {other:?}"),
    }
    // The next fails as well.
    bus.discard(&copy);
    assert_eq!(publish(&bus, "both", "nobody's"), 0);
}

#[tokio::test]
async fn a_renewed_peer_keeps_the_subscriptions_that_it_may_have_under_its_own_limits() {
    let bus = TestBus::new();
    let old = bus.ready("a", &[], &[]);
    for pattern in ["kept.1", "ended.1"] {
        bus.subscribe(&old, old.inbox(), pattern).unwrap();
    }
    let inbox = InboxLimits { messages: 1, bytes: 1024 };
    let new = old.renewed(PeerLimits { message_size: 3, inbox, ..LIMITS }, access(&[], "kept.>"));
    bus.replace(&new, true);
    new.begin_instance();
    assert_eq!((publish(&bus, "kept.1", "123"), publish(&bus, "ended.1", "123")), (1, 0));
    assert_eq!(publish(&bus, "kept.1", "1234"), 0);
    assert_eq!(publish(&bus, "kept.1", "456"), 1);
    assert_eq!(new.inbox().depth().0, 1);
    let event = take_event(new.inbox());
    assert_eq!((event.published.payload.clone(), event.published.sequence), ("456".into(), 3));
}

#[tokio::test]
async fn what_one_on_trial_may_not_subscribe_to_is_kept_from_it_and_waits_for_the_one_before() {
    let bus = TestBus::new();
    let old = bus.ready("a", &[], &[]);
    for pattern in ["both.1", "old.1"] {
        bus.subscribe(&old, old.inbox(), pattern).unwrap();
    }
    publish(&bus, "old.1", "0");
    let new = old.renewed(PeerLimits { message_size: 3, ..LIMITS }, access(&[], "both.>"));
    bus.replace_on_trial(&new);
    new.begin_instance();
    bus.subscribe(&new, new.inbox(), "both.2").unwrap();
    assert_eq!((publish(&bus, "old.1", "1"), publish(&bus, "both.1", "2 is large")), (1, 1));
    assert_eq!(take_event(new.inbox()).published.payload, "2 is large");
    assert!(matches!(new.take(), Taken::Empty));
    bus.discard(&new);
    bus.replace(&old, false);
    old.begin_instance();
    assert_eq!(publish(&bus, "both.2", "nobody's"), 0);
    for payload in ["0", "1"] {
        assert_eq!(take_event(old.inbox()).published.payload, payload);
    }

    bus.replace_on_trial(&new);
    new.begin_instance();
    publish(&bus, "old.1", "ends with it");
    bus.renew_subscriptions(&new);
    assert_eq!((publish(&bus, "old.1", "3"), publish(&bus, "both.1", "4 is large")), (0, 0));
    assert_eq!(new.inbox().depth(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_was_looked_up_follows_its_contract_to_another_owner() {
    let bus = TestBus::new();
    let (first, second) = (bus.ready("first", &["a@1"], &[]), bus.ready("second", &["b@1"], &[]));
    let client = bus.ready("client", &[], &["a@1"]);
    let mut target = bus.open(&client, "a@1", "do", None).unwrap();
    let mut named = bus.open(&client, "a@1", "do", Some("first")).unwrap();
    let deadline = bus.term(&target, None, Parent::default());
    let swapped = second.renewed(LIMITS, access(&["a@1"], ">"));
    bus.replace(&swapped, true);
    start(&swapped, &["a@1"]);
    let call = |target: &mut Target| bus.call_to(&client, target, "".into(), deadline.clone(), false);
    let pending = call(&mut target).unwrap();
    assert!(matches!(first.take(), Taken::Empty));
    take_request(&swapped).responder.give(ok("by the second"));
    assert_eq!(pending.answer().await, ok("by the second"));
    let refused = Error::NoProvider("`first` does not fulfil `a@1`".to_owned());
    assert_eq!(call(&mut named).unwrap_err(), refused);

    // One that comes back takes contracts from their new owner only if it claims them.
    let back = first.renewed(LIMITS, access(&["a@1", "d@1"], ">"));
    bus.replace(&back, false);
    start(&back, &["a@1"]);
    drop(call(&mut target).unwrap());
    assert!(matches!(back.take(), Taken::Empty));
    bus.retire(&swapped);
    assert_eq!(call(&mut target).unwrap_err(), Error::UnknownContract("a@1".to_owned()));
    bus.replace(&back, true);
    drop(call(&mut target).unwrap());
    assert_eq!(back.inbox().depth().0, 1);
}
