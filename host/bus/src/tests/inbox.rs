//! Lanes: their order, holds, and what goes back.

use std::sync::atomic::Ordering;

use super::*;

#[tokio::test(start_paused = true)]
async fn stop_comes_first_and_then_replies_until_none_is_to_come() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &["a@1"], &["c@1"]));
    let client = bus.main();
    bus.subscribe(&caller, caller.inbox(), "t").unwrap();
    bus.publish(client, None, "t", Bytes::new()).unwrap();
    let unreached = bus.call(client, "a@1", "").unwrap();
    for _ in 0..2 {
        bus.send(&caller, "c@1", "").unwrap();
    }
    take_request(&provider).responder.give(ok("first"));

    caller.stop();
    assert!(matches!(caller.take(), Taken::Stop));
    assert_eq!(take_reply(&caller).outcome, ok("first"));
    assert!(matches!(caller.take(), Taken::Empty), "one reply is still to come");
    take_request(&provider).responder.give(ok("second"));
    caller.readable().await;
    assert_eq!(take_reply(&caller).outcome, ok("second"));
    for _ in 0..2 {
        caller.readable().await;
        assert!(matches!(caller.take(), Taken::Stop), "neither request nor event");
    }
    caller.inbox().clear(Seat::FIRST);
    assert_eq!(unreached.answer().await, Err(Error::PeerGone));
}

#[tokio::test(start_paused = true)]
async fn a_stop_wakes_whoever_waits_for_a_message() {
    let bus = TestBus::new();
    let peer = bus.ready("a", &[], &[]);
    let reader = peer.clone();
    let waiting = tokio::spawn(async move { reader.readable().await });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    peer.stop();
    waiting.await.unwrap();
    assert!(matches!(peer.take(), Taken::Stop));
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_events_delays_no_request_and_no_reply() {
    let bus = TestBus::new();
    let peer = bus.ready("a", &["a@1"], &["c@1"]);
    let provider = bus.ready("p", &["c@1"], &[]);
    let client = bus.main();
    bus.subscribe(&peer, peer.inbox(), ">").unwrap();
    for _ in 0..100 {
        bus.publish(client, None, "flood", Bytes::new()).unwrap();
    }
    let call = bus.call(client, "a@1", "").unwrap();
    bus.send(&peer, "c@1", "").unwrap();
    take_request(&provider).responder.give(ok(""));
    take_reply(&peer);
    take_request(&peer).responder.give(ok("through"));
    assert_eq!(call.answer().await, ok("through"));
    assert_eq!(peer.inbox().depth().0, 8);
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_held_back_stay_while_events_and_replies_pass() {
    let bus = TestBus::new();
    let peer = bus.ready("a", &["a@1"], &[]);
    let client = bus.main();
    let call = bus.call(client, "a@1", "").unwrap();
    peer.hold_requests(true);
    let reader = peer.clone();
    let waiting = tokio::spawn(async move { reader.readable().await });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    assert!(matches!(peer.take(), Taken::Empty));
    peer.hold_requests(false);
    waiting.await.unwrap();
    take_request(&peer).responder.give(ok(""));
    assert_eq!(call.answer().await, ok(""));
}

#[tokio::test(start_paused = true)]
async fn a_request_in_hand_that_ends_by_itself_lets_those_held_back_be_looked_at_again() {
    let bus = TestBus::new();
    let peer = bus.ready("a", &["a@1"], &[]);
    let client = bus.main();
    let in_hand = bus.call(client, "a@1", "in hand").unwrap();
    let request = take_request(&peer);
    for given_up in [true, false] {
        peer.hold_requests(true);
        let held_back = bus.call(client, "a@1", "held back").unwrap();
        let reader = peer.clone();
        let waiting = tokio::spawn(async move { reader.readable().await });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        if given_up {
            drop(bus.call(client, "a@1", "given up").unwrap());
            waiting.await.unwrap();
            drop(held_back);
        } else {
            let mut target = bus.open(client, "a@1", "do", None).unwrap();
            let later = bus.term(&target, Some(Duration::from_secs(60)), Parent::default());
            let patient = bus.call_to(client, &mut target, Bytes::new(), later, false).unwrap();
            waiting.await.unwrap();
            drop((held_back, patient));
        }
    }
    assert_eq!(in_hand.answer().await, Err(Error::Timeout));
    assert!(request.responder.is_done());
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_request_does_not_make_an_inbox_readable() {
    let bus = TestBus::new();
    let peer = bus.ready("a", &["a@1"], &[]);
    drop(bus.call(bus.main(), "a@1", "").unwrap());
    let reader = peer.clone();
    let waiting = tokio::spawn(async move { reader.readable().await });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    waiting.abort();
}

#[tokio::test(start_paused = true)]
async fn what_goes_back_comes_before_what_waits_and_in_its_own_order() {
    let bus = TestBus::new();
    let peer = bus.ready("a", &["a@1"], &[]);
    let client = bus.main();
    bus.subscribe(&peer, peer.inbox(), "t").unwrap();
    let mut calls = Vec::new();
    for number in ["0", "1", "2"] {
        calls.push(bus.call(client, "a@1", number).unwrap());
        bus.publish(client, None, "t", number.into()).unwrap();
    }
    let first = [take_request(&peer), take_request(&peer)].map(Incoming::Request);
    let kept = take_request(&peer);
    let events = [take_event(peer.inbox()), take_event(peer.inbox())].map(Incoming::Event);
    peer.give_back(first.into_iter().chain(events).collect(), &[]);
    peer.give_back(vec![], &[]);
    drop(kept);
    let late = bus.call(client, "a@1", "3").unwrap();
    for number in ["0", "1", "3"] {
        assert_eq!(take_request(&peer).payload, number);
    }
    for number in ["0", "1", "2"] {
        assert_eq!(take_event(peer.inbox()).published.payload, number);
    }
    drop((calls, late));
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_finds_no_room_says_so_and_is_not_lost() {
    let bus = TestBus::new();
    let (provider, caller) = (bus.ready("p", &["c@1"], &[]), bus.ready("a", &[], &["c@1"]));
    let answer = Bytes::from(vec![0; 1024]);
    for _ in 0..4 {
        bus.send(&caller, "c@1", "").unwrap();
        take_request(&provider).responder.give(Ok(answer.clone()));
    }
    for _ in 0..3 {
        assert_eq!(take_reply(&caller).outcome, Ok(answer.clone()));
    }
    let no_room = Error::LimitExceeded { name: "inbox.bytes".into(), used: 4608, allowed: 4096 };
    assert_eq!(take_reply(&caller).outcome, Err(no_room));
}

#[tokio::test(start_paused = true)]
async fn the_depth_of_an_inbox_counts_every_lane_and_returns_to_nothing() {
    let bus = TestBus::new();
    let peer = bus.ready("a", &["a@1"], &[]);
    let client = bus.main();
    bus.subscribe(&peer, peer.inbox(), "t").unwrap();
    bus.publish(client, None, "t", "123".into()).unwrap();
    let call = bus.call(client, "a@1", "1234567").unwrap();
    assert_eq!(peer.inbox().depth(), (2, 2 * 128 + 10 + 1));
    take_request(&peer).responder.give(ok(""));
    take_event(peer.inbox());
    assert_eq!(peer.inbox().depth(), (0, 0));
    assert_eq!(call.answer().await, ok(""));
}

#[tokio::test(start_paused = true)]
async fn replies_take_the_room_of_the_oldest_events_and_those_are_counted() {
    let bus = TestBus::new();
    let (peer, provider) = (bus.ready("a", &[], &["c@1"]), bus.ready("p", &["c@1"], &[]));
    let client = bus.main();
    bus.subscribe(&peer, peer.inbox(), "t").unwrap();
    let publish = |text: &str| bus.publish(client, None, "t", Bytes::from(text.repeat(872))).unwrap();
    let delivered: Vec<_> =
        ["1", "2", "3", "4"].into_iter().map(publish).map(|receipt| receipt.shed).collect();
    assert_eq!(delivered, [0; 4], "four of 1000 bytes each fit into 4096");
    bus.send(&peer, "c@1", "").unwrap();
    take_request(&provider).responder.give(ok("a reply"));
    assert!(peer.inbox().depth().1 <= LIMITS.inbox.bytes);
    take_reply(&peer);
    assert_eq!(peer.stats().shed.load(Ordering::Relaxed), 1, "the one that went for the reply");
    assert_eq!(publish("5").shed, 0);
    let next = take_event(peer.inbox());
    assert_eq!((next.published.sequence, &next.published.payload[..1]), (2, &b"2"[..]));
}

#[tokio::test(start_paused = true)]
async fn how_full_an_inbox_is_counts_the_fuller_lane_and_is_remembered() {
    let bus = TestBus::new();
    let peer = bus.ready("a", &["a@1"], &["c@1"]);
    let provider = bus.ready("p", &["c@1"], &[]);
    let client = bus.main();
    bus.subscribe(&peer, peer.inbox(), ">").unwrap();
    for _ in 0..3 {
        bus.publish(client, None, "t", Bytes::from_static(b"12")).unwrap();
    }
    let calls: Vec<_> = (0..2).map(|_| bus.call(client, "a@1", "").unwrap()).collect();
    bus.send(&peer, "c@1", "").unwrap();
    take_request(&provider).responder.give(ok("1234"));
    let full = peer.inbox().filling().0;
    assert_eq!((full.messages, full.bytes), (3, 3 * 131 + 132), "replies are counted with the events");
    assert_eq!(peer.stats().largest.load(Ordering::Relaxed), 2, "the reply was not received yet");

    take_reply(&peer);
    take_request(&peer).responder.give(ok(""));
    let (now, peak) = peer.inbox().filling();
    assert_eq!((now.messages, now.bytes), (3, 3 * 131));
    assert_eq!(peak, full);
    assert_eq!(peer.stats().largest.load(Ordering::Relaxed), 4);
    drop(calls);
    peer.inbox().clear(Seat::FIRST);
    assert_eq!(peer.inbox().filling(), (Filling::default(), full));
}
