//! A reload changes a policy while senders wait for room.

use weir_names::{Policy, QueuePolicy};

use super::*;

fn delivery(policy: Policy) -> LaneSettings {
    LaneSettings { policy, messages: 3, bytes: u64::MAX }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_no_longer_blocks_loses_one_event_for_one_and_lets_in_who_waited() {
    let bus = TestBus::new();
    let peer = bus.ready("a", &[], &[]);
    let own = bus.bus.subscribe(&peer, peer.inbox(), "t", Some(delivery(Policy::Block))).unwrap();
    let other = Some(delivery(Policy::DropOldest));
    bus.bus.subscribe(&peer, peer.inbox(), "other", other).unwrap();
    for topic in ["t", "t", "t", "other", "other"] {
        bus.publish(bus.main(), None, topic, "".into()).unwrap();
    }
    let waiting = bus.bus.publish(bus.main(), None, "t", "waited".into(), (None, Parent::default())).unwrap();
    let waiting = tokio::spawn(waiting.receipt());
    peer.inbox().set_delivery(own.number(), delivery(Policy::DropOldest));
    let receipt = bus.publish(bus.main(), None, "t", "new".into()).unwrap();
    tokio::task::yield_now().await;
    let depth = peer.inbox().depth().0;
    waiting.abort();
    drop(waiting.await);
    assert_eq!((receipt.delivered, depth), (1, 5), "{receipt:?}");
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_no_longer_blocks_loses_one_job_for_one_and_lets_in_who_waited() {
    let bus = TestBus::new();
    let settings = |when_full| QueueSettings { when_full, ..queues::SETTINGS };
    let configure = |policy| bus.configure_queues(vec![("q".parse().unwrap(), settings(policy), None)]);
    configure(QueuePolicy::Block);
    let queue = bus.queue("q").unwrap();
    let put = |payload: &'static str| {
        bus.bus.put(bus.main(), &queue, payload.into(), (None, Parent::default())).unwrap()
    };
    for payload in ["1", "2", "3", "4"] {
        put(payload).put().await.unwrap();
    }
    let waiting = tokio::spawn(put("waited").put());
    configure(QueuePolicy::DropOldest);
    put("new").put().await.unwrap();
    tokio::task::yield_now().await;
    let (left, still_waits) = (queue.status().waiting, !waiting.is_finished());
    waiting.abort();
    drop(waiting.await);
    assert_eq!((left, still_waits), (4, false));
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_is_no_longer_latest_loses_nothing_for_a_newer_event_of_the_same_topic() {
    let bus = TestBus::new();
    let peer = bus.ready("a", &[], &[]);
    let own = bus.bus.subscribe(&peer, peer.inbox(), "t", Some(delivery(Policy::Latest))).unwrap();
    bus.publish(bus.main(), None, "t", "1".into()).unwrap();
    peer.inbox().set_delivery(own.number(), delivery(Policy::Reject));
    let receipt = bus.publish(bus.main(), None, "t", "2".into()).unwrap();
    assert_eq!((receipt.shed, drain(peer.inbox()).len()), (0, 2));
}
