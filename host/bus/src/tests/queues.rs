//! Shared queues: which reader gets which job, how often, and what happens to it.

use std::{collections::VecDeque, sync::atomic::AtomicUsize};

use proptest::prelude::*;
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
    bus.configure_queues(vec![
        ("q".parse().unwrap(), settings, Some("dead".parse().unwrap())),
        ("dead".parse().unwrap(), dead, None),
    ]);
    bus.queue("q").unwrap()
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
    job.get().unwrap().payload.clone()
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
        assert_eq!((job.get().unwrap().id, job.get().unwrap().deliveries), (id, delivery));
    }
    let good = queue.take(&reader).unwrap();
    assert_eq!(payload(&good), "good");
    good.done();
    let dead = bus.queue("dead").unwrap();
    let letters = dead.jobs(10);
    assert_eq!(letters[0].died_in.as_deref(), Some(&("q".parse().unwrap(), 3)));
    let counts = queue.stats().counts;
    assert_eq!((counts.put, counts.delivered, counts.done, counts.returned, counts.dead), (2, 4, 1, 3, 1));
    assert_eq!((queue.stats().bytes, queue.stats().in_hand), (0, 0));

    assert!(bus.requeue(&dead, Some(MessageId(99_999))).is_err());
    assert_eq!(bus.requeue(&dead, Some(id)), Ok(1));
    let again = queue.take(&reader).unwrap();
    assert_eq!((again.get().unwrap().id, again.get().unwrap().deliveries), (id, 1));
    assert_eq!(dead.stats().waiting, 0);
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
    assert_eq!(dead.stats().waiting, 1);
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
        let counts = queue.stats().counts;
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
    assert_eq!(kept.stats().waiting, 1);
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
    assert_eq!(job.get().unwrap().deliveries, 1, "it was never delivered before");
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
    assert_eq!(queue.stats().blocked, 1);
    let (reader, _) = reader();
    let jobs = [&queue, &other, &queue].map(|queue| queue.take(&reader).unwrap());
    TakenJob::all_done(jobs.into_iter().collect());
    assert_eq!((queue.stats().counts.done, other.stats().counts.done), (2, 1));
    assert_eq!((queue.stats().in_hand, queue.stats().blocked, queue.stats().waiting), (0, 0, 1));
    queue.take(&reader).unwrap().done();
    for wait in waits {
        assert_eq!(wait.await.unwrap(), Ok(()));
    }
    TakenJob::all_done(Vec::new());
}

#[derive(Clone, Debug)]
enum Op {
    Put { large: bool },
    GiveUp(usize),
    Enlist(usize),
    Leave(usize),
    Take(usize),
    Done(usize),
    AllDone(usize),
    Drop(usize),
    Requeue,
}

fn op() -> impl Strategy<Value = Op> {
    let (reader, place) = (|| 0..3_usize, || 0..16_usize);
    prop_oneof![
        5 => any::<bool>().prop_map(|large| Op::Put { large }),
        1 => place().prop_map(Op::GiveUp),
        2 => reader().prop_map(Op::Enlist),
        1 => reader().prop_map(Op::Leave),
        4 => reader().prop_map(Op::Take),
        2 => place().prop_map(Op::Done),
        1 => place().prop_map(Op::AllDone),
        3 => place().prop_map(Op::Drop),
        1 => Just(Op::Requeue),
    ]
}

/// Bytes of a small payload, which is the job's number. A large one has twice as many.
const SMALL: u64 = 4;

/// A job of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Known {
    number: u32,
    large: bool,
    deliveries: u32,
}

impl Known {
    fn of(job: &QueuedJob) -> Self {
        let number = u32::from_be_bytes(job.payload[..4].try_into().unwrap());
        Self { number, large: job.payload.len() as u64 > SMALL, deliveries: job.deliveries }
    }

    fn payload(self) -> Bytes {
        let number = self.number.to_be_bytes();
        if self.large { [number, number].concat().into() } else { number.to_vec().into() }
    }

    fn fits(self, reader: usize) -> bool {
        // The first reader takes only small jobs.
        reader > 0 || !self.large
    }

    fn bytes(self) -> u64 {
        128 + self.payload().len() as u64
    }
}

/// A queue of four jobs, beside a model in lists.
struct World {
    bus: Arc<Bus>,
    queue: Arc<SharedQueue>,
    dead_letters: Arc<SharedQueue>,
    readers: Vec<Arc<JobReader>>,
    putting: Vec<(u32, Putting)>,
    taken: Vec<TakenJob>,
    policy: QueuePolicy,
    put: u32,
    waiting: VecDeque<Known>,
    blocked: VecDeque<Known>,
    line: Vec<usize>,
    handed: [Option<Known>; 3],
    in_hand: Vec<Known>,
    dead: VecDeque<Known>,
    counts: JobCounts,
}

impl World {
    fn new(policy: QueuePolicy) -> Self {
        let bus = Arc::new(Bus::new(LIMITS, Box::new(|_, _| {})));
        let settings = QueueSettings { when_full: policy, ..SETTINGS };
        let dead = QueueSettings { when_full: QueuePolicy::Reject, ..SETTINGS };
        bus.configure_queues(vec![
            ("q".parse().unwrap(), settings, Some("dead".parse().unwrap())),
            ("dead".parse().unwrap(), dead, None),
        ]);
        let (queue, dead_letters) = (bus.queue("q").unwrap(), bus.queue("dead").unwrap());
        let readers = [SMALL, u64::MAX, u64::MAX]
            .map(|bytes| JobReader::new("reader".into(), bytes, None, || {}))
            .to_vec();
        let (putting, taken, put) = (Vec::new(), Vec::new(), 0);
        let (waiting, blocked, line) = (VecDeque::new(), VecDeque::new(), Vec::new());
        let (handed, in_hand, dead, counts) = ([None; 3], Vec::new(), VecDeque::new(), JobCounts::default());
        Self {
            bus,
            queue,
            dead_letters,
            readers,
            putting,
            taken,
            policy,
            put,
            waiting,
            blocked,
            line,
            handed,
            in_hand,
            dead,
            counts,
        }
    }

    fn has_room(&self) -> bool {
        self.waiting.len() + self.handed.iter().flatten().count() + self.in_hand.len() < 4
    }

    /// A new job goes to a reader in line that takes it; only without one does it wait.
    fn add(&mut self, job: Known, first: bool) {
        if self.line.iter().any(|reader| job.fits(*reader)) {
            let has_it = |reader: &usize| self.readers[*reader].has_job() && job.fits(*reader);
            let place = self.line.iter().position(has_it).expect("one in line has it");
            self.handed[self.line.remove(place)] = Some(job);
        } else if first {
            self.waiting.push_front(job);
        } else {
            self.waiting.push_back(job);
        }
    }

    fn add_new(&mut self, job: Known) {
        self.counts.put += 1;
        self.add(job, false);
    }

    fn admit(&mut self) {
        if self.has_room()
            && let Some(job) = self.blocked.pop_front()
        {
            self.putting.retain(|(number, _)| *number != job.number);
            self.add_new(job);
        }
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Put { large } => self.put(large),
            Op::GiveUp(place) if !self.putting.is_empty() => {
                let (number, putting) = self.putting.remove(place % self.putting.len());
                drop(putting);
                self.blocked.retain(|job| job.number != number);
                self.counts.refused += 1;
            }
            Op::Enlist(reader) => {
                self.queue.enlist(&self.readers[reader]);
                if self.handed[reader].is_none() {
                    self.line.retain(|other| *other != reader);
                    match self.waiting.iter().position(|job| job.fits(reader)) {
                        Some(place) => self.handed[reader] = self.waiting.remove(place),
                        None => self.line.push(reader),
                    }
                }
            }
            Op::Leave(reader) => {
                self.queue.leave(&self.readers[reader]);
                self.line.retain(|other| *other != reader);
                if let Some(job) = self.handed[reader].take() {
                    self.add(job, true);
                }
            }
            Op::Take(reader) => {
                let taken = self.queue.take(&self.readers[reader]);
                let first = self.waiting.iter().position(|job| job.fits(reader));
                let expected =
                    self.handed[reader].take().or_else(|| first.and_then(|place| self.waiting.remove(place)));
                let expected = expected.map(|job| Known { deliveries: job.deliveries + 1, ..job });
                assert_eq!(taken.as_ref().map(|taken| Known::of(taken.get().unwrap())), expected);
                self.counts.delivered += u64::from(expected.is_some());
                self.in_hand.extend(expected);
                self.taken.extend(taken);
            }
            Op::Done(place) if !self.taken.is_empty() => {
                let place = place % self.taken.len();
                self.taken.swap_remove(place).done();
                self.in_hand.swap_remove(place);
                self.counts.done += 1;
                self.admit();
            }
            Op::AllDone(place) if !self.taken.is_empty() => {
                let last = place % self.taken.len();
                let jobs: Vec<_> = self.taken.drain(..=last).collect();
                TakenJob::all_done(jobs);
                self.in_hand.drain(..=last);
                self.counts.done += last as u64 + 1;
                (0..=last).for_each(|_| self.admit());
            }
            Op::Drop(place) if !self.taken.is_empty() => {
                let place = place % self.taken.len();
                drop(self.taken.swap_remove(place));
                let job = self.in_hand.swap_remove(place);
                self.counts.returned += 1;
                if job.deliveries < SETTINGS.max_deliveries {
                    self.add(job, true);
                } else {
                    self.counts.dead += 1;
                    // The oldest give way there, whatever the policy.
                    if self.dead.len() == 4 {
                        self.dead.pop_front();
                    }
                    self.dead.push_back(Known { deliveries: 0, ..job });
                    self.admit();
                }
            }
            Op::Requeue => {
                let Some(first) = self.dead_letters.jobs(1).pop() else { return };
                let outcome = self.bus.requeue(&self.dead_letters, Some(first.id));
                assert_eq!(outcome.is_ok(), self.has_room());
                if self.has_room() {
                    let job = self.dead.pop_front().unwrap();
                    self.add_new(job);
                }
            }
            Op::GiveUp(_) | Op::Done(_) | Op::AllDone(_) | Op::Drop(_) => {}
        }
        self.check();
    }

    fn put(&mut self, large: bool) {
        self.put += 1;
        let job = Known { number: self.put, large, deliveries: 0 };
        let outcome = self.bus.put(self.bus.main(), &self.queue, job.payload(), (None, Parent::default()));
        assert_eq!(outcome.is_err(), self.policy == QueuePolicy::Reject && !self.has_room());
        if self.has_room() {
            return self.add_new(job);
        }
        match self.policy {
            QueuePolicy::Reject => self.counts.refused += 1,
            QueuePolicy::Block => {
                self.putting.push((job.number, outcome.unwrap()));
                self.blocked.push_back(job);
            }
            policy => {
                self.counts.shed += 1;
                // Jobs in hand stay.
                if policy == QueuePolicy::DropOldest && self.waiting.pop_front().is_some() {
                    self.add_new(job);
                }
            }
        }
    }

    fn check(&self) {
        let of = |queue: &SharedQueue| queue.jobs(100).iter().map(Known::of).collect::<Vec<_>>();
        assert_eq!((of(&self.queue), of(&self.dead_letters)), (vec(&self.waiting), vec(&self.dead)));
        let held: Vec<_> = self.handed.iter().flatten().chain(&self.in_hand).collect();
        let has_job: Vec<_> = self.readers.iter().map(|reader| reader.has_job()).collect();
        assert_eq!(has_job, self.handed.map(|handed| handed.is_some()));
        let stats = self.queue.stats();
        assert_eq!(stats.counts, self.counts);
        let (blocked, line) = (self.blocked.len() as u64, self.line.len() as u64);
        assert_eq!((stats.in_hand, stats.blocked, stats.readers), (held.len() as u64, blocked, line));
        let bytes: u64 = held.into_iter().chain(&self.waiting).map(|job| job.bytes()).sum();
        assert_eq!(stats.bytes, bytes);
    }
}

fn vec(jobs: &VecDeque<Known>) -> Vec<Known> {
    jobs.iter().copied().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever writers and readers do, each job is in one place, in order: waiting for room or for a reader, in one
    /// hand, done, or dead.
    #[test]
    fn every_job_is_where_the_model_says_and_nobody_waits_while_one_does_that_it_could_have(
        ops in prop::collection::vec(op(), 1..150),
        policy in prop::sample::select(vec![QueuePolicy::Reject, QueuePolicy::DropOldest, QueuePolicy::DropNewest, QueuePolicy::Block]),
    ) {
        let mut world = World::new(policy);
        for op in ops {
            world.apply(&op);
        }
    }
}
