//! Queues, as handlers use them.

use std::pin::pin;

use futures_util::future::{Either, select};

use super::Context;
use crate::{
    Error, Job, JobId, Queue,
    codec::{Decode, Encode},
    log,
    queue::Held,
};

impl Context {
    /// Puts a job at the end of a queue. It stays there even if the request in hand fails.
    ///
    /// If the queue is full, the operator's policy decides: the job waits for room (`block`) as in
    /// [`publish`](Self::publish), it is refused, the oldest waiting jobs give way, or it is dropped and
    /// counted.
    ///
    /// # Errors
    /// `PermissionDenied` if `puts` does not list the queue; `Overloaded`, or `Timeout` after waiting, if the queue is
    /// full; `WouldDeadlock` if all readers of the queue wait for this extension; `TooLarge`; or `Invalid`.
    pub fn put<T, C: Encode<T>>(&self, queue: Queue<T, C>, job: &T) -> Result<JobId, Error> {
        let payload = C::encode(job)?;
        self.link.jobs.put(queue.name(), &payload, self.options(None)).map(JobId)
    }

    /// Waits for one job of a queue. Meanwhile this extension serves other messages.
    ///
    /// Dropping the future withdraws the request for a job; a job that still comes is given back. A job that
    /// does not decode is logged and given back, so it ends among the dead letters.
    ///
    /// Use [`on_job`](crate::Extension::on_job) for an ordinary worker. Take in a loop of a
    /// [background](crate::Extension::background) task for more control: [`within`](Self::within) bounds the
    /// wait, and a `select` of two futures waits for something else, too.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use weir_sdk::{Context, Error, Queue};
    /// # const LINES: Queue<String> = Queue::new("lines");
    /// # async fn write(lines: &[String]) -> Result<(), Error> { Ok(()) }
    /// /// Writes lines ten at a time, or after a second with fewer.
    /// async fn collect(_: &(), ctx: &Context) -> Result<(), Error> {
    ///     loop {
    ///         let mut jobs = vec![ctx.take(LINES).await?];
    ///         let hurried = ctx.within(Duration::from_secs(1));
    ///         while jobs.len() < 10 {
    ///             match hurried.take(LINES).await {
    ///                 Ok(job) => jobs.push(job),
    ///                 Err(Error::Timeout) => break,
    ///                 Err(error) => return Err(error),
    ///             }
    ///         }
    ///         let lines: Vec<String> = jobs.iter().map(|job| job.payload.clone()).collect();
    ///         write(&lines).await?;
    ///         for job in jobs {
    ///             job.done()?;
    ///         }
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// `PermissionDenied` if `takes` does not list the queue; `Invalid`; `LimitExceeded` if more jobs are in
    /// hand and awaited than `in-flight` allows; `Timeout` under `within`; `NotReady` in `on_start` and after
    /// stop.
    pub async fn take<T, C: Decode<T>>(&self, queue: Queue<T, C>) -> Result<Job<T>, Error> {
        let Some(timeout) = self.timeout else {
            return self.take_patiently(queue).await;
        };
        match select(pin!(self.take_patiently(queue)), pin!(self.sleep(timeout))).await {
            Either::Left((outcome, _)) => outcome,
            Either::Right(_) => Err(Error::Timeout),
        }
    }

    /// Takes the next job that decodes, without a time limit.
    async fn take_patiently<T, C: Decode<T>>(&self, queue: Queue<T, C>) -> Result<Job<T>, Error> {
        loop {
            let job = self.link.jobs.take(queue.name()).await?;
            let deliveries = job.deliveries;
            let (held, payload) = Held::take(self.link.clone(), job);
            match C::decode(payload) {
                Ok(payload) => return Ok(Job::new(payload, deliveries, held)),
                Err(error) => log::warn("a job does not decode", &[("queue", &queue), ("error", &error)]),
            }
        }
    }
}
