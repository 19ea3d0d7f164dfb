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
    /// Puts a job at the end of a queue, where it stays whatever becomes of the request in hand.
    ///
    /// What happens where the queue is full is the operator's choice: the job waits for room (`block`), as
    /// [`publish`](Self::publish) does, it is refused, the oldest jobs that wait give way to it, or it is
    /// dropped and counted.
    ///
    /// # Errors
    /// `PermissionDenied` if `puts` does not list the queue, `Overloaded` or, after waiting, `Timeout` if
    /// it is full, `TooLarge`, or `Invalid`.
    pub fn put<T, C: Encode<T>>(&self, queue: Queue<T, C>, job: &T) -> Result<JobId, Error> {
        let payload = C::encode(job)?;
        self.link.jobs.put(queue.name(), &payload, self.options(None)).map(JobId)
    }

    /// Waits for one job of a queue; meanwhile this extension serves others.
    ///
    /// Dropping the future asks for one job less, and one that came all the same is given back. A job
    /// that does not decode is logged and given back, so that it ends among the dead letters.
    ///
    /// A [background](crate::Extension::background) task that takes in a loop is a worker; for the usual
    /// one there is [`on_job`](crate::Extension::on_job). What comes first, a job or a time, is
    /// [`within`](Self::within); a job or anything else is a `select` of two futures.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use weir_sdk::{Context, Error, Queue};
    /// # const LINES: Queue<String> = Queue::new("lines");
    /// # async fn write(lines: &[String]) -> Result<(), Error> { Ok(()) }
    /// /// Writes lines ten at a time, or what there is after a second.
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
    /// `PermissionDenied` if `takes` does not list the queue, `Invalid`, `LimitExceeded` if more jobs are
    /// in hand and waited for than `in-flight` allows, `Timeout` under `within`, or `NotReady` in
    /// `on_start` and once the extension was told to stop.
    pub async fn take<T, C: Decode<T>>(&self, queue: Queue<T, C>) -> Result<Job<T>, Error> {
        let Some(timeout) = self.timeout else {
            return self.take_patiently(queue).await;
        };
        match select(pin!(self.take_patiently(queue)), pin!(self.sleep(timeout))).await {
            Either::Left((outcome, _)) => outcome,
            Either::Right(_) => Err(Error::Timeout),
        }
    }

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
