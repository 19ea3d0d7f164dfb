//! What tests look at: answers, published events, and states of jobs.

use std::{fmt, marker::PhantomData, rc::Rc};

use serde::de::DeserializeOwned;

use super::run::Run;
use crate::{Error, codec::Decode, host::MessageId};

/// A request under way.
#[must_use = "an answer that nobody looks at proves nothing"]
pub struct Pending<R, C> {
    run: Rc<Run>,
    id: MessageId,
    types: PhantomData<fn(C) -> R>,
}

/// An event that the extension published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// The topic.
    pub topic: String,
    /// The one extension that the event was for. `None` if it was for all subscribers.
    pub to: Option<String>,
    /// The payload.
    pub payload: Vec<u8>,
}

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// The job waits in its queue.
    Waiting {
        /// Deliveries so far.
        deliveries: u32,
    },
    /// The extension has the job in hand.
    InHand {
        /// Deliveries so far, this one included.
        deliveries: u32,
    },
    /// The job is done.
    Done,
    /// The job is among the dead letters. It was delivered three times, Main's default, and given back each time.
    Dead,
}

impl<R, C> Pending<R, C> {
    pub(super) fn new(run: Rc<Run>, id: MessageId) -> Self {
        Self { run, id, types: PhantomData }
    }

    /// Whether the answer is there already.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.run.run_until_idle();
        self.run.host.is_answered(self.id)
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// The errors of [`Harness::call`](super::Harness::call).
    pub fn wait(self) -> Result<R, Error>
    where
        C: Decode<R>,
    {
        let payload = self.run.wait_for(self.id)?;
        C::decode(payload).map_err(|error| Error::handler("invalid-answer", error))
    }
}

impl Published {
    /// The payload as JSON.
    ///
    /// # Panics
    /// If it is not JSON of this type.
    #[must_use]
    pub fn json<T: DeserializeOwned>(&self) -> T {
        match serde_json::from_slice(&self.payload) {
            Ok(value) => value,
            Err(error) => panic!("the event of `{}` is not what was expected: {error}", self.topic),
        }
    }
}

impl<R, C> fmt::Debug for Pending<R, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pending({})", self.id)
    }
}
