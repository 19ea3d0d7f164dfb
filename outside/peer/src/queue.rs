//! Shared queues: each job goes to exactly one of the readers.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use weir_names::{Error, TraceContext};

use crate::{
    frame::FromPeer,
    peer::{milliseconds, wrong_payload},
    session::{Handle, Pending, QueueState, WaitingJob},
};

/// A shared queue, to put jobs into and to take them from.
pub struct Queue {
    handle: Handle,
    name: Arc<str>,
    state: Arc<QueueState>,
}

impl Queue {
    pub(crate) fn new(handle: Handle, name: &str) -> Self {
        let state = handle.tables().open_queue(name);
        Self { handle, name: name.into(), state }
    }

    /// Puts a job at the end of the queue, and gives Main's id of it. If the queue is full, the operator's policy decides.
    ///
    /// # Errors
    /// A queue that is not granted, not there, or full and without room in time; a payload that is too large; too much
    /// under way; or the end of the session.
    pub async fn put(&self, payload: impl Into<Bytes>) -> Result<u64, Error> {
        self.put_job(None, payload.into()).await
    }

    /// Puts a job at the end of the queue, and gives Main's id of it. Waits for room no longer than `timeout`.
    ///
    /// # Errors
    /// Those of [`put`](Self::put).
    pub async fn put_within(&self, timeout: Duration, payload: impl Into<Bytes>) -> Result<u64, Error> {
        self.put_job(Some(timeout), payload.into()).await
    }

    /// Puts a job, and waits until a reader has finished it. There is no time limit. If the future is dropped and the job
    /// still waits in the queue, Main takes it out.
    ///
    /// # Errors
    /// Those of [`put`](Self::put), and a handler error with the code `dead` if the job was delivered too often.
    pub async fn put_until_done(&self, payload: impl Into<Bytes>) -> Result<(), Error> {
        self.put_until_done_after(0, payload).await
    }

    /// Puts a job that was delivered so often before it came to Main, and waits until a reader has finished it. The
    /// deliveries count towards `max-deliveries`, and a job that has none left gets one more. A Main that speaks a version
    /// of the protocol before 3 counts from 0.
    ///
    /// # Errors
    /// Those of [`put_until_done`](Self::put_until_done).
    pub async fn put_until_done_after(
        &self,
        deliveries: u32,
        payload: impl Into<Bytes>,
    ) -> Result<(), Error> {
        self.send_put(None, Some(deliveries), payload.into()).await.map(drop)
    }

    async fn put_job(&self, timeout: Option<Duration>, payload: Bytes) -> Result<u64, Error> {
        let message = self.send_put(timeout, None, payload).await?;
        let message = message.as_array().map(|message| u64::from_le_bytes(*message));
        message.ok_or_else(|| wrong_payload(&self.handle, "PUT"))
    }

    /// Sends a job and waits for the answer. `until_done` is the number of deliveries before the job came to Main: with
    /// it the answer comes once the job is done.
    async fn send_put(
        &self,
        timeout: Option<Duration>,
        until_done: Option<u32>,
        payload: Bytes,
    ) -> Result<Bytes, Error> {
        let (queue, timeout_ms, size) = (&*self.name, milliseconds(timeout), payload.len());
        let (count, until_done) = (until_done.unwrap_or_default(), until_done.is_some());
        let frame = |id| FromPeer::Put { id, timeout_ms, until_done, queue, payload };
        self.handle.ask_counted(count.into(), size, frame).await
    }

    /// Takes the next job, and waits for it without a time limit. Several tasks may take at once, each for one job.
    ///
    /// If the future is dropped, a job that comes for it waits in this session for the next `take`. Such jobs go back when
    /// all handles of the queue are dropped.
    ///
    /// # Errors
    /// A queue that is not granted, too much under way, or the end of the session. [`Error::NoProvider`] if the operator
    /// takes the grant or the queue back meanwhile.
    pub async fn take(&self) -> Result<Job, Error> {
        let taker = Taker::new(&self.state);
        if self.needs_credit() {
            self.handle.outgoing.room().await?;
            self.ask_for_job()?;
        }
        let job = self.state.jobs.next().await.unwrap_or(Err(Error::PeerGone));
        drop(taker);
        Ok(Job { handle: self.handle.clone(), waiting: job?, is_settled: false })
    }

    /// Whether more takers wait than jobs wait or may come.
    fn needs_credit(&self) -> bool {
        let counts = self.state.counts();
        counts.credit + self.state.jobs.len() < counts.takers
    }

    fn ask_for_job(&self) -> Result<(), Error> {
        let id = self.handle.register(Pending::Take(self.state.clone()))?;
        self.handle.tables().jobs_credit += 1;
        self.state.counts().credit += 1;
        self.handle.outgoing.push(&FromPeer::Take { id, jobs: 1, queue: &self.name });
        Ok(())
    }
}

impl Clone for Queue {
    fn clone(&self) -> Self {
        Self::new(self.handle.clone(), &self.name)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let jobs = self.handle.tables().close_queue(&self.name);
        for job in jobs {
            self.handle.outgoing.push(&FromPeer::Return { job: job.number });
        }
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Counts a `take` as waiting until it is dropped.
struct Taker<'q>(&'q QueueState);

impl<'q> Taker<'q> {
    fn new(queue: &'q QueueState) -> Self {
        queue.counts().takers += 1;
        Self(queue)
    }
}

impl Drop for Taker<'_> {
    fn drop(&mut self) {
        self.0.counts().takers -= 1;
    }
}

/// A job in hand. Dropped before [`done`](Self::done), it goes back to the queue.
#[must_use = "dropped, it goes back to the queue"]
pub struct Job {
    handle: Handle,
    waiting: WaitingJob,
    is_settled: bool,
}

impl Job {
    /// The bytes that were put.
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        &self.waiting.payload
    }

    /// The sender. It cannot be forged.
    #[must_use]
    pub fn sender(&self) -> &str {
        &self.waiting.sender
    }

    /// Main's id of the job, the same at each delivery.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.waiting.message
    }

    /// The span of this delivery, if Main records it: for [`Peer::part_of`](crate::Peer::part_of).
    #[must_use]
    pub fn trace(&self) -> Option<TraceContext> {
        self.waiting.span
    }

    /// Deliveries so far, this one included. Over 1, an earlier reader did not finish the job.
    #[must_use]
    pub fn deliveries(&self) -> u32 {
        self.waiting.deliveries
    }

    /// Says that the job is done. If the session ends before Main has read that, another reader gets the job.
    pub fn done(mut self) {
        self.is_settled = true;
        self.handle.outgoing.push(&FromPeer::Done { job: self.waiting.number });
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if !self.is_settled {
            self.handle.outgoing.push(&FromPeer::Return { job: self.waiting.number });
        }
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("id", &self.id()).finish_non_exhaustive()
    }
}
