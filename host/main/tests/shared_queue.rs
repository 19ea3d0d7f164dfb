//! A shared queue with 24 readers and 8 writers, half threads and half extensions, while reading extensions are
//! killed at random: every job is done, none lost, each delivery goes to one reader, and deliveries are counted.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, HashMap},
    env,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use fastrand::Rng;
use weir_host::{
    Config, Control, ExtensionConfig, Main, MainConfig,
    blocking::{wait, wait_for},
    config::{Policy, QueueConfig, QueuePolicy, RestartPolicy},
    events::{MainEvent, MainEvents},
    traffic::QueueStatus,
};

const JOBS: u32 = 60_000;
const WRITERS: u32 = 8;
const READERS: u32 = 24;

/// One job in this many kills the extension that takes it.
const DEADLY: u32 = 20;

/// One in this many is never done, and ends as a dead letter.
const POISON: u32 = 500;

const MAX_DELIVERIES: u32 = 5;

/// Jobs by which reading threads may be ahead of extensions.
const AHEAD: u32 = 500;

const PATIENCE: Duration = Duration::from_secs(240);

/// Where and how an extension ends; at `done`, a reader of one job after the other has already finished it.
const POINTS: [&str; 4] = ["first", "midway", "published", "done"];
const HOWS: [&str; 4] = ["trap", "exit", "finish", "fuel"];

/// Parts of causes, each of which must occur with a job in hand.
const CAUSES: [&str; 5] =
    ["trapped", "exited with code", "finished", "fuel-per-message", "did not stop within"];

/// The reader of each delivery of each job.
#[derive(Default)]
struct Book {
    seen: Mutex<BTreeMap<(u32, u32), String>>,
    by_threads: AtomicU32,
    by_extensions: AtomicU32,
}

impl Book {
    fn enter(&self, reader: &str, number: u32, delivery: u32) {
        let other = self.seen.lock().unwrap().insert((number, delivery), reader.to_owned());
        assert_eq!(other, None, "and `{reader}` had delivery {delivery} of job {number}");
        let is_thread = reader.starts_with("thread");
        let by = if is_thread { &self.by_threads } else { &self.by_extensions };
        by.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether it is the extensions' turn to take.
    fn is_ahead(&self) -> bool {
        let [threads, extensions] =
            [&self.by_threads, &self.by_extensions].map(|by| by.load(Ordering::Relaxed));
        threads > extensions + AHEAD
    }
}

/// Ends all loops and waits after a panic, so that the test fails instead of hanging.
struct Alarm<'t>(&'t AtomicBool, Control);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
            runtime().block_on(self.1.begin_shutdown());
        }
    }
}

#[test]
fn every_job_is_done_and_none_is_lost_while_readers_are_killed() {
    let seed = env::var("WEIR_TEST_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    eprintln!("WEIR_TEST_SEED={seed}");
    let main = wait(Main::builder(config()).start()).unwrap();
    let (client, control) = (main.client().clone(), main.control().clone());
    let events = control.events();
    let deaths = thread::spawn(move || runtime().block_on(Deaths::count(events)));
    let book = Book::default();
    let (next, over) = (AtomicU32::new(0), AtomicBool::new(false));
    let (dropped, stopped) = (AtomicU32::new(0), AtomicU32::new(0));
    let mut worked = client.subscribe_with("worked.>", listening()).unwrap();

    thread::scope(|scope| {
        let (next, over, book, control) = (&next, &over, &book, &control);
        let (dropped, stopped) = (&dropped, &stopped);
        let alarm = move || Alarm(over, control.clone());
        let _alarm = alarm();
        for writer in 0..WRITERS {
            let client = client.clone();
            scope.spawn(move || {
                let _alarm = alarm();
                let queue = client.queue("jobs").unwrap();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= JOBS {
                        return;
                    }
                    let payload = job(seed, number);
                    if writer % 2 == 0 {
                        wait(queue.put_within(PATIENCE, payload)).unwrap();
                    } else {
                        let contract = format!("w{writer}@1");
                        wait(client.call(&contract, "run", format!("put jobs {payload}"))).unwrap();
                    }
                }
            });
        }
        for reader in 0..READERS / 2 {
            let mut queue = client.queue("jobs").unwrap();
            scope.spawn(move || {
                let _alarm = alarm();
                while !over.load(Ordering::Relaxed) {
                    if book.is_ahead() {
                        thread::park_timeout(Duration::from_millis(1));
                        continue;
                    }
                    let Some(job) = wait_for(Duration::from_millis(20), queue.take()).unwrap().flatten()
                    else {
                        continue;
                    };
                    let number = number_of(job.payload());
                    book.enter(&format!("thread {reader}"), number, job.deliveries());
                    // Deadly jobs do not kill threads, but they do not finish poison either.
                    if number.is_multiple_of(POISON) {
                        dropped.fetch_add(1, Ordering::Relaxed);
                    } else {
                        job.done();
                    }
                }
            });
        }
        scope.spawn(move || {
            let _alarm = alarm();
            loop {
                let Some(event) = wait_for(Duration::from_millis(20), worked.next()).unwrap().flatten()
                else {
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    continue;
                };
                assert_eq!(event.lost, 0);
                // As in `ID DELIVERIES PAYLOAD`.
                let text = str::from_utf8(&event.payload).unwrap();
                let delivery = text.split(' ').nth(1).unwrap().parse().unwrap();
                book.enter(event.topic.as_str(), number_of(&event.payload), delivery);
            }
        });
        scope.spawn(move || {
            let mut chance = Rng::with_seed(seed);
            while !over.load(Ordering::Relaxed) {
                let victim = format!("r{}", chance.u32(0..READERS / 2));
                stopped.fetch_add(1, Ordering::Relaxed);
                // It may just be down: then another is killed.
                let _down = wait(control.restart(&victim));
                thread::park_timeout(Duration::from_micros(chance.u64(0..5000)));
            }
        });

        let began = Instant::now();
        let is_over = |status: &QueueStatus| {
            next.load(Ordering::Relaxed) >= JOBS && status.done + status.dead == u64::from(JOBS)
        };
        while !is_over(&status(control, "jobs")) {
            assert!(!over.load(Ordering::Relaxed), "one of the threads has panicked");
            assert!(began.elapsed() < PATIENCE, "{:?}", status(control, "jobs"));
            thread::park_timeout(Duration::from_millis(5));
        }
        over.store(true, Ordering::Relaxed);
    });

    let jobs = status(&control, "jobs");
    let letters = control.queue_jobs("dead", JOBS as usize).unwrap();
    main.shutdown_blocking().unwrap();
    let deaths = deaths.join().unwrap();
    let QueueStatus { put, delivered, done, returned, dead, shed, waiting, in_hand, bytes, .. } = jobs;
    eprintln!("put {put}, delivered {delivered}, done {done}, returned {returned}, dead {dead}\n{deaths:?}");
    assert_eq!((put, shed, waiting, in_hand, bytes), (JOBS.into(), 0, 0, 0, 0));
    assert_eq!(delivered, done + returned);
    assert_eq!(letters.len() as u64, dead);
    let is_from_here = |died_in: &Option<weir_host::names::QueueName>| {
        died_in.as_ref().is_some_and(|q| q.as_str() == "jobs")
    };
    assert!(letters.iter().all(|job| is_from_here(&job.died_in) && job.died_after == Some(MAX_DELIVERIES)));

    // The last delivery of a job is the one that finished it, because no reader dies unseen between the two.
    let seen = book.seen.lock().unwrap();
    let mut last: BTreeMap<u32, (u32, &str)> =
        seen.iter().map(|((number, delivery), reader)| (*number, (*delivery, &**reader))).collect();
    for letter in &letters {
        last.remove(&number_of(&letter.payload));
    }
    assert_eq!(last.len() as u64, done, "none is lost, and none is done that is dead");
    assert!(last.keys().all(|number| !number.is_multiple_of(POISON)), "poison that is done");
    let deliveries: u64 = last.values().map(|(delivery, _)| u64::from(*delivery)).sum();
    assert_eq!(delivered, deliveries + dead * u64::from(MAX_DELIVERIES));

    // Each return came from a reader that died or was stopped, or from a thread that dropped it.
    let died: u64 = CAUSES.iter().map(|cause| deaths.of(cause)).sum();
    let others = dropped.into_inner() + stopped.into_inner();
    assert!(returned <= died + u64::from(others) + deaths.missed, "{returned} returned, {others} others");
    assert!(CAUSES.iter().all(|cause| deaths.of(cause) > 0), "{deaths:?}");

    let mut by: BTreeMap<&str, u32> = BTreeMap::new();
    for (_, reader) in last.values() {
        *by.entry(reader).or_default() += 1;
    }
    eprintln!("{by:?}");
    let extensions = || by.iter().filter(|(reader, _)| reader.starts_with("worked."));
    assert_eq!(extensions().count(), READERS as usize / 2);
    assert!(extensions().all(|(_, done)| *done >= 100), "{by:?}");
    assert!(extensions().map(|(_, done)| *done).sum::<u32>() >= JOBS / 3, "{by:?}");
}

#[derive(Debug, Default)]
struct Deaths {
    by_cause: HashMap<String, u64>,
    /// Missed events, each possibly a death.
    missed: u64,
}

impl Deaths {
    async fn count(mut events: MainEvents) -> Self {
        let mut deaths = Self::default();
        while let Some(event) = events.next().await {
            match event {
                MainEvent::Failed(failure) if failure.handling.is_some() => {
                    *deaths.by_cause.entry(failure.cause).or_default() += 1;
                }
                MainEvent::Lagged { missed } => deaths.missed += missed,
                _ => {}
            }
        }
        deaths
    }

    fn of(&self, cause: &str) -> u64 {
        self.by_cause.iter().filter(|(known, _)| known.contains(cause)).map(|(_, count)| count).sum()
    }
}

/// A job's payload, its number last: usually nothing else, or how its extension should end.
fn job(seed: u64, number: u32) -> String {
    let mut chance = Rng::with_seed(seed.wrapping_add(number.into()));
    let is_poison = number.is_multiple_of(POISON);
    if is_poison || chance.u32(0..DEADLY) == 0 {
        let points = if is_poison { 0..POINTS.len() - 1 } else { 0..POINTS.len() };
        let (point, how) = (POINTS[chance.usize(points)], HOWS[chance.usize(0..HOWS.len())]);
        return format!("end {point} {how} {number}");
    }
    match chance.u32(0..50) {
        // Longer than the stop deadline.
        0 => format!("wait 3 {number}"),
        _ => format!("job {number}"),
    }
}

fn number_of(payload: &[u8]) -> u32 {
    let text = str::from_utf8(payload).unwrap();
    text.rsplit_once(' ').unwrap().1.parse().unwrap()
}

fn status(control: &Control, queue: &str) -> QueueStatus {
    let queues = control.queues();
    queues.into_iter().find(|status| status.queue.as_str() == queue).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Loses nothing, so it holds extensions back if the test is slow.
fn listening() -> weir_host::client::SubscribeOptions {
    weir_host::client::SubscribeOptions::default().policy(Policy::Block)
}

fn config() -> Config {
    let readers = (0..READERS / 2).map(|n| {
        let mut reader = extension(&format!("r{n}"), "worker");
        reader.takes = vec!["jobs".parse().unwrap()];
        reader.publishes = vec!["worked.>".parse().unwrap()];
        let mode = if n % 2 == 0 { "one-by-one" } else { "next" };
        reader.config.extend([("queue".to_owned(), "jobs".to_owned()), ("mode".to_owned(), mode.to_owned())]);
        // Fuel for a few milliseconds, and a stop deadline that some miss.
        reader.limits.message_size = 64 * 1024;
        reader.limits.fuel_per_message = 2_000_000;
        reader.limits.stop_timeout = Duration::from_millis(1);
        reader
    });
    let writers = (1..WRITERS).step_by(2).map(|n| {
        let mut writer = extension(&format!("w{n}"), "puppet");
        writer.fulfills = vec![format!("w{n}@1").parse().unwrap()];
        writer.config.insert("contract".to_owned(), format!("w{n}@1"));
        writer.puts = vec!["jobs".parse().unwrap()];
        writer
    });
    let mut main = MainConfig::default();
    main.request_timeout = PATIENCE;
    let mut config = Config::new(main, readers.chain(writers).collect());
    let mut jobs = QueueConfig::default();
    jobs.messages = 64;
    jobs.when_full = QueuePolicy::Block;
    jobs.max_deliveries = MAX_DELIVERIES;
    jobs.dead_letter = Some("dead".parse().unwrap());
    config.queues.insert("jobs".parse().unwrap(), jobs);
    let mut dead = QueueConfig::default();
    // Room for all, because the number of dead ones is random.
    dead.messages = JOBS;
    dead.bytes = u64::from(JOBS) * 256;
    config.queues.insert("dead".parse().unwrap(), dead);
    config
}

fn extension(id: &str, guest: &str) -> ExtensionConfig {
    let mut extension = ExtensionConfig::new(id.parse().unwrap(), test_guests::path(guest));
    extension.restart.policy = RestartPolicy::Always;
    extension.restart.backoff = Duration::from_millis(1);
    extension.restart.max_backoff = Duration::from_millis(2);
    extension.restart.failures = 1000;
    extension.restart.window = Duration::from_millis(10);
    extension
}
