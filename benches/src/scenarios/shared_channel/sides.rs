//! Tasks of one thread and threads on one bounded channel; and extensions of a Main and threads on one of its queues.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, ensure};
use async_channel::{Receiver, Sender};
use weir_host::{
    Client, Config, ExtensionConfig, Main, MainConfig,
    blocking::{wait, wait_for},
    client::{Queue, Subscriber},
    config::{QueueConfig, QueuePolicy},
};

use super::{
    CAPACITY, Jobs, Round, SIZES, Split,
    jobs::{self, Came, job, share},
};
use crate::{
    process,
    scenarios::{
        Bench,
        calls::Worker,
        device::PATIENCE,
        embedder::{Embedder, payload},
    },
};

const QUEUE: &str = "jobs";

/// Threads that write and read beside other `work`, and all begin with it. Returns what that returned, what came to the
/// threads, and the time and processor time until all had ended. The work can ask for both of them.
fn among_threads<T>(
    split: Split,
    write: impl Fn(u32) -> Result<()> + Clone + Send,
    read: impl Fn() -> Result<Came> + Clone + Send,
    work: impl FnOnce(&dyn Fn() -> (Duration, Duration)) -> T,
) -> Result<(T, Vec<Came>, (Duration, Duration))> {
    let all_are_there = &Barrier::new(usize::try_from(split.thread_readers + split.thread_writers)? + 1);
    thread::scope(|scope| {
        let writers = (split.inner_writers..split.writers()).map(|index| {
            let write = write.clone();
            scope.spawn(move || {
                all_are_there.wait();
                write(index)
            })
        });
        let readers = (0..split.thread_readers).map(|_| {
            let read = read.clone();
            scope.spawn(move || {
                all_are_there.wait();
                read()
            })
        });
        let (writers, readers): (Vec<_>, Vec<_>) = (writers.collect(), readers.collect());
        // From here on, only the threads hold these ends of the channel.
        drop((write, read));
        all_are_there.wait();
        let (start, used) = (Instant::now(), process::of_all_threads());
        let took = || (start.elapsed(), process::of_all_threads() - used);
        let outcome = work(&took);
        for writer in writers {
            writer.join().map_err(|_| anyhow!("a writer panicked"))??;
        }
        let came =
            readers.into_iter().map(|reader| reader.join().map_err(|_| anyhow!("a reader panicked"))?);
        let came = came.collect::<Result<_>>()?;
        Ok((outcome, came, took()))
    })
}

#[derive(Debug)]
pub(super) struct Native(Worker);

impl Native {
    pub(super) fn start() -> Result<Self> {
        Ok(Self(Worker::start()?))
    }

    pub(super) fn round(&self, split: Split, jobs: Jobs) -> Result<Round> {
        let (sender, receiver) = async_channel::bounded(CAPACITY.try_into()?);
        let (to_all, from_all) = (sender.clone(), receiver.clone());
        let write = move |index| {
            let mut jobs_of = share(index, split.writers(), jobs.count);
            jobs_of.try_for_each(|which| to_all.send_blocking(job(which, jobs.bytes)).context("nobody reads"))
        };
        let read = move || {
            let mut came = Came::none_of(jobs)?;
            while let Ok(job) = from_all.recv_blocking() {
                came.note(&job)?;
            }
            Ok(came)
        };
        let tasks = tasks(sender, receiver, split, jobs);
        let (inner, mut came, took) = among_threads(split, write, read, |_| self.0.run(tasks))?;
        came.extend(inner??);
        jobs::round(took, &came, jobs)
    }
}

/// Starts the tasks, and waits until all jobs are read. Returns what came to each reader.
async fn tasks(
    sender: Sender<Vec<u8>>,
    receiver: Receiver<Vec<u8>>,
    split: Split,
    jobs: Jobs,
) -> Result<Vec<Came>> {
    for index in 0..split.inner_writers {
        let sender = sender.clone();
        let _writer = tokio::spawn(async move {
            for which in share(index, split.writers(), jobs.count) {
                if sender.send(job(which, jobs.bytes)).await.is_err() {
                    return;
                }
            }
        });
    }
    drop(sender);
    let read = (0..split.inner_readers).map(|_| {
        let receiver = receiver.clone();
        tokio::spawn(async move {
            let mut came = Came::none_of(jobs)?;
            while let Ok(job) = receiver.recv().await {
                came.note(&job)?;
            }
            anyhow::Ok(came)
        })
    });
    let read: Vec<_> = read.collect();
    drop(receiver);
    let mut came = Vec::new();
    for reader in read {
        came.push(reader.await??);
    }
    Ok(came)
}

/// A Main with the greatest number of readers and writers. Idle ones wait.
#[derive(Debug)]
pub(super) struct Weir {
    main: Embedder,
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
        Ok(Self { main: Embedder::start(Main::builder(config))?, readers: count })
    }

    pub(super) fn round(&self, split: Split, jobs: Jobs) -> Result<Round> {
        self.main.run(std::future::ready(self.measure(split, jobs)))
    }

    fn measure(&self, split: Split, jobs: Jobs) -> Result<Round> {
        let client = self.main.client();
        for number in 0..self.readers {
            let at_once = if number < split.inner_readers { jobs.at_once } else { 0 };
            self.main.ask(&contract(number), "prepare", &[at_once, jobs.count, jobs.bytes])?;
        }
        let (queue, mut last) = (client.queue(QUEUE)?, client.subscribe("last")?);
        let over = &AtomicBool::new(false);
        let putting = queue.clone();
        let write = move |index| {
            for which in share(index, split.writers(), jobs.count) {
                wait(putting.put_within(PATIENCE, job(which, jobs.bytes)))?;
            }
            Ok(())
        };
        let read = move || read(queue.clone(), client, jobs, over);
        let (took, mut came, _) = among_threads(split, write, read, |took| {
            let all = payload(&[split.writers(), split.inner_writers, jobs.count, jobs.bytes]);
            let go = wait(client.publish("go", all));
            let end = self.end(&mut last, split.writers()).map(|()| took());
            // This is set before anything fails, because the threads wait for it.
            over.store(true, Ordering::Relaxed);
            go?;
            end
        })?;
        let took = took?;
        for number in 0..split.inner_readers {
            came.push(Came::from_bits(&self.main.ask(&contract(number), "report", &[])?, jobs));
        }
        jobs::round(took, &came, jobs)
    }

    fn end(&self, last: &mut Subscriber, writers: u32) -> Result<()> {
        for _ in 0..writers {
            wait_for(PATIENCE, last.next())?.flatten().context("the jobs do not come to an end")?;
        }
        // All jobs are in hand or done by now.
        let (now, control) = (Instant::now(), self.main.control());
        while now.elapsed() < PATIENCE {
            if control.queues().iter().all(|queue| queue.waiting == 0 && queue.in_hand == 0) {
                return Ok(());
            }
            thread::yield_now();
        }
        anyhow::bail!("a job stays in hand");
    }
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
