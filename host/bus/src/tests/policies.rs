//! Each policy, exactly: what happens to an event or a request without room.

use weir_names::Policy;

use super::*;

/// Delivers `t` to a peer with room for three events.
fn delivery(policy: Policy) -> LaneSettings {
    LaneSettings { policy, messages: 3, bytes: u64::MAX }
}

fn subscribed(bus: &TestBus, name: &str, policy: Policy) -> Arc<Peer> {
    let peer = bus.ready(name, &[], &[]);
    bus.bus.subscribe(&peer, peer.inbox(), "t.>", Some(delivery(policy))).unwrap();
    peer
}

/// Publishes `1` to `n` on two topics, and adds up the receipts.
fn flood(bus: &TestBus, n: u32) -> Receipt {
    let mut sum = Receipt::default();
    for number in 1..=n {
        let topic = if number.is_multiple_of(2) { "t.even" } else { "t.odd" };
        let receipt = bus.publish(bus.main(), None, topic, number.to_string().into()).unwrap();
        sum.delivered += receipt.delivered;
        sum.shed += receipt.shed;
        sum.refused += receipt.refused;
    }
    sum
}

fn receipt(delivered: u32, shed: u32, refused: u32) -> Receipt {
    Receipt { delivered, shed, refused }
}

/// The delivered events, with the losses before each.
fn delivered(peer: &Peer) -> Vec<(String, u64)> {
    let text = |payload: &Bytes| String::from_utf8(payload.to_vec()).unwrap();
    drain(peer.inbox()).iter().map(|(_, lost, payload)| (text(payload), *lost)).collect()
}

fn owned(events: &[(&str, u64)]) -> Vec<(String, u64)> {
    events.iter().map(|(payload, lost)| ((*payload).to_owned(), *lost)).collect()
}

#[tokio::test(start_paused = true)]
async fn drop_oldest_keeps_the_newest_and_counts_the_lost_before_them() {
    let bus = TestBus::new();
    let peer = subscribed(&bus, "a", Policy::DropOldest);
    assert_eq!(flood(&bus, 8), receipt(8, 5, 0));
    assert_eq!(delivered(&peer), owned(&[("6", 5), ("7", 0), ("8", 0)]));
    assert_eq!(flood(&bus, 1), receipt(1, 0, 0));
    assert_eq!(delivered(&peer), owned(&[("1", 0)]));
}

#[tokio::test(start_paused = true)]
async fn drop_newest_keeps_the_oldest_and_counts_the_lost_after_them() {
    let bus = TestBus::new();
    let peer = subscribed(&bus, "a", Policy::DropNewest);
    assert_eq!(flood(&bus, 8), receipt(3, 5, 0));
    assert_eq!(delivered(&peer), owned(&[("1", 0), ("2", 0), ("3", 0)]));
    flood(&bus, 2);
    assert_eq!(delivered(&peer), owned(&[("1", 5), ("2", 0)]));
}

#[tokio::test(start_paused = true)]
async fn reject_keeps_the_oldest_and_tells_publisher_and_subscriber() {
    let bus = TestBus::new();
    let peer = subscribed(&bus, "a", Policy::Reject);
    assert_eq!(flood(&bus, 8), receipt(3, 0, 5));
    let targeted = bus.publish(bus.main(), Some("a"), "t.x", "x".into());
    assert_eq!(targeted, Err(Error::Overloaded("a".to_owned())));
    assert_eq!(delivered(&peer), owned(&[("1", 0), ("2", 0), ("3", 0)]));
    flood(&bus, 1);
    assert_eq!(delivered(&peer), owned(&[("1", 6)]));
    assert_eq!(peer.stats().shed.load(Ordering::Relaxed), 6);
}

#[tokio::test(start_paused = true)]
async fn latest_keeps_one_of_each_topic_in_the_order_in_which_they_came() {
    let bus = TestBus::new();
    let peer = subscribed(&bus, "a", Policy::Latest);
    assert_eq!(flood(&bus, 8), receipt(8, 6, 0));
    assert_eq!(delivered(&peer), owned(&[("7", 6), ("8", 0)]));
    for topic in ["t.1", "t.2", "t.3", "t.2", "t.4"] {
        bus.publish(bus.main(), None, topic, topic.into()).unwrap();
    }
    // The second `t.2` replaces the first, and `t.4` the oldest.
    assert_eq!(delivered(&peer), owned(&[("t.3", 2), ("t.2", 0), ("t.4", 0)]));
}

#[tokio::test(start_paused = true)]
async fn block_delays_the_publisher_alone_until_there_is_room_and_loses_nothing() {
    let bus = TestBus::new();
    let (slow, quick) = (subscribed(&bus, "slow", Policy::Block), subscribed(&bus, "quick", Policy::Reject));
    flood(&bus, 3);
    delivered(&quick);
    let publisher = bus.ready("p", &[], &[]);
    let publish = |payload: &'static str| {
        let publishing =
            bus.bus.publish(&publisher, None, "t.x", payload.into(), (None, Parent::default())).unwrap();
        tokio::spawn(publishing.receipt())
    };
    let (first, second) = (publish("4"), publish("5"));
    tokio::task::yield_now().await;
    assert!(!first.is_finished() && !second.is_finished());
    assert_eq!(delivered(&quick), owned(&[("4", 0), ("5", 0)]), "nobody else waits");
    assert_eq!(slow.inbox().depth().0, 3);
    assert_eq!(take_event(slow.inbox()).published.payload, "1");
    assert_eq!(first.await.unwrap(), Ok(receipt(2, 0, 0)));
    tokio::task::yield_now().await;
    assert!(!second.is_finished(), "one place was freed");
    assert_eq!(delivered(&slow), owned(&[("2", 0), ("3", 0), ("4", 0), ("5", 0)]));
    assert_eq!(second.await.unwrap(), Ok(receipt(2, 0, 0)));
}

#[tokio::test(start_paused = true)]
async fn block_gives_up_at_the_deadline_and_the_subscriber_sees_what_it_missed() {
    let bus = TestBus::new();
    let peer = subscribed(&bus, "a", Policy::Block);
    flood(&bus, 3);
    let began = Instant::now();
    let times = (Some(Duration::from_millis(40)), Parent::default());
    let publishing = bus.bus.publish(bus.main(), None, "t.x", "late".into(), times).unwrap();
    assert_eq!(publishing.receipt().await, Ok(receipt(0, 0, 1)));
    assert_eq!(began.elapsed().as_millis(), 40);
    let parent = Instant::now() + Duration::from_millis(20);
    let publishing = bus.bus.publish(bus.main(), Some("a"), "t.x", "late".into(), (None, by(parent)));
    assert_eq!(publishing.unwrap().receipt().await, Err(Error::Timeout));
    assert_eq!(delivered(&peer).len(), 3);
    flood(&bus, 1);
    assert_eq!(delivered(&peer), owned(&[("1", 2)]));
}

#[tokio::test(start_paused = true)]
async fn a_publisher_that_gives_up_leaves_nothing_behind() {
    let bus = TestBus::new();
    let peer = subscribed(&bus, "a", Policy::Block);
    flood(&bus, 3);
    let publisher = bus.ready("p", &[], &[]);
    drop(bus.bus.publish(&publisher, None, "t.x", "x".into(), (None, Parent::default())).unwrap());
    assert!(bus.waiters() == 0 && publisher.waits().is_empty());
    assert_eq!(delivered(&peer).len(), 3);
    flood(&bus, 1);
    assert_eq!(delivered(&peer), owned(&[("1", 1)]));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_subscriber_that_is_down_or_ends() {
    let bus = TestBus::new();
    let peer = subscribed(&bus, "a", Policy::Block);
    flood(&bus, 3);
    let publish = || bus.bus.publish(bus.main(), None, "t.x", "x".into(), (None, Parent::default())).unwrap();
    let waiting = tokio::spawn(publish().receipt());
    tokio::task::yield_now().await;
    peer.set_phase(Phase::Down);
    assert_eq!(waiting.await.unwrap(), Ok(receipt(0, 0, 1)));
    assert_eq!(publish().receipt().now_or_never(), Some(Ok(receipt(0, 0, 1))));
    start(&peer, &[]);
    let waiting = tokio::spawn(publish().receipt());
    tokio::task::yield_now().await;
    bus.unsubscribe_all(&peer);
    assert_eq!(waiting.await.unwrap(), Ok(receipt(0, 0, 1)));
    assert_eq!(peer.inbox().depth(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn two_full_block_routes_that_face_each_other_are_an_error_that_names_the_cycle() {
    let bus = TestBus::new();
    let (a, b) = (bus.ready("a", &[], &[]), bus.ready("b", &[], &[]));
    for peer in [&a, &b] {
        let topic = format!("to.{}", peer.name());
        bus.bus.subscribe(peer, peer.inbox(), &topic, Some(delivery(Policy::Block))).unwrap();
        for _ in 0..3 {
            bus.publish(bus.main(), None, &topic, "".into()).unwrap();
        }
    }
    let waits = bus.bus.publish(&a, None, "to.b", "".into(), (None, Parent::default())).unwrap();
    let names = |names: &[&str]| Error::WouldDeadlock(names.iter().map(ToString::to_string).collect());
    let refused = bus.bus.publish(&b, None, "to.a", "".into(), (None, Parent::default())).unwrap_err();
    assert_eq!(refused, names(&["b", "a", "b"]));
    let own = bus.bus.publish(&b, None, "to.b", "".into(), (None, Parent::default())).unwrap_err();
    assert_eq!(own, names(&["b", "b"]));
    drop(waits);
    let waits = bus.bus.publish(&b, None, "to.a", "".into(), (None, Parent::default())).unwrap();
    take_event(a.inbox());
    assert_eq!(waits.receipt().now_or_never(), Some(Ok(receipt(1, 0, 0))));
}

#[tokio::test(start_paused = true)]
async fn a_call_and_a_block_route_that_face_each_other_are_a_cycle_too() {
    let bus = TestBus::new();
    let (a, b, c) =
        (bus.ready("a", &[], &["b@1"]), bus.ready("b", &["b@1"], &["c@1"]), bus.ready("c", &["c@1"], &[]));
    bus.bus.subscribe(&a, a.inbox(), "t", Some(delivery(Policy::Block))).unwrap();
    for _ in 0..3 {
        bus.publish(bus.main(), None, "t", "".into()).unwrap();
    }
    let call = |caller: &Arc<Peer>, contract: &str| {
        let mut target = bus.open(caller, contract, "do", None).unwrap();
        let deadline = bus.term(&target, None, Parent::default());
        bus.call_to(caller, &mut target, Bytes::new(), deadline.clone(), true).unwrap()
    };
    let _waits = (call(&a, "b@1"), call(&b, "c@1"));
    let refused = bus.bus.publish(&c, None, "t", "".into(), (None, Parent::default())).unwrap_err();
    let circle = ["c", "a", "b", "c"].map(ToOwned::to_owned);
    assert_eq!(refused, Error::WouldDeadlock(circle.to_vec()));
}

#[tokio::test(start_paused = true)]
async fn one_that_lags_under_its_own_capacity_takes_no_room_from_others() {
    let bus = TestBus::new();
    let peer = bus.ready("a", &[], &[]);
    let subscribe = |pattern, policy| {
        bus.bus.subscribe(&peer, peer.inbox(), pattern, Some(delivery(policy))).unwrap();
    };
    subscribe("t.odd", Policy::DropOldest);
    subscribe("kept", Policy::Reject);
    for number in ["1", "2", "3"] {
        bus.publish(bus.main(), None, "kept", number.into()).unwrap();
    }
    flood(&bus, 100);
    let events = delivered(&peer);
    assert_eq!(events.iter().filter(|(_, lost)| *lost == 0).count(), 5);
    assert_eq!(events[..3], owned(&[("1", 0), ("2", 0), ("3", 0)]));
    assert_eq!(events[3..], owned(&[("95", 47), ("97", 0), ("99", 0)]));
}

#[tokio::test(start_paused = true)]
async fn a_retained_topic_greets_each_new_subscriber_and_each_new_instance_with_its_last_value() {
    let bus = TestBus::new();
    bus.retain(["context".parse().unwrap()]);
    let publish = |topic, payload: &'static str| {
        bus.publish(bus.main(), None, topic, payload.into()).unwrap();
    };
    publish("context", "1");
    publish("context", "2");
    publish("other", "no");
    let a = bus.ready("a", &[], &[]);
    bus.subscribe(&a, a.inbox(), ">").unwrap();
    let first = take_event(a.inbox());
    assert_eq!((first.published.payload.clone(), first.published.sequence), ("2".into(), 2));
    assert!(first.retained && first.lost == 0);
    publish("context", "3");
    bus.subscribe(&a, a.inbox(), ">").unwrap();
    assert_eq!(drain(a.inbox()), [(3, 0, "3".into())], "an instance gets it once");

    publish("context", "4");
    a.begin_instance();
    bus.subscribe(&a, a.inbox(), ">").unwrap();
    assert_eq!(drain(a.inbox()), [(4, 0, "4".into())], "it waits already");
    a.begin_instance();
    bus.subscribe(&a, a.inbox(), ">").unwrap();
    let again = take_event(a.inbox());
    assert!(again.retained);
    assert_eq!(again.published.payload, "4");
    bus.retain([]);
    let b = bus.ready("b", &[], &[]);
    bus.subscribe(&b, b.inbox(), "context").unwrap();
    assert_eq!(drain(b.inbox()), []);
    publish("context", "5");
    assert_eq!(drain(b.inbox()), [(5, 0, "5".into())], "its number goes on");
}

#[tokio::test(start_paused = true)]
async fn topics_that_publishers_invent_are_forgotten_and_their_numbers_never_go_back() {
    let bus = TestBus::new();
    let a = bus.ready("a", &[], &[]);
    bus.subscribe(&a, a.inbox(), ">").unwrap();
    let number_of = |topic: &str| {
        bus.publish(bus.main(), None, topic, "".into()).unwrap();
        take_event(a.inbox()).published.sequence
    };
    assert_eq!([number_of("t"), number_of("t"), number_of("u")], [1, 2, 1]);
    for invented in 0..5000 {
        number_of(&format!("x.{invented}"));
    }
    assert_eq!(bus.topics().len(), 4096);
    assert!(number_of("t") > 2);
}

#[tokio::test(start_paused = true)]
async fn a_publisher_that_invents_topics_pushes_out_its_own() {
    let bus = TestBus::new();
    let listener = bus.ready("l", &[], &[]);
    let (greedy, modest) = (bus.ready("g", &[], &[]), bus.ready("m", &[], &[]));
    bus.subscribe(&listener, listener.inbox(), ">").unwrap();
    let number_of = |by: &Arc<Peer>, topic: &str| {
        bus.publish(by, None, topic, "".into()).unwrap();
        take_event(listener.inbox()).published.sequence
    };
    for invented in 0..4096 {
        number_of(&greedy, &format!("x.{invented}"));
    }
    // Its topics find room, and stay, however long nothing comes on them.
    for topic in 0..100 {
        assert!(number_of(&modest, &format!("t.{topic}")) >= 1);
    }
    let known = number_of(&modest, "t.0");
    for invented in 0..5000 {
        for _ in 0..3 {
            number_of(&greedy, &format!("y.{invented}"));
        }
    }
    assert_eq!(number_of(&modest, "t.0"), known + 1);
    assert_eq!(bus.topics().len(), 4096);
    let kept = bus.topics().iter().filter(|stats| stats.topic.as_str().starts_with("t.")).count();
    assert_eq!(kept, 100);
}

#[tokio::test(start_paused = true)]
async fn of_the_greediest_publishers_topics_the_one_used_longest_ago_gives_way() {
    let bus = TestBus::new();
    let listener = bus.ready("l", &[], &[]);
    let (greedy, modest) = (bus.ready("g", &[], &[]), bus.ready("m", &[], &[]));
    bus.subscribe(&listener, listener.inbox(), ">").unwrap();
    let publish = |by: &Arc<Peer>, topic: &str| {
        bus.publish(by, None, topic, "".into()).unwrap();
        take_event(listener.inbox());
    };
    publish(&modest, "t");
    for invented in 0..4095 {
        publish(&greedy, &format!("x.{invented}"));
    }
    // The first is used again, by another.
    publish(&modest, "x.0");
    publish(&greedy, "x.new");
    let stats = bus.topics();
    let is_known = |topic: &str| stats.iter().any(|stats| stats.topic.as_str() == topic);
    assert_eq!(stats.len(), 4096);
    assert_eq!(["t", "x.0", "x.1", "x.2", "x.new"].map(is_known), [true, true, false, true, true]);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_finds_the_inbox_full_waits_where_the_operator_has_senders_wait() {
    let bus = TestBus::new();
    let limits = PeerLimits { when_full: RequestPolicy::Block, ..LIMITS };
    let provider = bus.add_with("p", limits, &["c@1"], &["a@1"]);
    start(&provider, &["c@1"]);
    let caller = bus.ready("a", &["a@1"], &["c@1"]);
    let waiting: Vec<_> = (0..8).map(|_| bus.call(bus.main(), "c@1", "1").unwrap()).collect();
    let parked = bus.call(bus.main(), "c@1", "2").unwrap();
    let mut target = bus.open(&caller, "c@1", "do", None).unwrap();
    let deadline = bus.term(&target, None, Parent::default());
    let (_waiter, sending) = bus.bus.send(&caller, &mut target, "3".into(), deadline.clone()).unwrap();
    let sending = tokio::spawn(sending.sent());
    tokio::task::yield_now().await;
    assert!(!sending.is_finished());
    let mut back = bus.open(&provider, "a@1", "do", None).unwrap();
    let refused = bus.call_to(&provider, &mut back, Bytes::new(), deadline.clone(), true).unwrap_err();
    assert_eq!(refused, Error::WouldDeadlock(["p", "a", "p"].map(ToOwned::to_owned).to_vec()));
    for payload in ["1", "1", "1", "1", "1", "1", "1", "1", "2", "3"] {
        let request = take_request(&provider);
        assert_eq!(request.payload, payload);
        request.responder.give(ok("done"));
    }
    sending.await.unwrap();
    assert!(caller.waits().is_empty());
    assert_eq!(parked.answer().await, ok("done"));
    assert_eq!(take_reply(&caller).outcome, ok("done"));
    for call in waiting {
        call.answer().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_for_room_ends_at_its_deadline_or_with_its_receiver() {
    let bus = TestBus::new();
    let limits = PeerLimits { when_full: RequestPolicy::Block, ..LIMITS };
    let provider = bus.add_with("p", limits, &["c@1"], &[]);
    start(&provider, &["c@1"]);
    let full: Vec<_> = (0..8).map(|_| bus.call(bus.main(), "c@1", "").unwrap()).collect();
    let mut target = bus.open(bus.main(), "c@1", "do", None).unwrap();
    let deadline = Instant::now() + Duration::from_millis(30);
    let term = Term::new(Instant::now(), deadline);
    let parked = bus.call_to(bus.main(), &mut target, "".into(), term.clone(), false).unwrap();
    assert_eq!(parked.answer().await, Err(Error::Timeout));
    assert_eq!(Instant::now(), deadline);
    let parked = bus.call(bus.main(), "c@1", "").unwrap();
    provider.set_phase(Phase::Draining);
    assert_eq!(parked.answer().now_or_never(), Some(Err(Error::PeerGone)));
    provider.inbox().clear(Seat::FIRST);
    drop(full);
}

#[tokio::test(start_paused = true)]
async fn a_call_without_an_answer_that_is_dropped_is_carried_out_once_it_has_found_room_and_not_before() {
    let bus = TestBus::new();
    let limits = PeerLimits { when_full: RequestPolicy::Block, ..LIMITS };
    let provider = bus.add_with("p", limits, &["c@1"], &[]);
    start(&provider, &["c@1"]);
    let call = |payload| bus.call(bus.main(), "c@1", payload).unwrap().unanswered();
    let mut full: Vec<_> = (0..8).map(|_| call("in the inbox")).collect();
    let admitted = call("has found room");
    for _ in 0..100 {
        drop(call("waits for room"));
    }
    full.clear();
    assert_eq!(bus.waiters(), 9, "those that are given up are not waited for");
    let first = take_request(&provider);
    drop(admitted);
    let rest = (0..8).map(|_| take_request(&provider));
    let all: Vec<_> = std::iter::once(first).chain(rest).collect();
    let (last, others) = all.split_last().unwrap();
    assert!(others.iter().all(|request| request.payload == "in the inbox"));
    assert_eq!(last.payload, "has found room");
    assert!(matches!(provider.take(), Taken::Empty));
    assert!(all.iter().all(|request| request.responder.give(ok("done"))), "each is carried out");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_waits_for_is_not_kept() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let answer = Bytes::from(vec![0; 1000]);
    let call = || bus.call(&caller, "c@1", "").unwrap();
    for (is_dropped_first, call) in
        [(true, call().unanswered()), (false, call().unanswered()), (false, call())]
    {
        let mut call = Some(call);
        let request = take_request(&provider);
        if is_dropped_first {
            call.take();
        }
        assert!(request.responder.give(Ok(answer.clone())));
        drop((call, request));
        assert!(answer.is_unique());
    }
}
