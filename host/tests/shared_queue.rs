//! One shared queue with 24 readers and 8 writers, half of each native threads and half extensions, while
//! extensions that read are killed at random: every job is done, none is lost, and deliveries are counted.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use weir_host::{
    Config, ExtensionConfig, Main, MainConfig, Policy, QueueConfig, QueueStatus, RestartPolicy, blocking,
};

const JOBS: u32 = 60_000;
const WRITERS: u32 = 8;
const READERS: u32 = 24;

/// One job in so many kills the extension that takes it.
const DEADLY: u32 = 20;

/// One in so many is done by nobody else either, and ends as a dead letter.
const POISON: u32 = 500;

const PATIENCE: Duration = Duration::from_secs(240);

/// What was delivered: by whom, how often, and which job.
#[derive(Default)]
struct Book {
    done: Mutex<BTreeMap<u32, u32>>,
    by: Mutex<BTreeMap<String, u32>>,
}

impl Book {
    fn enter(&self, reader: &str, number: u32) {
        *self.done.lock().unwrap().entry(number).or_default() += 1;
        *self.by.lock().unwrap().entry(reader.to_owned()).or_default() += 1;
    }
}

#[test]
fn every_job_is_done_and_none_is_lost_while_readers_are_killed() {
    let seed = env::var("WEIR_TEST_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    eprintln!("WEIR_TEST_SEED={seed}");
    let main = blocking::Main::start(Main::builder(config())).unwrap();
    let (client, control) = (main.client(), main.control());
    let book = Book::default();
    let (next, over) = (AtomicU32::new(0), AtomicBool::new(false));

    let mut worked = client.subscribe_with("worked.>", listening()).unwrap();

    thread::scope(|scope| {
        let (next, over, book) = (&next, &over, &book);
        for writer in 0..WRITERS {
            let client = client.clone();
            scope.spawn(move || {
                let queue = client.queue("jobs").unwrap();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= JOBS {
                        return;
                    }
                    let deed = if number % DEADLY == 0 { "die" } else { "job" };
                    let payload = format!("{deed} {number}");
                    if writer % 2 == 0 {
                        queue.put_within(PATIENCE, payload).unwrap();
                    } else {
                        // An extension puts it.
                        let contract = format!("w{writer}@1");
                        client.call(&contract, "run", format!("put jobs {payload}")).unwrap();
                    }
                }
            });
        }
        for reader in 0..READERS / 2 {
            let mut queue = client.queue("jobs").unwrap();
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let Some(job) = queue.take(Duration::from_millis(20)).unwrap() else { continue };
                    let text = String::from_utf8(job.payload.to_vec()).unwrap();
                    let (deed, number) = text.split_once(' ').unwrap();
                    let number = number.parse().unwrap();
                    // A thread does not die of what kills an extension, but of poison neither is it done.
                    if deed == "job" || number % POISON != 0 {
                        book.enter(&format!("thread {reader}"), number);
                        job.done();
                    }
                    // About as long as an extension takes.
                    thread::park_timeout(Duration::from_micros(100));
                }
            });
        }
        scope.spawn(move || {
            loop {
                let Some(event) = worked.next(Duration::from_millis(20)).unwrap() else {
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    continue;
                };
                assert_eq!(event.lost, 0);
                let text = String::from_utf8(event.payload.to_vec()).unwrap();
                let words: Vec<&str> = text.split(' ').collect();
                if words[2] == "job" {
                    book.enter(event.topic.as_str(), words[3].parse().unwrap());
                }
            }
        });
        let killer = control.clone();
        scope.spawn(move || {
            let mut chance = fastrand::Rng::with_seed(seed);
            while !over.load(Ordering::Relaxed) {
                let victim = format!("r{}", chance.u32(0..READERS / 2));
                // It may just be down: then another is killed.
                let _down = killer.restart(&victim);
            }
        });

        let began = Instant::now();
        let poisoned = u64::from(JOBS.div_ceil(POISON));
        let is_over = |status: &QueueStatus| {
            next.load(Ordering::Relaxed) >= JOBS && status.done + status.dead == u64::from(JOBS)
        };
        while !is_over(&status(&control, "jobs")) {
            assert!(began.elapsed() < PATIENCE, "{:?}", status(&control, "jobs"));
            thread::park_timeout(Duration::from_millis(5));
        }
        over.store(true, Ordering::Relaxed);
        let QueueStatus { put, delivered, done, returned, dead, shed, waiting, in_hand, bytes, .. } =
            status(&control, "jobs");
        eprintln!("put {put}, delivered {delivered}, done {done}, returned {returned}, dead {dead}");
        assert_eq!((put, shed, waiting, in_hand, bytes), (JOBS.into(), 0, 0, 0, 0));
        assert_eq!(delivered, done + returned);
        assert!(dead >= poisoned, "{dead}");
        let letters = control.as_async().queue_jobs("dead", 1000).unwrap();
        assert_eq!(letters.len() as u64, dead);
        assert!(letters.iter().all(|job| job.died_after == Some(5)));
        let died: BTreeSet<u32> = letters.iter().map(|job| number_of(&job.payload)).collect();
        let poison: BTreeSet<u32> = (0..JOBS).filter(|number| number % POISON == 0).collect();
        assert!(died.is_superset(&poison));
    });

    let done = book.done.lock().unwrap();
    let letters = control.as_async().queue_jobs("dead", 1000).unwrap();
    let died: BTreeSet<u32> = letters.iter().map(|job| number_of(&job.payload)).collect();
    let lost: Vec<u32> =
        (0..JOBS).filter(|number| !done.contains_key(number) && !died.contains(number)).collect();
    assert!(lost.is_empty(), "{lost:?}");
    let by = book.by.lock().unwrap();
    eprintln!("{by:?}");
    main.shutdown().unwrap();
}

fn number_of(payload: &[u8]) -> u32 {
    let text = std::str::from_utf8(payload).unwrap();
    text.split_once(' ').unwrap().1.parse().unwrap()
}

fn status(control: &blocking::Control, queue: &str) -> QueueStatus {
    let queues = control.as_async().queues();
    queues.into_iter().find(|status| status.queue.as_str() == queue).unwrap()
}

/// Loses nothing, and so holds extensions back where the test does not keep up.
fn listening() -> weir_host::SubscribeOptions {
    weir_host::SubscribeOptions::default().policy(Policy::Block)
}

fn config() -> Config {
    let readers = (0..READERS / 2).map(|n| {
        let mut reader = extension(&format!("r{n}"), "worker");
        reader.takes = vec!["jobs".parse().unwrap()];
        reader.publishes = vec!["worked.>".parse().unwrap()];
        let mode = if n % 2 == 0 { "one-by-one" } else { "next" };
        reader.config.extend([("queue".to_owned(), "jobs".to_owned()), ("mode".to_owned(), mode.to_owned())]);
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
    jobs.when_full = Policy::Block;
    jobs.max_deliveries = 5;
    jobs.dead_letter = Some("dead".parse().unwrap());
    config.queues.insert("jobs".parse().unwrap(), jobs);
    let mut dead = QueueConfig::default();
    dead.messages = 1000;
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
