//! Queues for programs without async code.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use weir_names::{Error, TraceContext};

use super::driver::Driver;

/// As [`crate::Queue`].
#[derive(Clone)]
pub struct Queue {
    queue: crate::Queue,
    driver: Arc<Driver>,
}

impl Queue {
    pub(super) fn new(queue: crate::Queue, driver: Arc<Driver>) -> Self {
        Self { queue, driver }
    }

    /// As [`crate::Queue::put`].
    ///
    /// # Errors
    /// As [`crate::Queue::put`].
    pub fn put(&self, payload: impl Into<Bytes>) -> Result<u64, Error> {
        self.driver.wait(self.queue.put(payload))
    }

    /// As [`crate::Queue::put_within`].
    ///
    /// # Errors
    /// As [`crate::Queue::put_within`].
    pub fn put_within(&self, timeout: Duration, payload: impl Into<Bytes>) -> Result<u64, Error> {
        self.driver.wait(self.queue.put_within(timeout, payload))
    }

    /// As [`crate::Queue::put_until_done`].
    ///
    /// # Errors
    /// As [`crate::Queue::put_until_done`].
    pub fn put_until_done(&self, payload: impl Into<Bytes>) -> Result<(), Error> {
        self.driver.wait(self.queue.put_until_done(payload))
    }

    /// As [`crate::Queue::put_until_done_after`].
    ///
    /// # Errors
    /// As [`crate::Queue::put_until_done_after`].
    pub fn put_until_done_after(&self, deliveries: u32, payload: impl Into<Bytes>) -> Result<(), Error> {
        self.driver.wait(self.queue.put_until_done_after(deliveries, payload))
    }

    /// As [`crate::Queue::take`].
    ///
    /// # Errors
    /// As [`crate::Queue::take`].
    pub fn take(&self) -> Result<Job, Error> {
        let job = self.driver.wait(self.queue.take())?;
        Ok(Job { job, driver: self.driver.clone() })
    }

    /// As [`take`](Self::take), for at most this long.
    ///
    /// # Errors
    /// [`Error::Timeout`], and as [`crate::Queue::take`].
    pub fn take_within(&self, timeout: Duration) -> Result<Job, Error> {
        let job = self.driver.wait_within(timeout, self.queue.take())??;
        Ok(Job { job, driver: self.driver.clone() })
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.queue.fmt(f)
    }
}

/// As [`crate::Job`].
#[must_use = "dropped, it goes back to the queue"]
pub struct Job {
    job: crate::Job,
    #[expect(dead_code, reason = "the session's thread lives as long as its values")]
    driver: Arc<Driver>,
}

impl Job {
    /// As [`crate::Job::trace`].
    #[must_use]
    pub fn trace(&self) -> Option<TraceContext> {
        self.job.trace()
    }

    /// The bytes that were put.
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        self.job.payload()
    }

    /// The sender. It cannot be forged.
    #[must_use]
    pub fn sender(&self) -> &str {
        self.job.sender()
    }

    /// Main's id of the job, the same at each delivery.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.job.id()
    }

    /// Deliveries so far, this one included.
    #[must_use]
    pub fn deliveries(&self) -> u32 {
        self.job.deliveries()
    }

    /// As [`crate::Job::done`].
    pub fn done(self) {
        self.job.done();
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.job.fmt(f)
    }
}
