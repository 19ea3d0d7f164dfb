//! Shared queues, as constants for the extensions that put and take jobs, and the jobs.

use std::{fmt, marker::PhantomData, rc::Rc};

use weir_names::rules;

use crate::{
    Error,
    codec::{Bytes, Json},
    host::{self, MessageId, Peer},
    link::Link,
};

/// A shared queue with jobs of type `T` in the encoding `C`. Any number of extensions put jobs, any number
/// take them, and each job goes to exactly one reader.
///
/// The operator names and bounds the queues. They live in Main's memory.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use weir_sdk::{Context, Error, Extension, Queue};
///
/// #[derive(Serialize, Deserialize)]
/// struct Upload {
///     file: String,
/// }
///
/// const UPLOADS: Queue<Upload> = Queue::new("uploads");
///
/// weir_sdk::manifest! { id: "uploader", takes: &[UPLOADS.name()] }
///
/// async fn upload(_: &(), _: &Context, job: Upload) -> Result<(), Error> {
///     println!("{} is on its way", job.file);
///     Ok(())
/// }
///
/// # fn main() {
/// use weir_sdk::testing::{Harness, JobState};
///
/// let main = Harness::new(Extension::new(MANIFEST, ()).on_job(UPLOADS, upload));
/// let job = main.put(UPLOADS, &Upload { file: "report".to_owned() });
/// assert_eq!(main.job(job), JobState::Done);
/// # }
/// ```
pub struct Queue<T, C = Json> {
    name: &'static str,
    types: PhantomData<fn(C) -> T>,
}

/// Identifies one job for as long as Main runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub(crate) MessageId);

/// A job in hand. [`done`](Self::done) finishes it; dropping it gives it back. Then another reader gets it,
/// or this one again. After the operator's number of deliveries it goes to the queue's dead letters.
#[derive(Debug)]
#[must_use = "a job that is dropped is given back"]
pub struct Job<T> {
    /// The value that was put.
    pub payload: T,
    /// The id of the job, the same at each delivery.
    pub id: JobId,
    /// Deliveries so far, this one included. Over 1, an earlier reader did not finish the job.
    pub deliveries: u32,
    held: Held,
}

impl<T> Queue<T> {
    /// A queue with jobs in JSON. Its name is 1 to 64 of `a-z`, `0-9` and `-`, starting with a letter.
    ///
    /// # Panics
    /// If the name is not well formed. In a `const`, that is a compile error.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self::of(name)
    }
}

impl Queue<Vec<u8>, Bytes> {
    /// A queue with bytes as jobs.
    ///
    /// # Panics
    /// If the name is not well formed. In a `const`, that is a compile error.
    #[must_use]
    pub const fn bytes(name: &'static str) -> Self {
        Self::of(name)
    }
}

impl<T, C> Queue<T, C> {
    const fn of(name: &'static str) -> Self {
        assert!(
            rules::is_queue_name(name),
            "a queue is 1 to 64 of `a-z`, `0-9` and `-`, starting with a letter"
        );
        Self { name, types: PhantomData }
    }

    /// The name, as the manifest lists it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

impl<T> Job<T> {
    pub(crate) fn new(payload: T, deliveries: u32, held: Held) -> Self {
        Self { payload, id: JobId(held.id), deliveries, held }
    }

    /// The sender: an extension's id, the name of a program outside Main as in `app:player`, or `main`. Main vouches
    /// for it.
    #[must_use]
    pub fn sender(&self) -> Option<String> {
        self.held.link.host.name_of(self.held.sender)
    }

    /// Finishes the job: no reader gets it again.
    ///
    /// # Errors
    /// `Invalid` if Main does not count it as in hand.
    pub fn done(self) -> Result<(), Error> {
        self.held.done()
    }
}

/// The duty to finish a job in hand. Dropping it gives the job back.
pub(crate) struct Held {
    link: Rc<Link>,
    id: MessageId,
    sender: Peer,
    is_done: bool,
}

impl Held {
    /// Splits a job from Main into a duty and a payload.
    pub(crate) fn take(link: Rc<Link>, job: host::Job) -> (Self, Vec<u8>) {
        (Self { link, id: job.id, sender: job.sender, is_done: false }, job.payload)
    }

    pub(crate) fn done(mut self) -> Result<(), Error> {
        self.is_done = true;
        self.link.host.done(self.id)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.is_done {
            self.link.jobs.give_back(self.id);
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Held({})", self.id)
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T, C> Clone for Queue<T, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, C> Copy for Queue<T, C> {}

impl<T, C> fmt::Debug for Queue<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({self})")
    }
}

impl<T, C> fmt::Display for Queue<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
