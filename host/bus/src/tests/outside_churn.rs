//! Ten thousand programs come, do a little of everything and leave, on threads of their own and under load.

use std::sync::{
    Weak,
    atomic::{AtomicBool, AtomicUsize},
};

use super::*;

const WORKERS: u64 = 4;
const SESSIONS: usize = 10_000;
/// Programs of one worker at once.
const AT_ONCE: usize = 8;
const CONTRACTS: [&str; 3] = ["x0@1", "x1@1", "x2@1"];

struct World {
    bus: TestBus,
    name: Arc<Peer>,
    queue: Arc<SharedQueue>,
    is_over: AtomicBool,
    left: Mutex<Vec<Weak<Peer>>>,
    heard: AtomicUsize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_ten_thousand_programs_that_came_and_left_nothing_is_left() {
    let bus = TestBus::new();
    let queue = super::outside::queue(&bus, &["q"]);
    let name = configure(&bus, &CONTRACTS);
    let extension = bus.ready("a", &["a@1"], &CONTRACTS);
    let before = bus.owners().census();
    let (is_over, heard) = (AtomicBool::new(false), AtomicUsize::new(0));
    let world = Arc::new(World { bus, name, queue, is_over, left: Mutex::default(), heard });

    let load = tokio::spawn(put_under_load(world.clone(), extension));
    let workers: Vec<_> =
        (1..=WORKERS).map(|seed| tokio::spawn(come_and_leave(world.clone(), seed))).collect();
    for worker in workers {
        worker.await.unwrap();
    }
    world.is_over.store(true, Ordering::Release);
    load.await.unwrap();

    let World { bus, queue, .. } = &*world;
    assert!(world.heard.load(Ordering::Relaxed) > 100, "hardly any call was answered");
    assert_eq!(bus.owners().census(), before);
    assert!(bus.subscription_table().read().is_empty());
    assert_eq!((bus.waiters(), queue.takers()), (0, vec![]));
    while let Some(job) = queue.take(&JobReader::new("reader".into(), u64::MAX, None, || {})) {
        job.done();
    }
    let stats = queue.status();
    assert_eq!(
        (stats.waiting, stats.in_hand, stats.bytes, stats.blocked, stats.idle_readers),
        (0, 0, 0, 0, 0)
    );
    // Ended requests may still be known to the timer, and with them their receivers.
    bus.close();
    let left = world.left.lock().unwrap();
    assert_eq!(left.len(), SESSIONS);
    assert_eq!(left.iter().filter(|session| session.strong_count() > 0).count(), 0);
}

/// Programs may serve these contracts, and may subscribe if they may serve all.
fn configure(bus: &TestBus, contracts: &[&str]) -> Arc<Peer> {
    let mut access = Access {
        puts: vec!["q".parse().unwrap()],
        takes: vec!["q".parse().unwrap()],
        ..any_topic(contracts, &["a@1", "x0@1", "x1@1", "x2@1"])
    };
    if contracts.len() < CONTRACTS.len() {
        access.subscribes.clear();
    }
    bus.add_name(&"app:x".parse().unwrap(), access).unwrap()
}

/// An extension that answers, calls, publishes and takes jobs until all programs have left. Their grants change
/// meanwhile.
async fn put_under_load(world: Arc<World>, extension: Arc<Peer>) {
    let (bus, mut calls) = (&world.bus, Vec::new());
    for round in 0_usize.. {
        let is_over = world.is_over.load(Ordering::Acquire);
        loop {
            match extension.take() {
                Taken::Message(Incoming::Request(request)) => {
                    request.responder.give(ok(""));
                }
                Taken::Message(_) => {}
                _ => break,
            }
        }
        match round % 64 {
            _ if is_over => break,
            31 => drop(configure(bus, &CONTRACTS[..2])),
            63 => drop(configure(bus, &CONTRACTS)),
            _ => {}
        }
        if let Ok(call) = bus.call(&extension, CONTRACTS[round % 3], "") {
            calls.push(call);
        }
        bus.publish(&extension, None, "t.1", "".into()).unwrap();
        let _to_all = bus.publish(&extension, Some("app:x"), "t.2", "".into());
        if let Some(job) = world.queue.take(&JobReader::new("reader".into(), u64::MAX, None, || {})) {
            job.done();
        }
        tokio::task::yield_now().await;
    }
    configure(bus, &CONTRACTS);
    for call in calls {
        let outcome = call.answer().now_or_never().expect("all receivers have left");
        world.heard.fetch_add(usize::from(outcome.is_ok()), Ordering::Relaxed);
    }
}

/// A program, with everything that it holds.
struct Program {
    session: Arc<Peer>,
    reader: Arc<JobReader>,
    calls: Vec<PendingCall>,
    in_hand: Vec<Request>,
    jobs: Vec<TakenJob>,
    offers: Vec<Offering>,
}

async fn come_and_leave(world: Arc<World>, seed: u64) {
    let mut random = seed;
    let mut next = |below: usize| {
        // Xorshift.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % 1_000_003).unwrap() % below
    };
    let mut programs: Vec<Program> = Vec::new();
    let mut to_come = SESSIONS / usize::try_from(WORKERS).unwrap();
    while to_come > 0 || !programs.is_empty() {
        if to_come > 0 && programs.len() < AT_ONCE {
            programs.push(Program::arrive(&world));
            to_come -= 1;
        }
        let place = next(programs.len());
        let what = next(25);
        match what {
            24 => programs.swap_remove(place).leave(&world, next(2) == 0),
            _ => programs[place].act(&world, what % 8, next(3)),
        }
        if next(4) == 0 {
            tokio::task::yield_now().await;
        }
    }
}

impl Program {
    fn arrive(world: &World) -> Self {
        let session = world.bus.arrive(&world.name, LIMITS);
        world.queue.join(session.id());
        let reader = JobReader::new("reader".into(), u64::MAX, None, || {});
        let (calls, in_hand, jobs, offers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { session, reader, calls, in_hand, jobs, offers }
    }

    fn act(&mut self, world: &World, what: usize, which: usize) {
        let (bus, session) = (&world.bus, &self.session);
        match what {
            // They may be granted or not, and another program may serve that contract.
            0 => drop(bus.subscribe(session, session.inbox(), ["t.>", "t.*", "t.1"][which])),
            1 => drop(bus.bus.serve(session, CONTRACTS[which], &["do".to_owned()])),
            2 => self.calls.extend(bus.call(session, ["a@1", "a@1", "x0@1"][which], "")),
            3 => match session.take() {
                Taken::Message(Incoming::Request(request)) if which > 0 => {
                    request.responder.give(ok(""));
                }
                Taken::Message(Incoming::Request(request)) => self.in_hand.push(request),
                Taken::Message(_) | Taken::Empty => {}
                Taken::Stop => panic!("it has not left"),
            },
            4 => drop(bus.bus.put(session, &world.queue, Bytes::new(), (None, Parent::default()))),
            5 => self.offers.extend(bus.bus.offer(session, &world.queue, Bytes::new(), Parent::default())),
            6 => world.queue.enlist(&self.reader),
            _ => match self.jobs.pop() {
                Some(job) if which > 0 => job.done(),
                job => {
                    drop(job);
                    self.jobs.extend(world.queue.take(&self.reader));
                }
            },
        }
    }

    /// It may hold things for a moment longer.
    fn leave(self, world: &World, is_slow: bool) {
        let Self { session, reader, calls, in_hand, jobs, offers } = self;
        let answers = calls.into_iter().map(|call| call.answer().now_or_never());
        let heard = answers.filter(|answer| matches!(answer, Some(Ok(_)))).count();
        world.heard.fetch_add(heard, Ordering::Relaxed);
        let held = (in_hand, jobs, offers);
        let held = is_slow.then_some(held);
        world.bus.leave(&session);
        world.queue.leave(&reader);
        world.queue.part(session.id());
        drop(held);
        assert_eq!(session.inbox().depth(), (0, 0));
        world.left.lock().unwrap().push(Arc::downgrade(&session));
    }
}
