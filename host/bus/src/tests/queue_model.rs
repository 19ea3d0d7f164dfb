//! Whatever is done with shared queues comes out as a model of them says.

use std::collections::VecDeque;

use proptest::prelude::*;
use weir_names::QueuePolicy;

use super::{queues::SETTINGS, *};
use crate::queue::JobCounts;

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
        let (queue, dead_letters) = with_dead_letters(&bus, settings, dead);
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
            let number = |reader: &usize| Some(Known::of(&self.readers[*reader].handed_job()?).number);
            let has_it = |reader: &usize| number(reader) == Some(job.number);
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
                assert_eq!(taken.as_ref().map(|taken| Known::of(taken.get())), expected);
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
        let stats = self.queue.status();
        assert_eq!(self.queue.counts(), self.counts);
        let (blocked, line) = (self.blocked.len() as u64, self.line.len() as u64);
        assert_eq!((stats.in_hand, stats.blocked, stats.idle_readers), (held.len() as u64, blocked, line));
        let bytes: u64 = held.into_iter().chain(&self.waiting).map(|job| job.bytes()).sum();
        assert_eq!(stats.bytes, bytes);
    }
}

fn vec(jobs: &VecDeque<Known>) -> Vec<Known> {
    jobs.iter().copied().collect()
}

#[test]
fn of_jobs_let_in_together_each_goes_to_a_reader_that_takes_it() {
    use Op::{AllDone, Done, Enlist, Take};
    const SMALL: Op = Op::Put { large: false };
    const LARGE: Op = Op::Put { large: true };

    let mut world = World::new(QueuePolicy::Block);
    // The first reader has had fewer jobs than the second when both wait.
    let begin = [Enlist(0), SMALL, SMALL, SMALL, Take(1), Done(0), SMALL, SMALL, SMALL, SMALL, LARGE];
    let goes_on = [SMALL, SMALL, Take(0), SMALL, SMALL, Done(0), SMALL, Take(0), Take(1), Take(1), Take(0)];
    let end = [Enlist(1), Enlist(0), AllDone(1)];
    for op in begin.iter().chain(&goes_on).chain(&end) {
        world.apply(op);
    }
    assert_eq!(world.handed.map(|job| job.map(|job| job.large)), [Some(false), Some(true), None]);
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
