//! Losses and deliveries are counted, and shown at the right peer.

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
async fn events_lost_before_they_came_here_are_seen_by_each_subscriber_and_shed_by_none() {
    let bus = TestBus::new();
    let peers = ["a", "b"].map(|id| {
        let peer = bus.ready(id, &[], &[]);
        bus.bus.subscribe(&peer, peer.inbox(), "t", None).unwrap();
        peer
    });
    bus.publish(bus.main(), None, "t", "1".into()).unwrap();
    for counted in [3, 0] {
        let term = (None, Parent { counted, ..Parent::default() });
        drop(bus.bus.publish(bus.main(), None, "t", "2".into(), term).unwrap());
    }
    for peer in peers {
        let lost = [(); 3].map(|()| take_event(peer.inbox()).lost);
        assert_eq!((lost, peer.stats().shed.load(Ordering::Relaxed)), ([0, 3, 0], 0));
    }
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

#[tokio::test(start_paused = true)]
async fn deliveries_elsewhere_count_and_a_job_that_has_none_left_gets_one_more() {
    let bus = TestBus::new();
    let queue = queues::configure(&bus, queues::SETTINGS);
    let reader = JobReader::new("reader".into(), u64::MAX, None, || {});
    for (counted, deliveries) in [(1, vec![2, 3]), (9, vec![10]), (u64::MAX, vec![u32::MAX])] {
        let parent = Parent { counted, ..Parent::default() };
        let done = bus.bus.offer(bus.main(), &queue, "poison".into(), parent).unwrap().done();
        for delivery in deliveries {
            let job = queue.take(&reader).unwrap();
            assert_eq!(job.get().deliveries, delivery);
        }
        assert_eq!(done.await.unwrap_err().code(), "dead");
    }
}
