//! Main with a queue, extensions that put and take, and threads that do so through its client.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, ensure};
use bytes::Bytes;
use weir_host::{
    CallOptions, Client, Config, ExtensionConfig, Main, MainConfig,
    blocking::{wait, wait_for},
    client::{Queue, Subscriber},
    config::{QueueConfig, QueuePolicy},
};

use super::{
    CAPACITY, Jobs, Round, SIZES, Split,
    jobs::{self, Came, job, share},
};
use crate::{
    scenarios::{
        Bench,
        client::{ensure_running, ensure_started},
        tasks::PATIENCE,
    },
    usage,
};

const QUEUE: &str = "jobs";

/// A Main with the greatest number of readers and writers. Idle ones wait.
#[derive(Debug)]
pub(super) struct Weir {
    main: Main,
    readers: u32,
}

impl Weir {
    pub(super) fn start(bench: &Bench, count: u32) -> Result<Self> {
        let readers = (0..count).map(|number| reader(bench, number));
        let writers = (0..count).map(|number| writer(bench, number));
        let mut config = Config::new(MainConfig::default(), readers.chain(writers).collect::<Result<_>>()?);
        let mut queue = QueueConfig::default();
        queue.messages = CAPACITY;
        // Room for that many of every size.
        queue.bytes = u64::from(CAPACITY) * u64::from(2 * SIZES.into_iter().max().unwrap_or_default());
        queue.when_full = QueuePolicy::Block;
        config.queues.insert(QUEUE.parse()?, queue);
        let main = wait(Main::builder(config).start())?;
        ensure_started(main.control())?;
        Ok(Self { main, readers: count })
    }

    pub(super) fn round(&self, split: Split, jobs: Jobs) -> Result<Round> {
        // An extension's own error explains more than its consequences.
        self.measure(split, jobs).or_else(|error| {
            ensure_running(self.main.control())?;
            Err(error)
        })
    }

    fn measure(&self, split: Split, jobs: Jobs) -> Result<Round> {
        let Split { inner_readers, inner_writers, thread_readers, thread_writers } = split;
        let client = self.main.client();
        for number in 0..self.readers {
            let at_once = if number < inner_readers { jobs.at_once } else { 0 };
            self.ask(number, "prepare", &[at_once, jobs.count, jobs.bytes])?;
        }
        let writers = inner_writers + thread_writers;
        let queue = client.queue(QUEUE)?;
        let mut last = client.subscribe("last")?;
        let begin = Barrier::new(usize::try_from(thread_readers + thread_writers)? + 1);
        let over = AtomicBool::new(false);
        let (took, mut came) = thread::scope(|scope| {
            let threads_write: Vec<_> = (inner_writers..writers)
                .map(|index| {
                    let (queue, begin) = (queue.clone(), &begin);
                    scope.spawn(move || {
                        begin.wait();
                        write(&queue, share(index, writers, jobs.count), jobs.bytes)
                    })
                })
                .collect();
            let threads_read: Vec<_> = (0..thread_readers)
                .map(|_| {
                    let (queue, client, begin, over) = (queue.clone(), client, &begin, &over);
                    scope.spawn(move || {
                        begin.wait();
                        read(queue, client, jobs, over)
                    })
                })
                .collect();
            begin.wait();
            let (start, used) = (Instant::now(), usage::of_all_threads());
            let go = wait(client.publish("go", numbers(&[writers, inner_writers, jobs.count, jobs.bytes])));
            let end = self.end(&mut last, writers);
            let used = usage::of_all_threads() - used;
            // Before anything fails: the threads wait for it.
            over.store(true, Ordering::Relaxed);
            for writer in threads_write {
                writer.join().map_err(|_| anyhow!("a writer panicked"))??;
            }
            let mut came = Vec::new();
            for reader in threads_read {
                came.push(reader.join().map_err(|_| anyhow!("a reader panicked"))??);
            }
            go?;
            anyhow::Ok(((end? - start, used), came))
        })?;
        for number in 0..inner_readers {
            came.push(Came::from_bits(&self.ask(number, "report", &[])?, jobs));
        }
        jobs::round(took, &came, jobs)
    }

    fn end(&self, last: &mut Subscriber, writers: u32) -> Result<Instant> {
        for _ in 0..writers {
            wait_for(PATIENCE, last.next())?.flatten().context("the jobs do not come to an end")?;
        }
        // All of them are in hand or done by now.
        let (now, control) = (Instant::now(), self.main.control());
        while now.elapsed() < PATIENCE {
            if control.queues().iter().all(|queue| queue.waiting == 0 && queue.in_hand == 0) {
                return Ok(Instant::now());
            }
            thread::yield_now();
        }
        anyhow::bail!("a job stays in hand");
    }

    fn ask(&self, reader: u32, operation: &str, arguments: &[u32]) -> Result<Bytes> {
        let options = CallOptions::default().timeout(PATIENCE);
        Ok(wait(self.main.client().call_with(&contract(reader), operation, numbers(arguments), options))?)
    }
}

fn write(queue: &Queue, jobs: impl Iterator<Item = (u32, bool)>, bytes: u32) -> Result<()> {
    for which in jobs {
        wait(queue.put_within(PATIENCE, job(which, bytes)))?;
    }
    Ok(())
}

fn read(mut queue: Queue, client: &Client, jobs: Jobs, over: &AtomicBool) -> Result<Came> {
    const LOOK: Duration = Duration::from_millis(20);

    let mut came = Came::none_of(jobs)?;
    while !over.load(Ordering::Relaxed) {
        let Some(job) = wait_for(LOOK, queue.take())?.flatten() else { continue };
        ensure!(job.deliveries() == 1, "a job was delivered before");
        let is_last = came.note(job.payload())?;
        job.done();
        if is_last {
            wait(client.publish("last", ""))?;
        }
    }
    Ok(came)
}

fn reader(bench: &Bench, number: u32) -> Result<ExtensionConfig> {
    let mut reader = bench.guests.small(&format!("reader-{number}"), "reader")?;
    let contract = contract(number);
    reader.fulfills = vec![contract.parse()?];
    reader.config.insert("contract".to_owned(), contract);
    reader.takes = vec![QUEUE.parse()?];
    reader.publishes = vec!["last".parse()?];
    Ok(reader)
}

fn writer(bench: &Bench, number: u32) -> Result<ExtensionConfig> {
    let mut writer = bench.guests.small(&format!("writer-{number}"), "writer")?;
    writer.config.insert("index".to_owned(), number.to_string());
    writer.puts = vec![QUEUE.parse()?];
    writer.subscribes = vec!["go".parse()?];
    Ok(writer)
}

fn contract(reader: u32) -> String {
    format!("bench.reader-{reader}@1")
}

/// A message of numbers: four bytes each, little-endian.
fn numbers(numbers: &[u32]) -> Bytes {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}
