//! Readers of a queue: which jobs it may hold for them, which of them could make room, and jobs that none takes.

use weir_names::QueuePolicy;

use super::*;

const SETTINGS: QueueSettings = QueueSettings {
    messages: 2,
    bytes: 10_000,
    when_full: QueuePolicy::Block,
    max_deliveries: 1,
    max_payload: u64::MAX,
    store: None,
};

fn put(bus: &TestBus, queue: &Arc<SharedQueue>, bytes: usize) -> Result<MessageId, Error> {
    let putting = bus.bus.put(bus.main(), queue, vec![0; bytes].into(), (None, Parent::default()))?;
    putting.put().now_or_never().expect("nobody waits for room")
}

fn anybody() -> Arc<JobReader> {
    JobReader::new("reader".into(), u64::MAX, None, || {})
}

/// The only extension that puts into the queue and takes from it.
fn feeding_itself(bus: &TestBus, queue: &SharedQueue) -> Arc<Peer> {
    let grants = Access { puts: vec![queue.name().clone()], ..Access::default() };
    let peer = bus.ready("a", &[], &[]).renewed(LIMITS, grants);
    bus.replace(&peer, true);
    queue.join(peer.id());
    peer
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_room_in_a_queue_from_which_main_takes_too_waits_for_main() {
    let bus = TestBus::new();
    let (queue, _) = with_dead_letters(&bus, SETTINGS, SETTINGS);
    let peer = feeding_itself(&bus, &queue);
    for _ in 0..2 {
        put(&bus, &queue, 1).unwrap();
    }
    let again = || bus.bus.put(&peer, &queue, "more".into(), (None, Parent::default()));
    let circle = vec!["a".to_owned(), "a".to_owned()];
    assert_eq!(again().map(drop), Err(Error::WouldDeadlock(circle.clone())));
    assert_eq!(queue.status().blocked, 0);

    queue.join(PeerId::MAIN);
    let waits = again().unwrap();
    queue.take(&anybody()).unwrap().done();
    waits.put().now_or_never().unwrap().unwrap();

    queue.part(PeerId::MAIN);
    assert_eq!(again().map(drop), Err(Error::WouldDeadlock(circle)));
}

#[tokio::test(start_paused = true)]
async fn a_job_too_large_for_all_who_take_is_refused() {
    let bus = TestBus::new();
    let (queue, _) = with_dead_letters(&bus, QueueSettings { max_payload: 100, ..SETTINGS }, SETTINGS);
    put(&bus, &queue, 100).unwrap();
    assert_eq!(put(&bus, &queue, 101), Err(Error::TooLarge { bytes: 101, allowed: 100 }));
}

#[tokio::test(start_paused = true)]
async fn jobs_that_became_too_large_for_all_who_take_are_dead_and_block_nobody() {
    let bus = TestBus::new();
    let (queue, dead) = with_dead_letters(&bus, SETTINGS, SETTINGS);
    for bytes in [101, 100] {
        put(&bus, &queue, bytes).unwrap();
    }
    let waiting = bus.bus.put(bus.main(), &queue, "next".into(), (None, Parent::default())).unwrap();
    let too_large = bus.bus.put(bus.main(), &queue, vec![0; 102].into(), (None, Parent::default())).unwrap();
    with_dead_letters(&bus, QueueSettings { max_payload: 100, ..SETTINGS }, SETTINGS);
    waiting.put().now_or_never().unwrap().unwrap();
    assert_eq!(too_large.put().now_or_never().unwrap(), Err(Error::Overloaded("q".to_owned())));
    let lengths = |queue: &SharedQueue| queue.jobs(9).iter().map(|job| job.payload.len()).collect::<Vec<_>>();
    assert_eq!((lengths(&queue), lengths(&dead)), (vec![100, 4], vec![101]));
    assert_eq!((queue.counts().dead, queue.counts().refused), (1, 1));

    // It goes back once a reader takes it again.
    assert_eq!(bus.requeue(&dead, None), Err(Error::TooLarge { bytes: 101, allowed: 100 }));
    let (queue, dead) = with_dead_letters(&bus, QueueSettings { messages: 3, ..SETTINGS }, SETTINGS);
    assert_eq!(bus.requeue(&dead, None), Ok(1));
    assert_eq!(lengths(&queue), [100, 4, 101]);
}

#[tokio::test(start_paused = true)]
async fn dead_jobs_that_nobody_keeps_are_told_as_losses() {
    let bus = TestBus::new();
    let (queue, dead) = with_dead_letters(&bus, SETTINGS, QueueSettings { messages: 1, ..SETTINGS });
    for _ in 0..3 {
        put(&bus, &queue, 1).unwrap();
        drop(queue.take(&anybody()));
    }
    assert_eq!((dead.status().waiting, dead.counts().shed), (1, 2));
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
    let (queue, _) = with_dead_letters(&bus, SETTINGS, SETTINGS);
    for _ in 0..2 {
        put(&bus, &queue, 1).unwrap();
    }
    let waiting = bus.bus.put(bus.main(), &queue, "next".into(), (None, Parent::default())).unwrap();
    with_dead_letters(&bus, QueueSettings { when_full: QueuePolicy::Reject, ..SETTINGS }, SETTINGS);
    assert_eq!(waiting.put().now_or_never().unwrap(), Err(Error::Overloaded("q".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn what_comes_back_from_a_reader_and_is_too_large_by_then_is_dead() {
    let bus = TestBus::new();
    let settings = QueueSettings { max_deliveries: 9, ..SETTINGS };
    let (queue, dead) = with_dead_letters(&bus, settings.clone(), SETTINGS);
    let handed = anybody();
    queue.enlist(&handed);
    for _ in 0..2 {
        put(&bus, &queue, 101).unwrap();
    }
    let in_hand = queue.take(&anybody()).unwrap();
    with_dead_letters(&bus, QueueSettings { max_payload: 100, ..settings }, SETTINGS);
    drop(in_hand);
    queue.leave(&handed);
    let stats = queue.status();
    assert_eq!((stats.waiting, stats.in_hand, stats.bytes, stats.dead), (0, 0, 0, 2));
    assert_eq!(dead.status().waiting, 2);
}

#[tokio::test(start_paused = true)]
async fn dead_letters_stay_though_they_are_too_large_for_whoever_takes_those() {
    let bus = TestBus::new();
    let small = QueueSettings { max_payload: 10, ..SETTINGS };
    let (queue, dead) = with_dead_letters(&bus, SETTINGS, small.clone());
    put(&bus, &queue, 100).unwrap();
    drop(queue.take(&anybody()));
    with_dead_letters(&bus, SETTINGS, small);
    assert_eq!(dead.status().waiting, 1);
    assert_eq!(bus.requeue(&dead, None), Ok(1));
}

/// A queue with room for all jobs, and two readers that have each taken so many.
fn two_who_had(bus: &TestBus, jobs: usize) -> (Arc<SharedQueue>, [Arc<JobReader>; 2]) {
    let (queue, _) =
        with_dead_letters(bus, QueueSettings { messages: 9999, bytes: 1 << 30, ..SETTINGS }, SETTINGS);
    let readers = [anybody(), anybody()];
    for reader in readers.iter().cycle().take(2 * jobs) {
        put(bus, &queue, 1).unwrap();
        queue.take(reader).unwrap().done();
    }
    (queue, readers)
}

#[tokio::test(start_paused = true)]
async fn one_that_comes_late_gets_no_more_than_those_who_were_there() {
    for had in [0, 1] {
        let bus = TestBus::new();
        let (queue, [first, second]) = two_who_had(&bus, 1000);
        let late = anybody();
        for _ in 0..had {
            put(&bus, &queue, 1).unwrap();
            queue.take(&late).unwrap().done();
        }
        let mut shares = [0; 3];
        for _ in 0..30 {
            let all = [&first, &second, &late];
            all.iter().for_each(|reader| queue.enlist(reader));
            put(&bus, &queue, 1).unwrap();
            let place = all.iter().position(|reader| reader.has_job()).unwrap();
            queue.take(all[place]).unwrap().done();
            shares[place] += 1;
            all.iter().for_each(|reader| queue.leave(reader));
        }
        assert!(shares.iter().all(|share| (9..=11).contains(share)), "{shares:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_leaves_a_job_to_others_has_not_had_it() {
    let bus = TestBus::new();
    let (queue, [leaving, other]) = two_who_had(&bus, 1);
    for _ in 0..100 {
        queue.enlist(&leaving);
        put(&bus, &queue, 1).unwrap();
        assert!(leaving.has_job());
        queue.leave(&leaving);
        // Both have had as many, so either may take it.
        queue.take(&leaving).unwrap().done();
        put(&bus, &queue, 1).unwrap();
        queue.take(&other).unwrap().done();
    }
    [&leaving, &other].into_iter().for_each(|reader| queue.enlist(reader));
    put(&bus, &queue, 1).unwrap();
    assert!(leaving.has_job());
}
