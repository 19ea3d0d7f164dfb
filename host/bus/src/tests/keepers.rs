//! Jobs of programs that come and go, with and without a provider that keeps them: none that was accepted is lost.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::Pin,
};

use proptest::prelude::*;
use weir_names::QueuePolicy;

use super::*;

const READERS: usize = 3;

#[derive(Clone, Debug)]
enum Op {
    Put { leaves: bool },
    GiveUp(usize),
    Answer(Answer),
    KeeperLeaves,
    KeeperComes,
    Take(usize),
    Done(usize),
    Return(usize),
    ReaderLeaves(usize),
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Keep,
    /// The provider ends, or the putter waits no more, before the answer.
    KeepUnheard,
    Refuse,
}

fn op() -> impl Strategy<Value = Op> {
    let (reader, place) = (|| 0..READERS, || 0..16_usize);
    let answer =
        || prop_oneof![4 => Just(Answer::Keep), 1 => Just(Answer::KeepUnheard), 1 => Just(Answer::Refuse)];
    prop_oneof![
        5 => any::<bool>().prop_map(|leaves| Op::Put { leaves }),
        1 => place().prop_map(Op::GiveUp),
        5 => answer().prop_map(Op::Answer),
        1 => Just(Op::KeeperLeaves),
        2 => Just(Op::KeeperComes),
        5 => reader().prop_map(Op::Take),
        3 => place().prop_map(Op::Done),
        3 => place().prop_map(Op::Return),
        1 => reader().prop_map(Op::ReaderLeaves),
    ]
}

type Outcome<T> = Pin<Box<dyn Future<Output = Result<T, Error>>>>;

struct World {
    bus: TestBus,
    queue: Arc<SharedQueue>,
    dead_letters: Arc<SharedQueue>,
    putters: Arc<Peer>,
    keepers: Arc<Peer>,
    is_stored: bool,
    last: u32,
    putting: BTreeMap<u32, Outcome<MessageId>>,
    /// Jobs whose putters were told that they are in.
    accepted: BTreeSet<u32>,
    keeper: Option<Arc<Peer>>,
    /// Whether jobs may have been offered twice.
    has_lost_keeper: bool,
    /// The provider's disk.
    kept: BTreeSet<u32>,
    offered: BTreeMap<u32, Outcome<()>>,
    readers: Vec<(Arc<Peer>, Arc<JobReader>)>,
    in_hand: Vec<(usize, TakenJob)>,
    /// Every delivery that a reader finished, by job.
    done: BTreeMap<u32, BTreeSet<MessageId>>,
    dead: BTreeSet<u32>,
}

impl World {
    fn new(when_full: QueuePolicy, is_stored: bool) -> Self {
        let bus = TestBus::new();
        let store = is_stored.then(|| "store@1".parse().unwrap());
        let settings = |messages, when_full, store| QueueSettings {
            messages,
            bytes: 1 << 20,
            when_full,
            store,
            ..queues::SETTINGS
        };
        let (settings, dead) = (settings(4, when_full, store), settings(1000, QueuePolicy::Reject, None));
        let (queue, dead_letters) = with_dead_letters(&bus, settings, dead);
        let access = |fulfills| Access { puts: vec!["q".parse().unwrap()], ..any_topic(fulfills, &[]) };
        let name = |name: &str, access| bus.add_name(&name.parse().unwrap(), access).unwrap();
        let (putters, keepers) =
            (name("app:putter", access(&[])), name("sidecar:keeper", access(&["store@1"])));
        let mut world = Self {
            bus,
            queue,
            dead_letters,
            putters,
            keepers,
            is_stored,
            last: 0,
            putting: BTreeMap::new(),
            accepted: BTreeSet::new(),
            keeper: None,
            has_lost_keeper: false,
            kept: BTreeSet::new(),
            offered: BTreeMap::new(),
            readers: Vec::new(),
            in_hand: Vec::new(),
            done: BTreeMap::new(),
            dead: BTreeSet::new(),
        };
        world.readers = (0..READERS).map(|_| world.reader()).collect();
        world
    }

    fn reader(&self) -> (Arc<Peer>, Arc<JobReader>) {
        let session = self.bus.arrive(&self.putters, LIMITS);
        self.queue.join(session.id());
        (session, JobReader::new("reader".into(), u64::MAX, None, || {}))
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Put { leaves } => self.put(leaves),
            Op::GiveUp(place) => {
                let number = self.putting.keys().nth(place % self.putting.len().max(1)).copied();
                number.map(|number| self.putting.remove(&number));
            }
            Op::Answer(answer) => self.answer(answer),
            Op::KeeperLeaves => {
                if let Some(keeper) = self.keeper.take() {
                    self.bus.leave(&keeper);
                    self.offered.clear();
                    self.has_lost_keeper = true;
                }
            }
            Op::KeeperComes if self.is_stored && self.keeper.is_none() => {
                let keeper = self.bus.arrive(&self.keepers, LIMITS);
                self.bus.bus.serve(&keeper, "store@1", &["q".to_owned()]).unwrap();
                self.keeper = Some(keeper);
            }
            Op::KeeperComes => {}
            Op::Take(reader) => {
                let job = self.queue.take(&self.readers[reader].1);
                self.in_hand.extend(job.map(|job| (reader, job)));
            }
            Op::Done(place) if !self.in_hand.is_empty() => {
                let (_, job) = self.in_hand.swap_remove(place % self.in_hand.len());
                let taken = job.get();
                let is_new = self.done.entry(number(taken)).or_default().insert(taken.id);
                assert!(is_new, "{taken:?} is done twice");
                job.done();
            }
            Op::Return(place) if !self.in_hand.is_empty() => {
                drop(self.in_hand.swap_remove(place % self.in_hand.len()));
            }
            Op::Done(_) | Op::Return(_) => {}
            Op::ReaderLeaves(reader) => {
                self.in_hand.retain(|(of, _)| *of != reader);
                let next = self.reader();
                let (session, left) = std::mem::replace(&mut self.readers[reader], next);
                self.queue.leave(&left);
                self.queue.part(session.id());
                self.bus.leave(&session);
            }
        }
        self.poll_all();
    }

    fn put(&mut self, leaves: bool) {
        self.last += 1;
        let session = self.bus.arrive(&self.putters, LIMITS);
        let payload = Bytes::copy_from_slice(&self.last.to_be_bytes());
        match self.bus.bus.put(&session, &self.queue, payload, (Some(Duration::MAX), Parent::default())) {
            Ok(putting) => drop(self.putting.insert(self.last, Box::pin(putting.put()))),
            Err(Error::NoProvider(_)) => assert!(self.is_stored && self.keeper.is_none()),
            // The queue, or the inbox of its provider.
            Err(Error::Overloaded(_)) => {}
            Err(other) => panic!("{other:?}"),
        }
        if leaves {
            self.bus.leave(&session);
        }
    }

    fn answer(&mut self, answer: Answer) {
        let Some(keeper) = &self.keeper else { return };
        let Taken::Message(Incoming::Request(request)) = keeper.take() else { return };
        let number = u32::from_be_bytes(request.payload[..].try_into().unwrap());
        match answer {
            Answer::Keep | Answer::KeepUnheard => drop(self.kept.insert(number)),
            Answer::Refuse => {}
        }
        match answer {
            Answer::Keep => drop(request.responder.give(ok(""))),
            Answer::KeepUnheard => drop(request),
            Answer::Refuse => drop(request.responder.give(Err(Error::handler("full", "")))),
        }
    }

    /// Everybody hears what there is to hear, and the provider offers what is not offered.
    fn poll_all(&mut self) {
        self.putting.retain(|number, putting| match putting.now_or_never() {
            None => true,
            Some(outcome) => {
                self.accepted.extend(outcome.ok().map(|_| *number));
                false
            }
        });
        if let Some(keeper) = &self.keeper {
            for number in &self.kept {
                let payload = Bytes::copy_from_slice(&number.to_be_bytes());
                if !self.offered.contains_key(number)
                    && let Ok(offering) = self.bus.bus.offer(keeper, &self.queue, payload, Parent::default())
                {
                    self.offered.insert(*number, Box::pin(offering.done()));
                }
            }
        }
        self.offered.retain(|number, offered| match offered.now_or_never() {
            None => true,
            Some(outcome) => {
                match outcome {
                    Ok(()) => assert!(self.done.contains_key(number)),
                    Err(Error::Handler(error)) if error.code == "dead" => drop(self.dead.insert(*number)),
                    Err(other) => panic!("{other:?}"),
                }
                self.kept.remove(number);
                false
            }
        });
        if self.is_stored {
            let mut safe = self.kept.iter().chain(&self.dead).chain(self.done.keys());
            let is_safe = |number| safe.clone().any(|safe| safe == number);
            assert!(self.accepted.iter().all(is_safe), "a job that was accepted is lost");
            assert!(safe.all(|number| *number <= self.last));
        }
        let stats = self.queue.status();
        if self.is_stored {
            assert!(stats.waiting + stats.blocked <= self.offered.len() as u64, "a job taken back waits");
        }
        assert_eq!(stats.in_hand, self.in_hand.len() as u64);
        assert_eq!(stats.bytes, (128 + 4) * (stats.waiting + stats.in_hand));
    }

    /// The provider comes back, and readers finish everything.
    fn finish(mut self) {
        self.apply(&Op::KeeperComes);
        for _ in 0..=2 * self.last {
            self.apply(&Op::Done(0));
            self.apply(&Op::Answer(Answer::Keep));
            self.apply(&Op::Take(0));
        }
        self.apply(&Op::Done(0));
        let stats = self.queue.status();
        assert_eq!((stats.waiting, stats.in_hand, stats.bytes, stats.blocked), (0, 0, 0, 0));
        assert_eq!((self.putting.len(), self.offered.len(), self.kept.len()), (0, 0, 0));
        let dead: BTreeSet<_> = self.dead_letters.jobs(1000).iter().map(number).collect();
        assert!(self.dead.is_subset(&dead));
        for number in &self.accepted {
            assert!(self.done.contains_key(number) || dead.contains(number), "{number} is lost");
            if !self.has_lost_keeper {
                assert!(self.done.get(number).is_none_or(|done| done.len() == 1 && !dead.contains(number)));
            }
        }
    }
}

fn number(job: &QueuedJob) -> u32 {
    u32::from_be_bytes(job.payload[..].try_into().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_job_that_was_accepted_is_done_or_dead_also_if_its_provider_comes_and_goes(
        ops in prop::collection::vec(op(), 1..150),
        when_full in prop::sample::select(vec![QueuePolicy::Reject, QueuePolicy::Block]),
        is_stored in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut world = World::new(when_full, is_stored);
            for op in ops {
                world.apply(&op);
            }
            world.finish();
        });
    }
}
