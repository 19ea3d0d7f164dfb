//! Shared queues: which reader gets which job, how often, and what happens to it.

use std::sync::atomic::AtomicUsize;

use weir_names::QueuePolicy;

use super::*;

pub(super) const SETTINGS: QueueSettings = QueueSettings {
    messages: 4,
    bytes: 10_000,
    when_full: QueuePolicy::Reject,
    max_deliveries: 3,
    max_payload: u64::MAX,
    store: None,
};

pub(super) fn configure(bus: &TestBus, settings: QueueSettings) -> Arc<SharedQueue> {
    let dead = QueueSettings { when_full: QueuePolicy::DropOldest, ..SETTINGS };
    with_dead_letters(bus, settings, dead).0
}

pub(super) fn put(
    bus: &TestBus,
    queue: &Arc<SharedQueue>,
    payload: impl Into<Bytes>,
) -> Result<MessageId, Error> {
    let putting = bus.bus.put(bus.main(), queue, payload.into(), (None, Parent::default()))?;
    putting.put().now_or_never().expect("nobody waits for room")
}

fn reader() -> (Arc<JobReader>, Arc<AtomicUsize>) {
    let woken = Arc::new(AtomicUsize::new(0));
    let wake = woken.clone();
    (
        JobReader::new("reader".into(), u64::MAX, None, move || {
            wake.fetch_add(1, Ordering::Relaxed);
        }),
        woken,
    )
}

fn payload(job: &TakenJob) -> Bytes {
    job.get().payload.clone()
}

#[tokio::test(start_paused = true)]
async fn jobs_go_in_order_each_to_the_reader_that_has_waited_longest() {
    let bus = TestBus::new();
    let queue = configure(&bus, SETTINGS);
    let readers: Vec<_> = (0..3).map(|_| reader()).collect();
    for (reader, _) in &readers {
        queue.enlist(reader);
    }
    for job in ["1", "2"] {
        put(&bus, &queue, job).unwrap();
    }
    let woken: Vec<_> = readers.iter().map(|(_, woken)| woken.load(Ordering::Relaxed)).collect();
    assert_eq!(woken, [1, 1, 0]);
    let jobs: Vec<_> = readers.iter().filter_map(|(reader, _)| queue.take(reader)).collect();
    assert_eq!(jobs.iter().map(payload).collect::<Vec<_>>(), ["1", "2"]);
    put(&bus, &queue, "3").unwrap();
    assert!(readers[2].0.has_job());
}

#[tokio::test(start_paused = true)]
async fn a_job_goes_to_another_until_it_was_delivered_too_often_and_then_to_the_dead_letters() {
    let bus = TestBus::new();
    let queue = configure(&bus, SETTINGS);
    let id = put(&bus, &queue, "poison").unwrap();
    put(&bus, &queue, "good").unwrap();
    let (reader, _) = reader();
    for delivery in 1..=3 {
        let job = queue.take(&reader).unwrap();
        assert_eq!((job.get().id, job.get().deliveries), (id, delivery));
    }
    let good = queue.take(&reader).unwrap();
    assert_eq!(payload(&good), "good");
    good.done();
    let dead = bus.queue("dead").unwrap();
    let letters = dead.jobs(10);
    assert_eq!(letters[0].died_in.as_deref(), Some(&("q".parse().unwrap(), 3)));
    let counts = queue.counts();
    assert_eq!((counts.put, counts.delivered, counts.done, counts.returned, counts.dead), (2, 4, 1, 3, 1));
    assert_eq!((queue.status().bytes, queue.status().in_hand), (0, 0));

    assert!(bus.requeue(&dead, Some(MessageId(99_999))).is_err());
    assert_eq!(bus.requeue(&dead, Some(id)), Ok(1));
    let again = queue.take(&reader).unwrap();
    assert_eq!((again.get().id, again.get().deliveries), (id, 1));
    assert_eq!(dead.status().waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn without_room_where_it_died_a_dead_letter_stays_where_it_is() {
    let bus = TestBus::new();
    let queue = configure(&bus, QueueSettings { messages: 1, max_deliveries: 1, ..SETTINGS });
    put(&bus, &queue, "poison").unwrap();
    drop(queue.take(&reader().0));
    put(&bus, &queue, "fills it").unwrap();
    let dead = bus.queue("dead").unwrap();
    assert_eq!(bus.requeue(&dead, None), Err(Error::Overloaded("q".to_owned())));
    assert_eq!(dead.status().waiting, 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_in_hand_counts_in_the_capacity_so_that_it_can_come_back() {
    let bus = TestBus::new();
    let queue = configure(&bus, SETTINGS);
    for job in ["1", "2", "3", "4"] {
        put(&bus, &queue, job).unwrap();
    }
    let (reader, _) = reader();
    let (first, second) = (queue.take(&reader).unwrap(), queue.take(&reader).unwrap());
    assert_eq!(put(&bus, &queue, "5"), Err(Error::Overloaded("q".to_owned())));
    first.done();
    put(&bus, &queue, "5").unwrap();
    drop(second);
    let taken: Vec<_> = std::iter::from_fn(|| queue.take(&reader)).collect();
    assert_eq!(taken.iter().map(payload).collect::<Vec<_>>(), ["2", "3", "4", "5"]);
}

#[tokio::test(start_paused = true)]
async fn each_policy_of_a_full_queue_sheds_what_it_says() {
    let waiting =
        |queue: &SharedQueue| queue.jobs(10).iter().map(|job| job.payload.clone()).collect::<Vec<_>>();
    for (policy, left, refused) in [
        (QueuePolicy::DropOldest, ["3", "4", "5", "6"], None),
        (QueuePolicy::DropNewest, ["1", "2", "3", "4"], None),
        (QueuePolicy::Reject, ["1", "2", "3", "4"], Some(Error::Overloaded("q".to_owned()))),
    ] {
        let bus = TestBus::new();
        let queue = configure(&bus, QueueSettings { when_full: policy, ..SETTINGS });
        for job in ["1", "2", "3", "4"] {
            put(&bus, &queue, job).unwrap();
        }
        for job in ["5", "6"] {
            assert_eq!(put(&bus, &queue, job).err(), refused, "{policy}");
        }
        assert_eq!(waiting(&queue), left, "{policy}");
        let counts = queue.counts();
        assert_eq!(
            (counts.shed, counts.refused),
            if refused.is_none() { (2, 0) } else { (0, 2) },
            "{policy}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_put_into_a_full_block_queue_waits_in_turn_and_to_its_deadline() {
    let bus = TestBus::new();
    let queue = configure(&bus, QueueSettings { messages: 1, when_full: QueuePolicy::Block, ..SETTINGS });
    put(&bus, &queue, "1").unwrap();
    let wait = |payload: &'static str, ms| {
        let times = (Some(Duration::from_millis(ms)), Parent::default());
        tokio::spawn(bus.bus.put(bus.main(), &queue, payload.into(), times).unwrap().put())
    };
    let (second, third) = (wait("2", 1000), wait("3", 20));
    assert_eq!(third.await.unwrap(), Err(Error::Timeout));
    let (reader, _) = reader();
    queue.take(&reader).unwrap().done();
    second.await.unwrap().unwrap();
    assert_eq!(payload(&queue.take(&reader).unwrap()), "2");
    let fourth = wait("4", 1000);
    tokio::task::yield_now().await;
    bus.configure_queues(Vec::new());
    assert!(matches!(fourth.await.unwrap(), Err(Error::NoProvider(_))));
    assert!(put(&bus, &queue, "5").is_err());
    let kept = bus.queue("q").expect("it holds a job");
    assert_eq!(kept.status().waiting, 1);
    let again = configure(&bus, SETTINGS);
    assert_eq!(payload(&again.take(&reader).unwrap()), "2");
}

#[tokio::test(start_paused = true)]
async fn a_job_goes_to_none_whose_messages_may_not_be_so_large() {
    let bus = TestBus::new();
    let queue = configure(&bus, SETTINGS);
    let (small, large) =
        (JobReader::new("reader".into(), 2, None, || {}), JobReader::new("reader".into(), 100, None, || {}));
    put(&bus, &queue, "large").unwrap();
    put(&bus, &queue, "s").unwrap();
    let job = queue.take(&small).unwrap();
    assert_eq!(payload(&job), "s");
    queue.enlist(&small);
    assert!(!small.has_job());
    assert_eq!(payload(&queue.take(&large).unwrap()), "large");
    let too_large = put(&bus, &queue, vec![0; 10_000]);
    assert!(matches!(too_large, Err(Error::TooLarge { bytes: 10_000, .. })));
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_leaves_hands_on_what_it_was_handed_and_has_not_taken() {
    let bus = TestBus::new();
    let queue = configure(&bus, SETTINGS);
    let ((first, _), (second, woken)) = (reader(), reader());
    queue.enlist(&first);
    put(&bus, &queue, "1").unwrap();
    queue.enlist(&second);
    queue.leave(&first);
    assert_eq!(woken.load(Ordering::Relaxed), 1);
    let job = queue.take(&second).unwrap();
    assert_eq!(job.get().deliveries, 1, "it was never delivered before");
}

#[tokio::test(start_paused = true)]
async fn jobs_of_several_queues_are_done_together_and_their_senders_hear_it() {
    let bus = TestBus::new();
    let queue = configure(&bus, QueueSettings { messages: 2, when_full: QueuePolicy::Block, ..SETTINGS });
    let other = bus.queue("dead").unwrap();
    let offer = |queue: &Arc<SharedQueue>| {
        tokio::spawn(bus.bus.offer(bus.main(), queue, "x".into(), Parent::default()).unwrap().done())
    };
    let waits: Vec<_> = [&queue, &other, &queue, &queue].map(offer).into_iter().collect();
    tokio::task::yield_now().await;
    assert_eq!(queue.status().blocked, 1);
    let (reader, _) = reader();
    let jobs = [&queue, &other, &queue].map(|queue| queue.take(&reader).unwrap());
    TakenJob::all_done(jobs.into_iter().collect());
    assert_eq!((queue.counts().done, other.counts().done), (2, 1));
    assert_eq!((queue.status().in_hand, queue.status().blocked, queue.status().waiting), (0, 0, 1));
    queue.take(&reader).unwrap().done();
    for wait in waits {
        assert_eq!(wait.await.unwrap(), Ok(()));
    }
    TakenJob::all_done(Vec::new());
}

#[tokio::test(start_paused = true)]
async fn a_finished_job_stays_finished_if_the_reader_of_the_next_one_panics() {
    let bus = TestBus::new();
    let queue = configure(&bus, QueueSettings { messages: 1, when_full: QueuePolicy::Block, ..SETTINGS });
    put(&bus, &queue, "1").unwrap();
    let job = queue.take(&reader().0).unwrap();
    let next = bus.bus.put(bus.main(), &queue, "2".into(), (None, Parent::default())).unwrap();
    let panicking = JobReader::new("reader".into(), u64::MAX, None, || panic!("its waker panics"));
    queue.enlist(&panicking);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| job.done())).unwrap_err();
    assert_eq!((queue.counts().done, queue.counts().returned), (1, 0));
    next.put().await.unwrap();
    queue.take(&panicking).unwrap().done();
    assert_eq!((queue.counts().done, queue.status().in_hand), (2, 0));
}
