//! Queues, as the test uses them.

use super::{Harness, payload};
use crate::{
    JobId, Queue,
    codec::{Decode, Encode},
    testing::JobState,
};

impl Harness {
    /// Puts a job into a queue. The extension gets it when it takes.
    ///
    /// # Panics
    /// If the value does not encode.
    pub fn put<T, C: Encode<T>>(&self, queue: Queue<T, C>, job: &T) -> JobId {
        self.put_bytes(queue, &payload::<T, C>(job))
    }

    /// [`put`](Self::put) with a payload as bytes, without the queue's codec.
    ///
    /// # Panics
    /// If there are more queues than numbers.
    pub fn put_bytes<T, C>(&self, queue: Queue<T, C>, payload: &[u8]) -> JobId {
        self.run.run_until(|host| host.is_ready());
        match self.run.host.put_from_test(queue.name(), payload) {
            Ok(job) => {
                self.run.run_until_idle();
                job
            }
            Err(error) => panic!("nothing can be put into `{queue}`: {error}"),
        }
    }

    /// The state of a job.
    ///
    /// # Panics
    /// If it was never put into a queue of this harness.
    #[must_use]
    pub fn job(&self, job: JobId) -> JobState {
        self.run.run_until_idle();
        match self.run.host.job(job) {
            Some(state) => state,
            None => panic!("there is no job {job}"),
        }
    }

    /// Takes all waiting jobs of a queue, as another reader would: for example, the jobs that the extension
    /// puts.
    ///
    /// # Panics
    /// If a job does not decode.
    #[must_use]
    pub fn take_all<T, C: Decode<T>>(&self, queue: Queue<T, C>) -> Vec<T> {
        self.run.run_until_idle();
        let decoded = self.run.host.drain(queue.name()).into_iter().map(|payload| match C::decode(payload) {
            Ok(job) => job,
            Err(error) => panic!("a job of `{queue}` is not what was expected: {error}"),
        });
        decoded.collect()
    }
}
