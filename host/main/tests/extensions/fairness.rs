//! Readers of a shared queue share its jobs: of 24 equals the busiest gets at most twice as many as the laziest, if
//! readers wait for jobs or jobs for extensions. If jobs wait for threads, the kernel decides.

use std::{
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use weir_host::{
    ExtensionConfig, Main,
    blocking::{wait, wait_for},
    config::QueueConfig,
    traffic::QueueStatus,
};

use super::support::{PATIENCE, config, extension, set};

const READERS: usize = 24;

fn main_with(extensions: Vec<ExtensionConfig>) -> Main {
    let mut config = config(extensions);
    let mut queue = QueueConfig::default();
    (queue.messages, queue.bytes) = (100_000, 1 << 30);
    config.queues.insert("q".parse().unwrap(), queue);
    wait(Main::builder(config).start()).unwrap()
}

fn status(main: &Main) -> QueueStatus {
    main.control().queues().remove(0)
}

fn until(main: &Main, holds: impl Fn(&QueueStatus) -> bool) {
    let began = Instant::now();
    while !holds(&status(main)) {
        assert!(began.elapsed() < PATIENCE, "{:?}", status(main));
        thread::park_timeout(Duration::from_micros(50));
    }
}

/// All at once, so that no reader has to wait.
fn put_all(main: &Main, jobs: u64) {
    let queue = main.client().queue("q").unwrap();
    for _ in 0..jobs {
        wait(queue.put("x")).unwrap();
    }
    until(main, |status| status.done == jobs);
}

/// One by one, so that readers wait.
fn put_one_by_one(main: &Main, jobs: u64) {
    let queue = main.client().queue("q").unwrap();
    for job in 1..=jobs {
        wait(queue.put_within(PATIENCE, "x")).unwrap();
        until(main, |status| status.done == job);
    }
}

fn assert_fair(each: &[u64]) {
    let (least, most) = (each.iter().min().unwrap(), each.iter().max().unwrap());
    assert!(*least > 0 && *most <= 2 * least, "{each:?}");
}

fn by_threads(put: impl FnOnce(&Main)) -> Vec<u64> {
    let main = main_with(Vec::new());
    let all_wait = Barrier::new(READERS + 1);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS)
            .map(|_| {
                let mut queue = main.client().queue("q").unwrap();
                let all_wait = &all_wait;
                scope.spawn(move || {
                    all_wait.wait();
                    let mut own = 0;
                    while let Some(job) = wait_for(PATIENCE, queue.take()).unwrap().flatten() {
                        job.done();
                        own += 1;
                    }
                    own
                })
            })
            .collect();
        all_wait.wait();
        put(&main);
        main.shutdown_blocking().unwrap();
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    })
}

fn by_extensions(mode: &str, put: impl FnOnce(&Main)) -> Vec<u64> {
    let readers = (0..READERS).map(|n| {
        let mut reader = extension(&format!("r{n}"), "worker");
        reader.takes = vec!["q".parse().unwrap()];
        reader.publishes = vec!["worked.>".parse().unwrap()];
        set(&mut reader, "queue", "q");
        set(&mut reader, "mode", mode);
        reader
    });
    let main = main_with(readers.collect());
    until(&main, |status| status.idle_readers == READERS as u64);
    put(&main);
    let each = main.control().extensions();
    main.shutdown_blocking().unwrap();
    // It publishes once a job.
    each.iter().map(|status| status.sent).collect()
}

#[test]
fn over_24_threads_that_wait_for_jobs_the_busiest_gets_at_most_twice_as_many_as_the_laziest() {
    assert_fair(&by_threads(|main| put_one_by_one(main, 4800)));
}

#[test]
fn over_24_extensions_that_wait_for_jobs_the_busiest_gets_at_most_twice_as_many_as_the_laziest() {
    for mode in ["one-by-one", "next"] {
        assert_fair(&by_extensions(mode, |main| put_one_by_one(main, 2400)));
    }
}

#[test]
fn over_24_extensions_with_more_jobs_than_they_can_do_the_busiest_gets_at_most_twice_as_many_as_the_laziest()
{
    for mode in ["one-by-one", "next"] {
        assert_fair(&by_extensions(mode, |main| put_all(main, 48_000)));
    }
}

#[test]
fn over_24_extensions_to_which_jobs_come_in_bursts_the_busiest_gets_at_most_twice_as_many_as_the_laziest() {
    const BURST: u64 = 60;

    for mode in ["one-by-one", "next"] {
        assert_fair(&by_extensions(mode, |main| {
            let queue = main.client().queue("q").unwrap();
            for round in 1..=200 {
                for _ in 0..BURST {
                    wait(queue.put("x")).unwrap();
                }
                until(main, |status| status.done == round * BURST && status.idle_readers == READERS as u64);
            }
        }));
    }
}
