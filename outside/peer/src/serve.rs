//! Contracts that a peer serves.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::Instant;
use weir_names::{Error, HandlerError, TraceContext};

use crate::{
    frame::FromPeer,
    session::{Handle, Mailbox, WaitingRequest, not_answered},
};

/// The requests to a contract that the peer serves.
///
/// Dropped, it answers what waits, and what still comes, with the handler error `dropped`. Main goes on to send
/// requests: the protocol has no end of serving but the end of the session. While 256 KiB wait to be written, a request
/// that comes is left to its deadline.
#[must_use = "dropped, it refuses all requests"]
pub struct Requests {
    handle: Handle,
    contract: Arc<str>,
    waiting: Arc<Mailbox<WaitingRequest>>,
}

impl Requests {
    pub(crate) fn new(handle: Handle, contract: Arc<str>, waiting: Arc<Mailbox<WaitingRequest>>) -> Self {
        Self { handle, contract, waiting }
    }

    /// The next request; `None` once the session has ended. A future that is dropped loses no request.
    pub async fn next(&mut self) -> Option<Request> {
        let waiting = self.waiting.next().await?;
        Some(Request { handle: self.handle.clone(), contract: self.contract.clone(), waiting })
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        self.handle.stop_serving(&self.contract);
    }
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requests").field("contract", &self.contract).finish_non_exhaustive()
    }
}

/// A request in hand. Dropped unanswered, it answers with the handler error `dropped`.
#[must_use = "dropped, it answers with an error"]
pub struct Request {
    handle: Handle,
    contract: Arc<str>,
    waiting: WaitingRequest,
}

impl Request {
    /// The sender. It cannot be forged.
    #[must_use]
    pub fn sender(&self) -> &str {
        &self.waiting.sender
    }

    /// The contract.
    #[must_use]
    pub fn contract(&self) -> &str {
        &self.contract
    }

    /// The operation of the contract.
    #[must_use]
    pub fn operation(&self) -> &str {
        &self.waiting.operation
    }

    /// The arguments.
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        &self.waiting.payload
    }

    /// Main's id of the message.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.waiting.message
    }

    /// The span of the request, if Main records it: for [`Peer::part_of`](crate::Peer::part_of).
    #[must_use]
    pub fn trace(&self) -> Option<TraceContext> {
        self.waiting.span
    }

    /// The time left for the answer. A later one is discarded.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.waiting.deadline.saturating_duration_since(Instant::now())
    }

    /// Whether the caller waits no more: its time is over, it has given up, or the session has ended.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.waiting.given_up.is_set()
    }

    /// Waits until the caller waits no more, so that a handler that takes long can stop then.
    pub async fn given_up(&self) {
        self.waiting.given_up.wait().await;
    }

    /// Answers, unless the caller has given up. Waits first while too much waits to be written. If the payload is too
    /// large, the caller gets the handler error `too-large`. What the caller makes of the answer is not told.
    pub async fn answer(self, answer: Result<impl Into<Bytes>, HandlerError>) {
        let request = self.waiting.number;
        let frame = match answer.map(Into::into) {
            Ok(payload) => match self.handle.check_size(payload.len()) {
                Ok(()) => FromPeer::Reply { request, payload },
                Err(error) => {
                    FromPeer::Fail { request, error: HandlerError::new(error.case(), error.to_string()) }
                }
            },
            Err(HandlerError { code, message }) => {
                FromPeer::Fail { request, error: HandlerError::new(code, message) }
            }
        };
        self.send(&frame).await;
    }

    /// Answers with one of Weir's own errors, as if Main had given it: for a program that passes requests on. A Main that
    /// speaks a version of the protocol before 3 gives the caller a handler's error with the name of the case.
    pub async fn refuse(self, error: Error) {
        let request = self.waiting.number;
        let frame = match error {
            Error::Handler(error) => FromPeer::Fail { request, error },
            error if self.handle.speaks_version_3() => FromPeer::Refuse { request, error },
            error => FromPeer::Fail { request, error: HandlerError::new(error.case(), error.to_string()) },
        };
        self.send(&frame).await;
    }

    /// Waits for room, and sends the answer. Sends nothing once the session has ended.
    async fn send(&self, answer: &FromPeer<'_>) {
        if self.handle.outgoing.room().await.is_ok() {
            self.settle(answer);
        }
    }

    /// Sends the answer, unless the caller has given up or has an answer.
    fn settle(&self, answer: &FromPeer<'_>) {
        let is_awaited = self.handle.tables().release(self.waiting.number);
        if is_awaited {
            self.handle.outgoing.push(answer);
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.settle(&not_answered(self.waiting.number));
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("contract", &self.contract)
            .field("operation", &self.waiting.operation)
            .field("sender", &self.waiting.sender)
            .finish_non_exhaustive()
    }
}
