//! Events: to every subscriber, in order, and with every loss counted.

use weir_names::Policy;

use super::*;

fn publish(bus: &TestBus, topic: &str, payload: &'static str) -> Receipt {
    bus.publish(bus.main(), None, topic, payload.into()).unwrap()
}

fn receipt(delivered: u32, shed: u32) -> Receipt {
    Receipt { delivered, shed, refused: 0 }
}

#[tokio::test(start_paused = true)]
async fn an_event_reaches_everyone_whose_pattern_matches_once_for_each_subscription() {
    let bus = TestBus::new();
    let (a, b) = (bus.ready("a", &[], &[]), bus.ready("b", &[], &[]));
    for pattern in ["x.y", "x.*", ">"] {
        bus.subscribe(&a, a.inbox(), pattern).unwrap();
    }
    bus.subscribe(&b, b.inbox(), "x.z").unwrap();
    assert_eq!(publish(&bus, "x.y", "1"), receipt(3, 0));
    assert_eq!(publish(&bus, "x.z", "2"), receipt(3, 0));
    assert_eq!(publish(&bus, "y", "3"), receipt(1, 0));
    assert_eq!(a.inbox().depth().0, 6);
    assert_eq!(drain(b.inbox()), [(1, 0, "2".into())]);
    assert_eq!(drain(a.inbox()).len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_publisher_that_has_subscribed_hears_itself() {
    let bus = TestBus::new();
    let a = bus.ready("a", &[], &[]);
    bus.subscribe(&a, a.inbox(), "t").unwrap();
    bus.publish(&a, None, "t", Bytes::new()).unwrap();
    let event = take_event(a.inbox());
    assert_eq!(event.published.sender, a.id());
}

#[tokio::test(start_paused = true)]
async fn a_full_inbox_drops_the_oldest_and_the_next_event_counts_them() {
    let bus = TestBus::new();
    let a = bus.ready("a", &[], &[]);
    bus.subscribe(&a, a.inbox(), "t").unwrap();
    for _ in 0..8 {
        assert_eq!(publish(&bus, "t", "old"), receipt(1, 0));
    }
    for _ in 0..3 {
        assert_eq!(publish(&bus, "t", "new"), receipt(1, 1));
    }
    let events = drain(a.inbox());
    assert_eq!(events.first(), Some(&(4, 3, "old".into())));
    assert_eq!(events.iter().map(|event| event.0).collect::<Vec<_>>(), (4..=11).collect::<Vec<_>>());
    assert!(events.iter().skip(1).all(|event| event.1 == 0));
    assert_eq!(a.stats().shed.load(Ordering::Relaxed), 3);
    assert_eq!(*bus.losses.lock().unwrap(), [("a".to_owned(), 1), ("a".to_owned(), 2)]);
}

#[tokio::test(start_paused = true)]
async fn events_are_bounded_by_bytes_too() {
    let bus = TestBus::new();
    let a = bus.ready("a", &[], &[]);
    bus.subscribe(&a, a.inbox(), "t").unwrap();
    let large = Bytes::from(vec![0; 1000]);
    for _ in 0..10 {
        bus.publish(bus.main(), None, "t", large.clone()).unwrap();
        assert!(a.inbox().depth().1 <= 4096);
    }
    let events = drain(a.inbox());
    assert_eq!(events.iter().map(|event| (event.0, event.1)).collect::<Vec<_>>(), [(8, 7), (9, 0), (10, 0)]);
}

#[tokio::test(start_paused = true)]
async fn losses_are_counted_for_each_subscription_alone() {
    let bus = TestBus::new();
    let a = bus.ready("a", &[], &[]);
    bus.subscribe(&a, a.inbox(), "rare").unwrap();
    bus.subscribe(&a, a.inbox(), "busy").unwrap();
    publish(&bus, "rare", "");
    for _ in 0..20 {
        publish(&bus, "busy", "");
    }
    publish(&bus, "rare", "");
    let events = drain(a.inbox());
    assert_eq!(events.len(), 8);
    assert_eq!(events.last().map(|event| (event.0, event.1)), Some((2, 1)), "the first of `rare` gave way");
    assert_eq!(events.first().map(|event| (event.0, event.1)), Some((14, 13)));
}

#[tokio::test(start_paused = true)]
async fn an_event_too_large_for_a_subscriber_is_a_gap_for_it_alone() {
    let bus = TestBus::new();
    let small = bus.add_with("s", PeerLimits { message_size: 2, ..LIMITS }, &[], &[]);
    let other = bus.ready("o", &[], &[]);
    for peer in [&small, &other] {
        bus.subscribe(peer, peer.inbox(), "t").unwrap();
    }
    publish(&bus, "t", "1");
    assert_eq!(publish(&bus, "t", "too large"), receipt(1, 1));
    publish(&bus, "t", "3");
    assert_eq!(drain(small.inbox()), [(1, 0, "1".into()), (3, 1, "3".into())]);
    assert_eq!(drain(other.inbox()).len(), 3);
    let sender_bound = bus.publish(&small, None, "t", "too large".into());
    assert_eq!(sender_bound, Err(Error::TooLarge { bytes: 9, allowed: 2 }));
}

#[tokio::test(start_paused = true)]
async fn subscriptions_and_what_waits_outlive_an_instance() {
    let bus = TestBus::new();
    let a = bus.ready("a", &[], &[]);
    let number = bus.subscribe(&a, a.inbox(), "t").unwrap().number();
    publish(&bus, "t", "before");
    a.set_phase(Phase::Down);
    publish(&bus, "t", "between");
    start(&a, &[]);
    assert_eq!(
        bus.subscribe(&a, a.inbox(), "t").unwrap().number(),
        number,
        "the same pattern, the same number"
    );
    publish(&bus, "t", "after");
    assert_eq!(drain(a.inbox()), [(1, 0, "before".into()), (2, 0, "between".into()), (3, 0, "after".into())]);
}

#[tokio::test(start_paused = true)]
async fn what_waits_of_a_subscription_ends_with_it() {
    let bus = TestBus::new();
    let a = bus.ready("a", &[], &[]);
    let (gone, kept) =
        (bus.subscribe(&a, a.inbox(), "t").unwrap(), bus.subscribe(&a, a.inbox(), "*").unwrap());
    publish(&bus, "t", "1");
    bus.unsubscribe(&a, gone.number()).unwrap();
    publish(&bus, "t", "2");
    assert_eq!(drain(a.inbox()), [(1, 0, "1".into()), (2, 0, "2".into())]);
    assert_eq!(a.inbox().depth(), (0, 0));
    let unknown = Error::Invalid(format!("`a` has no subscription {}", gone.number()));
    assert_eq!(bus.unsubscribe(&a, gone.number()), Err(unknown));
    let stranger = bus.ready("b", &[], &[]);
    assert!(bus.unsubscribe(&stranger, kept.number()).is_err(), "it is another's");
    bus.unsubscribe_all(&a);
    assert_eq!(publish(&bus, "t", "3"), Receipt::default());
}

#[tokio::test(start_paused = true)]
async fn one_peer_holds_at_most_256_subscriptions() {
    let bus = TestBus::new();
    let a = bus.ready("a", &[], &[]);
    for number in 0..256 {
        bus.subscribe(&a, a.inbox(), &format!("t.{number}")).unwrap();
    }
    bus.subscribe(&a, a.inbox(), "t.0").expect("it is there already");
    let refused = bus.subscribe(&a, a.inbox(), "t.256").unwrap_err();
    assert_eq!(refused, Error::LimitExceeded { name: "subscriptions".into(), used: 257, allowed: 256 });
}

#[tokio::test(start_paused = true)]
async fn a_targeted_event_reaches_one_peer_alone_or_fails() {
    let bus = TestBus::new();
    let (a, b) = (bus.ready("a", &[], &[]), bus.ready("b", &[], &[]));
    for peer in [&a, &b] {
        bus.subscribe(peer, peer.inbox(), "t.>").unwrap();
    }
    let main = bus.main();
    assert_eq!(bus.publish(main, Some("b"), "t.x", "x".into()), Ok(receipt(1, 0)));
    assert!(matches!(a.take(), Taken::Empty));
    assert_eq!(drain(b.inbox()), [(0, 0, "x".into())], "it has no place in its topic");
    for (name, topic) in [("b", "other"), ("nobody", "t.x"), ("main", "t.x")] {
        let refused = Error::NoProvider(format!("`{name}` does not run or has not subscribed to `{topic}`"));
        assert_eq!(bus.publish(main, Some(name), topic, Bytes::new()), Err(refused));
    }
}

#[tokio::test(start_paused = true)]
async fn a_targeted_event_to_a_peer_that_does_not_run_has_no_provider() {
    let bus = TestBus::new();
    let a = bus.ready("a", &[], &[]);
    bus.subscribe(&a, a.inbox(), "t").unwrap();
    for phase in [Phase::Draining, Phase::Down] {
        a.set_phase(phase);
        let refused = Error::NoProvider("`a` does not run or has not subscribed to `t`".to_owned());
        assert_eq!(bus.publish(bus.main(), Some("a"), "t", Bytes::new()), Err(refused));
    }
    assert_eq!(publish(&bus, "t", ""), receipt(1, 0), "it waits for the next instance");
}

#[test]
fn concurrent_publishers_leave_neither_gap_nor_disorder() {
    let limits = PeerLimits { inbox: InboxLimits { messages: 10_000, bytes: 10_000_000 }, ..LIMITS };
    let bus = Arc::new(Bus::new(LIMITS, Box::new(|_, _| {})));
    let access = |pattern: &str| Access {
        publishes: vec![pattern.parse().unwrap()],
        subscribes: vec![(pattern.parse().unwrap(), LaneSettings::default())],
        ..Access::default()
    };
    let subscriber = bus.add_peer(&"s".parse().unwrap(), limits, access(">"), None);
    bus.subscribe(&subscriber, subscriber.inbox(), ">", None).unwrap();
    thread::scope(|scope| {
        for publisher in 0..4 {
            let peer = bus.add_peer(&format!("p{publisher}").parse().unwrap(), limits, access(">"), None);
            let bus = &bus;
            scope.spawn(move || {
                for number in 0..1000_u32 {
                    let payload = Bytes::copy_from_slice(&number.to_be_bytes());
                    drop(bus.publish(&peer, None, "t", payload, (None, Parent::default())).unwrap());
                }
            });
        }
    });
    let mut next = [0_u32; 4];
    for sequence in 1..=4000 {
        let event = take_event(subscriber.inbox());
        assert_eq!((event.published.sequence, event.lost), (sequence, 0));
        // Peer 1 subscribes, peers 2 to 5 publish.
        let expected = &mut next[usize::try_from(event.published.sender.0).unwrap() - 2];
        assert_eq!(*event.published.payload, expected.to_be_bytes());
        *expected += 1;
    }
}

#[tokio::test(start_paused = true)]
async fn a_payload_is_stored_once_whatever_the_number_of_subscribers_and_of_patterns() {
    let bus = TestBus::new();
    bus.retain(["t.x".parse().unwrap()]);
    let peers: Vec<_> = (0..256).map(|number| bus.ready(&format!("p{number}"), &[], &[])).collect();
    for (peer, policy) in peers.iter().zip(Policy::ALL.iter().cycle()) {
        let delivery = LaneSettings { policy: *policy, ..LaneSettings::default() };
        for pattern in ["t.x", "t.*"] {
            bus.bus.subscribe(peer, peer.inbox(), pattern, Some(delivery)).unwrap();
        }
    }
    let payload = Bytes::from(vec![b'x'; 1000]);
    let stored = payload.as_ptr();
    assert_eq!(bus.publish(bus.main(), None, "t.x", payload).unwrap().delivered, 512);
    let late = bus.ready("late", &[], &[]);
    bus.subscribe(&late, late.inbox(), ">").unwrap();
    for peer in peers.iter().flat_map(|peer| [peer, peer]).chain([&late]) {
        assert_eq!(take_event(peer.inbox()).published.payload.as_ptr(), stored);
    }
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_is_to_take_over_gets_the_last_value_itself() {
    let bus = TestBus::new();
    bus.retain(["context".parse().unwrap()]);
    let old = bus.ready("a", &[], &[]);
    bus.subscribe(&old, old.inbox(), "context").unwrap();
    publish(&bus, "context", "1");
    take_event(old.inbox());
    let grants = vec![(">".parse().unwrap(), LaneSettings::default())];
    let new = old.renewed(LIMITS, Access { subscribes: grants, ..Access::default() });
    new.begin_beside();
    bus.subscribe(&new, new.inbox(), "context").unwrap();
    let of_the_old = old.take();
    bus.replace(&new, true);
    new.become_current();
    let of_the_new = new.take();
    let got = (matches!(of_the_old, Taken::Message(_)), matches!(of_the_new, Taken::Message(_)));
    assert_eq!(got, (false, true), "the old one has had it, the new one has not");
}

#[tokio::test(start_paused = true)]
async fn a_last_value_that_waits_for_room_is_not_shown_as_lost() {
    let bus = TestBus::new();
    bus.retain(["context".parse().unwrap()]);
    let peer = bus.ready("a", &[], &[]);
    let block = LaneSettings { policy: Policy::Block, messages: 1, bytes: u64::MAX };
    bus.bus.subscribe(&peer, peer.inbox(), "context", Some(block)).unwrap();
    publish(&bus, "context", "1");
    let waiting =
        bus.bus.publish(bus.main(), None, "context", "2".into(), (None, Parent::default())).unwrap();
    peer.begin_instance();
    bus.bus.subscribe(&peer, peer.inbox(), "context", Some(block)).unwrap();
    let events = drain(peer.inbox());
    assert_eq!(waiting.receipt().await.unwrap().delivered, 1);
    assert_eq!(events, [(1, 0, "1".into()), (2, 0, "2".into())], "both came, and none was lost");
}
