//! What comes back: answers, published events, and what became of jobs.

use std::{fmt, marker::PhantomData, rc::Rc};

use serde::de::DeserializeOwned;

use super::run::Run;
use crate::{Error, codec::Decode, host::MessageId};

/// A request that the extension has not been waited for.
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
    /// The one extension that it was meant for, if not everyone.
    pub to: Option<String>,
    /// What was published.
    pub payload: Vec<u8>,
}

/// What has become of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// It waits in its queue, and was delivered and given back so often.
    Waiting {
        /// How often.
        deliveries: u32,
    },
    /// The extension has it.
    InHand {
        /// How often it was delivered, this time included.
        deliveries: u32,
    },
    /// It is done.
    Done,
    /// It was delivered three times, as often as Main allows by default, and given back each time: it is
    /// among the dead letters.
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
    /// As [`Harness::call`](super::Harness::call).
    pub fn wait(self) -> Result<R, Error>
    where
        C: Decode<R>,
    {
        let payload = self.run.wait_for(self.id)?;
        C::decode(payload).map_err(|error| Error::handler("invalid-answer", error))
    }
}

impl Published {
    /// The payload, read as JSON.
    ///
    /// # Panics
    /// If it is something else.
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
