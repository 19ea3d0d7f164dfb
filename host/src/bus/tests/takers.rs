//! Who takes from a queue: what it may hold, who could make room in it, and who hears of jobs that nobody takes.

use super::*;
use crate::policy::Policy;

const SETTINGS: QueueSettings = QueueSettings {
    messages: 2,
    bytes: 10_000,
    when_full: Policy::Block,
    max_deliveries: 1,
    max_payload: u64::MAX,
};

/// A queue, and one for its dead letters.
fn configure(bus: &TestBus, settings: QueueSettings, dead: QueueSettings) -> (Arc<Queue>, Arc<Queue>) {
    bus.configure_queues(vec![
        ("q".parse().unwrap(), settings, Some("dead".parse().unwrap())),
        ("dead".parse().unwrap(), dead, None),
    ]);
    (bus.queue("q").unwrap(), bus.queue("dead").unwrap())
}

fn put(bus: &TestBus, queue: &Arc<Queue>, bytes: usize) -> Result<MessageId, Error> {
    let putting = bus.bus.put(bus.main(), queue, vec![0; bytes].into(), (None, None))?;
    putting.put().now_or_never().expect("nobody waits for room")
}

fn anybody() -> Arc<Reader> {
    Reader::new(u64::MAX, None, || {})
}

/// A peer that puts into the queue and takes from it, alone of all extensions.
fn feeding_itself(bus: &TestBus, queue: &Queue) -> Arc<Peer> {
    let grants = Access { puts: vec![queue.name().clone()], ..Access::default() };
    let peer = bus.ready("a", &[], &[]).renewed(LIMITS, grants);
    bus.hand_over(&peer, true);
    queue.join(peer.id());
    peer
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_room_in_a_queue_from_which_main_takes_too_waits_for_main() {
    let bus = TestBus::new();
    let (queue, _) = configure(&bus, SETTINGS, SETTINGS);
    let peer = feeding_itself(&bus, &queue);
    for _ in 0..2 {
        put(&bus, &queue, 1).unwrap();
    }
    let again = || bus.bus.put(&peer, &queue, "more".into(), (None, None));
    let circle = vec!["a".to_owned(), "a".to_owned()];
    assert_eq!(again().map(drop), Err(Error::WouldDeadlock(circle.clone())));
    assert_eq!(queue.stats().blocked, 0);

    queue.join(PeerId::MAIN);
    let waits = again().unwrap();
    queue.take(&anybody()).unwrap().done();
    waits.put().now_or_never().unwrap().unwrap();

    queue.part(PeerId::MAIN);
    assert_eq!(again().map(drop), Err(Error::WouldDeadlock(circle)));
}

#[tokio::test(start_paused = true)]
async fn a_job_too_large_for_all_who_take_is_refused_while_main_takes_none() {
    let bus = TestBus::new();
    let (queue, _) = configure(&bus, QueueSettings { max_payload: 100, ..SETTINGS }, SETTINGS);
    let refused = Err(Error::TooLarge { bytes: 101, allowed: 100 });
    put(&bus, &queue, 100).unwrap();
    assert_eq!(put(&bus, &queue, 101), refused);
    queue.join(PeerId::MAIN);
    put(&bus, &queue, 101).unwrap();
}

#[tokio::test(start_paused = true)]
async fn jobs_that_became_too_large_for_all_who_take_are_dead_and_block_nobody() {
    let bus = TestBus::new();
    let (queue, dead) = configure(&bus, SETTINGS, SETTINGS);
    for bytes in [101, 100] {
        put(&bus, &queue, bytes).unwrap();
    }
    let waiting = bus.bus.put(bus.main(), &queue, "next".into(), (None, None)).unwrap();
    let too_large = bus.bus.put(bus.main(), &queue, vec![0; 102].into(), (None, None)).unwrap();
    configure(&bus, QueueSettings { max_payload: 100, ..SETTINGS }, SETTINGS);
    waiting.put().now_or_never().unwrap().unwrap();
    assert_eq!(too_large.put().now_or_never().unwrap(), Err(Error::Overloaded("q".to_owned())));
    let lengths = |queue: &Queue| queue.jobs(9).iter().map(|job| job.payload.len()).collect::<Vec<_>>();
    assert_eq!((lengths(&queue), lengths(&dead)), (vec![100, 4], vec![101]));
    assert_eq!(queue.stats().counts.dead, 1);

    // It goes back when somebody takes it again.
    assert_eq!(bus.requeue(&dead, None), Err(Error::TooLarge { bytes: 101, allowed: 100 }));
    let (queue, dead) = configure(&bus, QueueSettings { messages: 3, ..SETTINGS }, SETTINGS);
    assert_eq!(bus.requeue(&dead, None), Ok(1));
    assert_eq!(lengths(&queue), [100, 4, 101]);
}

#[tokio::test(start_paused = true)]
async fn dead_jobs_that_nobody_keeps_are_told_as_losses() {
    let bus = TestBus::new();
    let (queue, dead) = configure(&bus, SETTINGS, QueueSettings { messages: 1, ..SETTINGS });
    for _ in 0..3 {
        put(&bus, &queue, 1).unwrap();
        drop(queue.take(&anybody()));
    }
    assert_eq!((dead.stats().waiting, dead.stats().counts.shed), (1, 2));
    for _ in 0..2 {
        drop(dead.take(&anybody()));
        put(&bus, &queue, 1).unwrap();
        drop(queue.take(&anybody()));
    }
    let told = |queue: &str, total| (format!("queue {queue}"), total);
    assert_eq!(*bus.losses.lock().unwrap(), [told("dead", 1), told("dead", 2), told("dead", 4)]);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_room_where_none_is_waited_for_any_more_hears_it_as_such() {
    let bus = TestBus::new();
    let (queue, _) = configure(&bus, SETTINGS, SETTINGS);
    for _ in 0..2 {
        put(&bus, &queue, 1).unwrap();
    }
    let waiting = bus.bus.put(bus.main(), &queue, "next".into(), (None, None)).unwrap();
    configure(&bus, QueueSettings { when_full: Policy::Reject, ..SETTINGS }, SETTINGS);
    assert_eq!(waiting.put().now_or_never().unwrap(), Err(Error::Overloaded("q".to_owned())));
}
