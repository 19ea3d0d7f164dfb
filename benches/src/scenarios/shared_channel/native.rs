//! Tasks of one thread, and threads, on one bounded channel.

use std::{sync::Barrier, thread, time::Instant};

use anyhow::{Context, Result, anyhow};
use async_channel::{Receiver, Sender};

use super::{
    CAPACITY, Jobs, Round, Split,
    jobs::{self, Came, job, share},
};
use crate::{scenarios::tasks::Worker, usage};

#[derive(Debug)]
pub(super) struct Native {
    worker: Worker,
}

impl Native {
    pub(super) fn start() -> Result<Self> {
        Ok(Self { worker: Worker::start()? })
    }

    pub(super) fn round(&self, split: Split, jobs: Jobs) -> Result<Round> {
        let Split { inner_readers, inner_writers, thread_readers, thread_writers } = split;
        let (sender, receiver) = async_channel::bounded(CAPACITY.try_into()?);
        let writers = inner_writers + thread_writers;
        let begin = Barrier::new(usize::try_from(thread_readers + thread_writers)? + 1);
        thread::scope(|scope| {
            let threads_write: Vec<_> = (inner_writers..writers)
                .map(|index| {
                    let (sender, begin) = (sender.clone(), &begin);
                    scope.spawn(move || {
                        begin.wait();
                        share(index, writers, jobs.count).try_for_each(|which| {
                            sender.send_blocking(job(which, jobs.bytes)).context("nobody reads")
                        })
                    })
                })
                .collect();
            let threads_read: Vec<_> = (0..thread_readers)
                .map(|_| {
                    let (receiver, begin) = (receiver.clone(), &begin);
                    scope.spawn(move || {
                        begin.wait();
                        let mut came = Came::none_of(jobs)?;
                        while let Ok(job) = receiver.recv_blocking() {
                            came.note(&job)?;
                        }
                        anyhow::Ok(came)
                    })
                })
                .collect();
            begin.wait();
            let (start, used) = (Instant::now(), usage::of_all_threads());
            let tasks = tasks(sender, receiver, inner_readers, (inner_writers, writers), jobs);
            let mut came = self.worker.run(tasks)??;
            for writer in threads_write {
                writer.join().map_err(|_| anyhow!("a writer panicked"))??;
            }
            for reader in threads_read {
                came.push(reader.join().map_err(|_| anyhow!("a reader panicked"))??);
            }
            jobs::round((start.elapsed(), usage::of_all_threads() - used), &came, jobs)
        })
    }
}

/// The tasks, from their start to the end of the jobs.
async fn tasks(
    sender: Sender<Vec<u8>>,
    receiver: Receiver<Vec<u8>>,
    readers: u32,
    (own, writers): (u32, u32),
    jobs: Jobs,
) -> Result<Vec<Came>> {
    for index in 0..own {
        let sender = sender.clone();
        let _writer = tokio::spawn(async move {
            for which in share(index, writers, jobs.count) {
                if sender.send(job(which, jobs.bytes)).await.is_err() {
                    return;
                }
            }
        });
    }
    drop(sender);
    let read = (0..readers).map(|_| {
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
