//! Requests of the embedding program.

use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::task::coop::cooperative;
use weir_bus::{Error, PendingCall, SentCall, Target};
use weir_schedule::{note_wait, switch};

use super::{CallOptions, Client};

/// An operation, looked up once. Threads may share it; those that call often should each clone it.
#[derive(Debug)]
pub struct ClientOperation {
    client: Client,
    /// Locked while a request is sent, never while waiting for the answer.
    target: Mutex<Target>,
}

impl Clone for ClientOperation {
    fn clone(&self) -> Self {
        Self::new(self.client.clone(), self.target.lock().clone())
    }
}

impl ClientOperation {
    pub(super) fn new(client: Client, target: Target) -> Self {
        Self { client, target: Mutex::new(target) }
    }

    /// Calls the operation and waits for the answer.
    ///
    /// # Errors
    ///
    /// Any case of [`Error`], as for [`Client::call`](crate::Client::call).
    pub async fn call(&self, payload: impl Into<Bytes>) -> Result<Bytes, Error> {
        self.call_with(payload, CallOptions::default()).await
    }

    /// [`call`](Self::call), waiting at most `timeout` for the answer.
    ///
    /// # Errors
    ///
    /// Any case of [`Error`], as for [`call`](Self::call).
    pub async fn call_within(&self, timeout: Duration, payload: impl Into<Bytes>) -> Result<Bytes, Error> {
        self.call_with(payload, CallOptions::default().timeout(timeout)).await
    }

    /// [`call`](Self::call) with options. The provider is the one that was looked up.
    ///
    /// # Errors
    ///
    /// Any case of [`Error`], as for [`call`](Self::call).
    pub async fn call_with(&self, payload: impl Into<Bytes>, options: CallOptions) -> Result<Bytes, Error> {
        let _room = self.client.room()?;
        let payload = payload.into();
        answer(&self.client, &options, || send(&self.client, &mut self.target.lock(), payload, &options))
            .await
    }
}

pub(super) fn send(
    client: &Client,
    target: &mut Target,
    payload: Bytes,
    options: &CallOptions,
) -> Result<SentCall, Error> {
    let Client { bus, peer, .. } = client;
    if options.kill_on_drop && client.roster.is_none() {
        return Err(Error::PermissionDenied("only the embedding program ends the work for a call".into()));
    }
    let term = bus.term(target, options.timeout, client.parent(options.trace.as_ref()));
    note_wait(term.sent);
    bus.call(peer, target, payload.into(), term, false)
        .map_err(|error| client.explained(error, target.receiver()))
}

/// Sends a request with `send`, lets the called extension run, and waits for its answer.
pub(super) async fn answer(
    client: &Client,
    options: &CallOptions,
    send: impl FnOnce() -> Result<SentCall, Error>,
) -> Result<Bytes, Error> {
    let (sent, _) = switch(send);
    outcome(client, &mut watched(client, options, sent?)).await
}

/// Gives a request that was sent its deadline.
#[inline]
pub(super) fn watched(client: &Client, options: &CallOptions, sent: SentCall) -> PendingCall {
    if options.kill_on_drop {
        sent.set_killing();
    }
    let pending = client.bus.watch(sent);
    if options.is_unanswered && !options.kill_on_drop { pending.unanswered() } else { pending }
}

/// Waits for the answer to a request that was sent.
pub(super) async fn outcome(client: &Client, pending: &mut PendingCall) -> Result<Bytes, Error> {
    // An answer that is there at once must not keep others from the thread for ever.
    let answer = cooperative(pending.outcome()).await;
    answer.map_err(|error| match error {
        Error::PeerGone if client.bus.is_closed() => Error::Ended,
        error => error,
    })
}
