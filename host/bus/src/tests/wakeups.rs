//! A waiting instance wakes for a message that another one's leaving lets in.

use weir_names::Policy;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_for_room_behind_abandoned_ones_reaches_a_receiver_that_sleeps() {
    let bus = TestBus::new();
    let provider = bus.add_with("p", PeerLimits { when_full: RequestPolicy::Block, ..LIMITS }, &["c@1"], &[]);
    start(&provider, &["c@1"]);
    let sleeper = provider.clone();
    let readable = tokio::spawn(async move { sleeper.readable().await });
    tokio::task::yield_now().await;
    // All before the receiver's next turn, as when it is over its share.
    let abandoned: Vec<_> = (0..8).map(|_| bus.call(bus.main(), "c@1", "gone").unwrap()).collect();
    let waits = bus.call(bus.main(), "c@1", "waits").unwrap();
    drop(abandoned);
    tokio::task::yield_now().await;
    let woken = readable.is_finished();
    readable.abort();
    drop(waits);
    assert!(woken, "a request waits, and the receiver sleeps until somebody sends another");
}

#[tokio::test(start_paused = true)]
async fn an_event_that_gets_in_because_a_successor_unsubscribes_wakes_the_one_that_serves() {
    let bus = TestBus::new();
    let old = bus.ready("a", &[], &[]);
    let block = LaneSettings { policy: Policy::Block, ..LaneSettings::default() };
    bus.bus.subscribe(&old, old.inbox(), "mine", Some(block)).unwrap();
    let grants = vec![(">".parse().unwrap(), LaneSettings::default())];
    let successor = old.renewed(LIMITS, Access { subscribes: grants, ..Access::default() });
    successor.begin_beside();
    let new = bus.bus.subscribe(&successor, old.inbox(), "new", None).unwrap().number();
    for _ in 0..8 {
        bus.publish(bus.main(), None, "new", "".into()).unwrap();
    }
    let sleeper = old.clone();
    let readable = tokio::spawn(async move { sleeper.readable().await });
    let publishing = bus.bus.publish(bus.main(), None, "mine", "".into(), (None, Parent::default())).unwrap();
    tokio::task::yield_now().await;
    assert!(!readable.is_finished());
    bus.unsubscribe(&successor, new).unwrap();
    assert_eq!(publishing.receipt().await.unwrap().delivered, 1);
    tokio::task::yield_now().await;
    let woken = readable.is_finished();
    readable.abort();
    assert!(woken, "an event waits, and the instance sleeps until something else comes");
}
