//! A job that a reader has in hand. The reader finishes it, or gives it back by dropping it.

use std::{iter, sync::Arc, time::Instant};

use super::{
    QueuedJob, SharedQueue,
    reader::{HandedJob, JobReader, Permit, wake},
};
use crate::trace::{OpenSpan, What};

/// A job that a reader has in hand. If it is dropped before it is done, it goes back to its queue, or becomes a dead
/// letter if it was delivered too often.
#[derive(Debug)]
pub struct TakenJob {
    queue: Arc<SharedQueue>,
    job: QueuedJob,
    is_done: bool,
    /// The span of this delivery and the name of its reader, if the job is sampled.
    span: Option<Box<(Arc<OpenSpan>, Arc<str>)>>,
    _permit: Permit,
}

impl TakenJob {
    /// Returns the job.
    #[inline]
    pub fn get(&self) -> &QueuedJob {
        &self.job
    }

    /// Returns the queue that the job was taken from.
    #[inline]
    pub fn queue(&self) -> &Arc<SharedQueue> {
        &self.queue
    }

    /// The span of this delivery, if the job is sampled.
    #[inline]
    pub fn span(&self) -> Option<&Arc<OpenSpan>> {
        self.span.as_ref().map(|span| &span.0)
    }

    /// Finishes the job: it leaves the queue.
    #[inline]
    pub fn done(mut self) {
        // Set before anything else: a waker may panic, and a finished job must not go back.
        self.is_done = true;
        self.tell_done();
        self.queue.finish(iter::once(&self.job));
    }

    /// Finishes these jobs. Neighbours of one queue are finished under one lock of that queue.
    pub fn all_done(mut jobs: Vec<Self>) {
        jobs.chunk_by_mut(|one, next| Arc::ptr_eq(&one.queue, &next.queue)).for_each(Self::finish);
    }

    /// Finishes jobs that are all of one queue.
    fn finish(jobs: &mut [Self]) {
        let Some(Self { queue, .. }) = jobs.first() else { return };
        let queue = queue.clone();
        for taken in &mut *jobs {
            taken.is_done = true;
            taken.tell_done();
        }
        queue.finish(jobs.iter().map(Self::get));
    }

    /// Ends the delivery's span, and tells a sender that waits that the job is done.
    #[inline]
    fn tell_done(&self) {
        self.end_span("ok");
        if let Some(fate) = &self.job.fate {
            fate.finish();
        }
    }

    #[inline]
    fn end_span(&self, outcome: &'static str) {
        if let Some((span, reader)) = self.span.as_deref() {
            span.end(What::Job(self.queue.name().clone()), self.job.sender, Some(reader), outcome);
        }
    }
}

impl Drop for TakenJob {
    fn drop(&mut self) {
        if !self.is_done {
            self.end_span("returned");
            // Cloned, because `drop` cannot move the job out.
            self.queue.give_back(self.job.clone());
        }
    }
}

impl SharedQueue {
    /// Takes a job for this reader, without waiting: the job it was handed, or else the first waiting job that it may
    /// have.
    pub fn take(self: &Arc<Self>, reader: &JobReader) -> Option<TakenJob> {
        let mut state = self.state.lock();
        let handed = reader.handed.lock().take();
        let HandedJob(mut job, permit) = match handed {
            Some(handed) => handed,
            None => state.take_for(reader)?,
        };
        job.deliveries = job.deliveries.saturating_add(1);
        state.counts.delivered += 1;
        drop(state);
        let span = job.traced.as_ref().map(|traced| Box::new((traced.take(), reader.name().clone())));
        Some(TakenJob { queue: self.clone(), job, is_done: false, span, _permit: permit })
    }

    fn finish<'j>(&self, jobs: impl Iterator<Item = &'j QueuedJob>) {
        let mut state = self.state.lock();
        let before = state.counts.done;
        for job in jobs {
            state.release(job);
            state.bytes -= job.bytes();
            state.counts.done += 1;
        }
        state.done_rate.add(Instant::now(), state.counts.done - before);
        let woken = state.admit();
        drop(state);
        wake(woken);
    }

    fn give_back(&self, job: QueuedJob) {
        let mut state = self.state.lock();
        state.release(&job);
        state.counts.returned += 1;
        let is_dead = job.deliveries >= state.settings.max_deliveries;
        self.return_or_die(state, job, is_dead);
    }
}
