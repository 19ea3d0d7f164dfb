//! One request under way, and why it failed.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use weir_bus::{Error, MessageId, PendingCall};
use weir_reports::FailureRecord;

use super::{Client, operation::outcome};

/// A request under way: see [`Client::begin`]. Dropping it gives up the request.
#[derive(Debug)]
#[must_use = "dropping it gives up the request"]
pub struct Call {
    client: Client,
    pending: PendingCall,
    _room: Option<OwnedSemaphorePermit>,
}

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallError {
    /// The error of the message.
    pub error: Error,
    /// The number of the request, as [`Call::id`] told it.
    pub message: MessageId,
    /// The failure of the extension that had the request in hand, if that is why. None for peers, which hear only the
    /// error.
    pub failure: Option<Arc<FailureRecord>>,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.failure {
            None => self.error.fmt(f),
            Some(failure) => write!(f, "{}: {}", self.error, failure.cause),
        }
    }
}

impl std::error::Error for CallError {}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        error.error
    }
}

impl Call {
    pub(super) fn new(client: Client, pending: PendingCall, room: Option<OwnedSemaphorePermit>) -> Self {
        Self { client, pending, _room: room }
    }

    /// The number of the request, by which records of failures, log lines and spans name it.
    #[must_use]
    pub fn id(&self) -> MessageId {
        self.pending.id()
    }

    /// Gives up the request, and ends the work for it, as a drop does with [`CallOptions::kill_on_drop`]. Also after the
    /// deadline, unless the extension has taken another request in its place by then. For a peer, ends only the wait.
    ///
    /// [`CallOptions::kill_on_drop`]: super::CallOptions::kill_on_drop
    pub fn cancel(self) {
        if self.client.roster.is_some() {
            self.pending.kill();
        }
    }

    /// Waits for the answer. Dropping the future does not give up the request: wait again, drop the `Call`, or
    /// [cancel](Self::cancel) it. There is no second answer: after the first comes [`Error::Invalid`].
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn answered(mut call: weir_host::client::Call) {
    /// if tokio::time::timeout(Duration::from_millis(100), call.answer()).await.is_err() {
    ///     call.cancel();
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Any case of [`Error`]. With [`Error::Trapped`] comes the failure that caused it, while it is on record: the last 16
    /// of each extension are.
    pub async fn answer(&mut self) -> Result<Bytes, CallError> {
        let Self { client, pending, .. } = self;
        let message = pending.id();
        outcome(client, pending).await.map_err(|error| {
            let has_failed = matches!(error, Error::Trapped | Error::PeerGone);
            let failure =
                client.roster.as_ref().filter(|_| has_failed).and_then(|roster| roster.failure_of(message));
            CallError { error, message, failure: failure.map(Arc::new) }
        })
    }
}
