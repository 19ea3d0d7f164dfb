//! A job in hand: done, or given back when dropped.

use std::{sync::Arc, time::Instant};

use super::{
    SharedQueue,
    job::QueuedJob,
    reader::{HandedJob, JobReader, Permit, wake},
};

/// A job in hand. Dropped before it is done, it goes back.
#[derive(Debug)]
pub struct TakenJob {
    queue: Arc<SharedQueue>,
    job: Option<QueuedJob>,
    _permit: Permit,
}

impl TakenJob {
    /// The job; none once it is done.
    #[inline]
    pub fn get(&self) -> Option<&QueuedJob> {
        self.job.as_ref()
    }

    /// The queue that it was taken from.
    #[inline]
    pub fn queue(&self) -> &Arc<SharedQueue> {
        &self.queue
    }

    /// Finishes the job: it leaves the queue.
    #[inline]
    pub fn done(mut self) {
        if let Some(job) = self.job.take() {
            self.queue.finish(&job);
        }
    }
}

impl Drop for TakenJob {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            self.queue.give_back(job);
        }
    }
}

impl SharedQueue {
    /// A job for this reader, without waiting: the one it was handed, else the first that it takes.
    pub fn take(self: &Arc<Self>, reader: &JobReader) -> Option<TakenJob> {
        let mut state = self.state();
        let handed = reader.handed().take();
        let HandedJob(mut job, permit) = match handed {
            Some(handed) => handed,
            None => state.take_for(reader)?,
        };
        job.deliveries = job.deliveries.saturating_add(1);
        state.counts.delivered += 1;
        Some(TakenJob { queue: self.clone(), job: Some(job), _permit: permit })
    }

    fn finish(&self, job: &QueuedJob) {
        if let Some(fate) = &job.fate {
            fate.finish();
        }
        let mut state = self.state();
        state.release(job);
        state.bytes -= job.bytes();
        state.counts.done += 1;
        state.done_rate.add(Instant::now(), 1);
        let woken = state.admit();
        drop(state);
        wake(woken);
    }

    fn give_back(&self, job: QueuedJob) {
        let mut state = self.state();
        state.release(&job);
        state.counts.returned += 1;
        let is_dead = job.deliveries >= state.settings.max_deliveries;
        self.return_or_die(state, job, is_dead);
    }
}
