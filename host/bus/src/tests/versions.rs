//! Two versions of one peer, and contracts that change hands: what each may do, and the other must not notice.

use super::*;

fn serve(peer: &Peer, contract: &str, operations: [&str; 2]) {
    peer.begin_instance();
    peer.serve(contract, &operations.map(ToOwned::to_owned)).unwrap();
    peer.set_phase_if_up(Phase::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_number_that_was_looked_up_with_one_owner_is_not_used_with_the_next() {
    let bus = TestBus::new();
    let caller = bus.ready("caller", &[], &["x@1"]);
    let old = bus.add("old", &["x@1"], &[]);
    serve(&old, "x@1", ["do", "undo"]);
    let mut target = bus.open(&caller, "x@1", "do", None).unwrap();
    // The contract moves to another extension, with its own numbers and its own first instance.
    let new = bus.add("new", &["x@1"], &[]);
    serve(&new, "x@1", ["undo", "do"]);
    let deadline = bus.term(&target, None, Parent::default());
    let call = bus.call_to(&caller, &mut target, "".into(), deadline.clone(), false).unwrap();
    let request = take_request(&new);
    let number = request.number;
    request.responder.give(ok(""));
    call.answer().await.unwrap();
    assert_eq!(number, 1, "0 is `undo`");
}

#[tokio::test(start_paused = true)]
async fn a_number_that_was_looked_up_with_one_owner_is_not_used_with_one_that_starts() {
    let bus = TestBus::new();
    let caller = bus.ready("caller", &[], &["x@1"]);
    let old = bus.add("old", &["x@1"], &[]);
    serve(&old, "x@1", ["do", "undo"]);
    let mut target = bus.open(&caller, "x@1", "do", None).unwrap();
    let new = bus.add("new", &["x@1"], &[]);
    new.set_phase(Phase::Starting);
    let deadline = bus.term(&target, None, Parent::default());
    let call = bus.call_to(&caller, &mut target, "".into(), deadline.clone(), false).unwrap();
    serve(&new, "x@1", ["undo", "do"]);
    let request = take_request(&new);
    let number = request.number;
    request.responder.give(ok(""));
    call.answer().await.unwrap();
    assert_eq!(number, 1, "0 is `undo`");
}

#[tokio::test(start_paused = true)]
async fn a_predecessor_gets_the_replies_that_came_when_its_successor_is_disconnected() {
    let bus = TestBus::new();
    let (old, server) = (bus.ready("a", &[], &["s@1"]), bus.ready("server", &["s@1"], &[]));
    bus.send(&old, "s@1", "of the old").unwrap();
    let new = old.renewed(LIMITS, any_topic(&[], &["s@1"]));
    new.begin_beside();
    bus.replace(&new, true);
    new.become_current();
    assert!(matches!(old.take(), Taken::Stop));
    take_request(&server).responder.give(ok("late"));
    // The new one ends while the old one still finishes.
    new.end_instance();
    new.set_phase(Phase::Down);
    bus.disconnect(&new);
    assert_eq!(take_reply(&old).outcome.unwrap(), "late");
    assert!(matches!(old.take(), Taken::Stop));
}

#[tokio::test(start_paused = true)]
async fn a_predecessor_is_told_that_no_reply_comes_when_those_that_came_were_dropped() {
    let bus = TestBus::new();
    let (old, server) = (bus.ready("a", &[], &["s@1"]), bus.ready("server", &["s@1"], &[]));
    bus.send(&old, "s@1", "of the old").unwrap();
    let new = old.renewed(LIMITS, any_topic(&[], &["s@1"]));
    new.begin_beside();
    bus.replace(&new, true);
    new.become_current();
    assert!(matches!(old.take(), Taken::Stop));
    take_request(&server).responder.give(ok("late"));
    new.end_instance();
    bus.disconnect(&new);
    assert!(!matches!(old.take(), Taken::Empty), "it waits for a reply that never comes");
}

#[tokio::test(start_paused = true)]
async fn what_both_instances_subscribed_to_goes_to_the_current_one_and_stays_when_the_other_fails() {
    let bus = TestBus::new();
    let old = bus.ready("a", &[], &[]);
    let new = old.renewed(LIMITS, any_topic(&[], &[]));
    new.begin_beside();
    bus.subscribe(&new, new.inbox(), "t").unwrap();
    bus.subscribe(&old, old.inbox(), "t").unwrap();
    bus.publish(bus.main(), None, "t", "1".into()).unwrap();
    let first = matches!(old.take(), Taken::Message(Incoming::Event(_)));
    bus.discard(&new);
    let delivered = bus.publish(bus.main(), None, "t", "2".into()).unwrap().delivered;
    assert_eq!((first, delivered), (true, 1));
}

#[tokio::test(start_paused = true)]
async fn a_successor_may_call_one_who_waits_for_the_version_that_serves() {
    let bus = TestBus::new();
    let (old, other) = (bus.ready("a", &["a@1"], &["b@1"]), bus.ready("b", &["b@1"], &["a@1"]));
    let new = old.renewed(LIMITS, any_topic(&["a@1"], &["b@1"]));
    new.begin_beside();
    let blocking = |caller: &Arc<Peer>, contract: &str| {
        let mut target = bus.open(caller, contract, "do", None).unwrap();
        let deadline = bus.term(&target, None, Parent::default());
        bus.call_to(caller, &mut target, "".into(), deadline.clone(), true)
    };
    let waits = blocking(&other, "a@1").unwrap();
    let asked = blocking(&new, "b@1").map(drop);
    take_request(&old).responder.give(ok(""));
    waits.answer().await.unwrap();
    assert_eq!(asked, Ok(()), "the version that serves will answer, and waits for nobody");
}

#[tokio::test(start_paused = true)]
async fn what_a_predecessor_subscribes_to_is_what_the_version_that_serves_may() {
    let bus = TestBus::new();
    let old = bus.ready("a", &[], &[]);
    let mut narrower = any_topic(&[], &[]);
    narrower.subscribes = vec![("only".parse().unwrap(), LaneSettings::default())];
    let new = old.renewed(LIMITS, narrower);
    new.begin_beside();
    bus.replace(&new, true);
    new.become_current();
    new.set_phase(Phase::Ready);
    let _refused_or_not = bus.subscribe(&old, old.inbox(), "secret");
    let receipt = bus.publish(bus.main(), None, "secret", "1".into()).unwrap();
    assert_eq!(receipt.delivered, 0);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_a_predecessor_dies_with_counts_as_one_for_its_successor() {
    let bus = TestBus::new();
    let old = bus.ready("a", &[], &[]);
    bus.subscribe(&old, old.inbox(), "t").unwrap();
    let publish = || bus.publish(bus.main(), None, "t", "".into()).unwrap();
    publish();
    let in_hand = take_event(old.inbox());
    let new = old.renewed(LIMITS, any_topic(&[], &[]));
    new.begin_beside();
    bus.replace(&new, true);
    new.become_current();
    for _ in 0..3 {
        publish();
        assert_eq!(take_event(new.inbox()).lost, 0);
    }
    // As an instance that dies with it in hand.
    old.give_back(Vec::new(), &[(in_hand.subscription, in_hand.lost + 1)]);
    publish();
    assert_eq!(take_event(new.inbox()).lost, 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_predecessor_dies_without_having_reached_goes_to_nobody_out_of_order() {
    let bus = TestBus::new();
    let (old, caller) = (bus.ready("a", &["a@1"], &[]), bus.ready("b", &[], &["a@1"]));
    bus.subscribe(&old, old.inbox(), "t").unwrap();
    let publish = || bus.publish(bus.main(), None, "t", "".into()).unwrap();
    let mut target = bus.open(&caller, "a@1", "do", None).unwrap();
    let mut ask = || {
        let term = bus.term(&target, None, Parent::default());
        bus.call_to(&caller, &mut target, Bytes::new(), term.clone(), false).unwrap()
    };
    let first = ask();
    publish();
    let unreached = vec![Incoming::Request(take_request(&old)), Incoming::Event(take_event(old.inbox()))];
    let new = old.renewed(LIMITS, any_topic(&["a@1"], &[]));
    new.begin_beside();
    new.serve("a@1", &["do".to_owned()]).unwrap();
    bus.replace(&new, true);
    new.become_current();
    new.set_phase(Phase::Ready);
    old.give_back(unreached, &[]);
    assert_eq!(first.answer().now_or_never().unwrap(), Err(Error::PeerGone));
    publish();
    let Event { lost, published, .. } = take_event(new.inbox());
    assert_eq!((lost, published.sequence), (1, 2));
    assert!(matches!(new.take(), Taken::Empty));
}
