//! Losses are counted, and shown at the right peer.

use weir_names::Policy;

use super::*;

fn blocked(bus: &TestBus) -> Arc<Peer> {
    let peer = bus.ready("a", &[], &[]);
    let delivery = LaneSettings { policy: Policy::Block, messages: 1, bytes: u64::MAX };
    bus.bus.subscribe(&peer, peer.inbox(), "t", Some(delivery)).unwrap();
    bus.publish(bus.main(), None, "t", "1".into()).unwrap();
    peer
}

#[tokio::test(start_paused = true)]
async fn an_event_whose_publisher_is_turned_away_counts_as_shed_of_its_subscriber() {
    let bus = TestBus::new();
    let peer = blocked(&bus);
    let publishing = bus.bus.publish(bus.main(), None, "t", "2".into(), (None, Parent::default())).unwrap();
    peer.set_phase(Phase::Down);
    assert_eq!(publishing.receipt().await.unwrap().refused, 1);
    assert_eq!(peer.stats().shed.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn an_event_given_up_behind_another_that_waits_is_lost_after_that_and_not_before() {
    let bus = TestBus::new();
    let peer = blocked(&bus);
    let publish = |payload: &'static str| {
        bus.bus.publish(bus.main(), None, "t", payload.into(), (None, Parent::default())).unwrap()
    };
    let (second, third) = (publish("2"), publish("3"));
    drop(third);
    take_event(peer.inbox());
    let event = take_event(peer.inbox());
    drop(second);
    bus.publish(bus.main(), None, "t", "4".into()).unwrap();
    let after = take_event(peer.inbox());
    assert_eq!((event.lost, after.lost), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn an_event_counts_its_topic_too_which_waits_with_it() {
    let bus = TestBus::new();
    let peer = bus.ready("a", &[], &[]);
    bus.subscribe(&peer, peer.inbox(), ">").unwrap();
    let topic = "a".repeat(250);
    bus.publish(bus.main(), None, &topic, "1234567".into()).unwrap();
    assert_eq!(peer.inbox().depth(), (1, 128 + 250 + 7));
    for _ in 0..100 {
        bus.publish(bus.main(), None, &topic, Bytes::new()).unwrap();
        assert!(peer.inbox().depth().1 <= LIMITS.inbox.bytes);
    }
}
