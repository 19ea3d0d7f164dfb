//! Requests of the embedding program.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::task::coop::cooperative;
use weir_bus::{Bus, Error, SentCall, Target};
use weir_schedule::{note_wait, switch};

/// An operation, looked up once. Threads may share it; those that call often should each clone it.
#[derive(Debug)]
pub struct ClientOperation {
    bus: Arc<Bus>,
    /// Locked while a request is sent, never while waiting for the answer.
    target: Mutex<Target>,
}

impl Clone for ClientOperation {
    fn clone(&self) -> Self {
        Self::new(self.bus.clone(), self.target().clone())
    }
}

impl ClientOperation {
    pub(super) fn new(bus: Arc<Bus>, target: Target) -> Self {
        Self { bus, target: Mutex::new(target) }
    }

    /// Calls it and waits for the answer.
    ///
    /// # Errors
    ///
    /// As [`Client::call`](crate::Client::call).
    pub async fn call(&self, payload: impl Into<Bytes>) -> Result<Bytes, Error> {
        answer(&self.bus, || send(&self.bus, &mut self.target(), payload.into(), None)).await
    }

    /// [`call`](Self::call), waiting at most `timeout` for the answer.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub async fn call_within(&self, timeout: Duration, payload: impl Into<Bytes>) -> Result<Bytes, Error> {
        answer(&self.bus, || send(&self.bus, &mut self.target(), payload.into(), Some(timeout))).await
    }

    fn target(&self) -> MutexGuard<'_, Target> {
        self.target.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn send(
    bus: &Bus,
    target: &mut Target,
    payload: Bytes,
    timeout: Option<Duration>,
) -> Result<SentCall, Error> {
    let term = bus.term(target, timeout, None);
    note_wait(term.sent.into_std());
    bus.call(bus.main(), target, payload, term, false)
}

/// Sends, lets the called extension run, and waits for its answer.
pub(super) async fn answer(
    bus: &Bus,
    send: impl FnOnce() -> Result<SentCall, Error>,
) -> Result<Bytes, Error> {
    let (sent, _) = switch(send);
    let pending = bus.watch(sent?);
    // An answer that is there at once must not keep others from the thread for ever.
    cooperative(pending.answer()).await
}
