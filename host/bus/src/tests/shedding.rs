//! Nothing is lost for room that is then not used.

use weir_names::{Policy, QueuePolicy};

use super::*;

fn settings(bytes: u64, when_full: QueuePolicy) -> QueueSettings {
    QueueSettings { messages: 100, bytes, when_full, max_deliveries: 1, max_payload: u64::MAX, store: None }
}

async fn put(bus: &TestBus, queue: &Arc<SharedQueue>, bytes: usize) {
    let payload = Bytes::from(vec![0; bytes]);
    bus.bus.put(bus.main(), queue, payload, (None, Parent::default())).unwrap().put().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_that_can_never_fit_drives_out_no_others() {
    let bus = TestBus::new();
    let dead = settings(500, QueuePolicy::Reject);
    let (queue, dead) = with_dead_letters(&bus, settings(4096, QueuePolicy::Reject), dead);
    let reader = JobReader::new("reader".into(), u64::MAX, None, || {});
    for bytes in [1, 1, 1, 1000] {
        put(&bus, &queue, bytes).await;
        drop(queue.take(&reader));
    }
    assert_eq!(dead.status().waiting, 3);
}

#[tokio::test(start_paused = true)]
async fn dead_letters_for_a_queue_that_is_no_longer_configured_drive_out_no_others() {
    let bus = TestBus::new();
    let dead = QueueSettings { messages: 1, ..settings(4096, QueuePolicy::Reject) };
    let (queue, dead) = with_dead_letters(&bus, settings(4096, QueuePolicy::Reject), dead);
    let reader = JobReader::new("reader".into(), u64::MAX, None, || {});
    put(&bus, &queue, 1).await;
    drop(queue.take(&reader));
    put(&bus, &queue, 2).await;
    let in_hand = queue.take(&reader);
    bus.configure_queues(Vec::new());
    drop(in_hand);
    assert_eq!(dead.status().waiting, 1);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_finds_no_room_beside_those_in_hand_drives_out_none_that_wait() {
    let bus = TestBus::new();
    bus.configure_queues(vec![("q".parse().unwrap(), settings(1500, QueuePolicy::DropOldest), None)]);
    let queue = bus.queue("q").unwrap();
    let reader = JobReader::new("reader".into(), u64::MAX, None, || {});
    put(&bus, &queue, 900).await;
    let _in_hand = queue.take(&reader);
    for _ in 0..3 {
        put(&bus, &queue, 1).await;
    }
    put(&bus, &queue, 500).await;
    assert_eq!((queue.status().waiting, queue.counts().shed), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_finds_no_room_beside_what_stays_drives_out_no_others() {
    let bus = TestBus::new();
    let peer = bus.ready("a", &[], &[]);
    let subscribe = |pattern, policy| {
        let delivery = LaneSettings { policy, ..LaneSettings::default() };
        bus.bus.subscribe(&peer, peer.inbox(), pattern, Some(delivery)).unwrap();
    };
    subscribe("kept", Policy::Reject);
    subscribe("t", Policy::DropOldest);
    let publish = |topic, bytes: usize| bus.publish(bus.main(), None, topic, vec![0; bytes].into()).unwrap();
    for _ in 0..3 {
        publish("kept", 1000);
    }
    for _ in 0..4 {
        publish("t", 10);
    }
    let receipt = publish("t", 1000);
    assert_eq!((receipt.shed, peer.inbox().depth().0), (1, 7));
}

#[tokio::test(start_paused = true)]
async fn one_dead_letter_that_cannot_go_back_keeps_no_others() {
    let bus = TestBus::new();
    let dead = || Some("dead".parse().unwrap());
    let reader = JobReader::new("reader".into(), u64::MAX, None, || {});
    let with = |names: &[&str]| {
        let mut queues = vec![("dead".parse().unwrap(), settings(4096, QueuePolicy::Reject), None)];
        queues.extend(
            names.iter().map(|name| (name.parse().unwrap(), settings(4096, QueuePolicy::Reject), dead())),
        );
        bus.configure_queues(queues);
    };
    with(&["gone", "q"]);
    for name in ["gone", "q"] {
        let queue = bus.queue(name).unwrap();
        put(&bus, &queue, 1).await;
        drop(queue.take(&reader));
    }
    with(&["q"]);
    let outcome = bus.requeue(&bus.queue("dead").unwrap(), None);
    assert_eq!(bus.queue("q").unwrap().status().waiting, 1, "{outcome:?}");
    assert!(matches!(outcome, Err(Error::NoProvider(_))), "as `Control::requeue` says: {outcome:?}");
}
