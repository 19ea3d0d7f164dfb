//! The client for programs without async code.
//!
//! What is here is as in the crate's own types, and each function waits where the other is awaited. One thread, named
//! `weir-peer`, reads and writes for a session. It ends with the last of the session's values, once what was sent before is
//! written, for at most a second.
//!
//! ```no_run
//! use weir_peer::{HandlerError, Options, blocking::Peer};
//!
//! # fn read_sensor() -> Vec<u8> { Vec::new() }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let peer = Peer::connect("/run/weir/peers.sock", Options::new("sidecar:thermal".parse()?))?;
//! let mut requests = peer.serve("thermal@1", &["read"])?;
//! while let Some(request) = requests.next() {
//!     let answer = match request.operation() {
//!         "read" => Ok(read_sensor()),
//!         other => Err(HandlerError::new("unknown", other)),
//!     };
//!     request.answer(answer);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Panics
//! All functions panic on a thread that runs async code: there they would stop other tasks.

mod driver;
mod queue;
mod streams;

use std::{fmt, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use weir_names::{Error, TraceContext};

use self::driver::Driver;
pub use self::{
    queue::{Job, Queue},
    streams::{Request, Requests, Subscription},
};
use crate::{ConnectError, Ended, Options, Receipt};

/// A session with Main, under the name of one peer: [`crate::Peer`] for programs without async code. Clones share it, also
/// between threads.
#[derive(Clone)]
pub struct Peer {
    // Dropped before the driver, which waits for the session's end.
    peer: crate::Peer,
    driver: Arc<Driver>,
}

impl Peer {
    /// Connects, and starts the session's thread.
    ///
    /// # Errors
    /// As [`crate::Peer::connect`], or if no thread can be started.
    pub fn connect(path: impl AsRef<Path>, options: Options) -> Result<Self, ConnectError> {
        let (peer, driver) = Driver::start(path.as_ref(), options)?;
        Ok(Self { peer, driver: Arc::new(driver) })
    }

    /// As [`crate::Peer::call`].
    ///
    /// # Errors
    /// As [`crate::Call::send`].
    pub fn call(&self, contract: &str, operation: &str, payload: impl Into<Bytes>) -> Result<Bytes, Error> {
        self.driver.wait(self.peer.call(contract, operation, payload))
    }

    /// As [`crate::Peer::call_within`].
    ///
    /// # Errors
    /// As [`crate::Call::send`].
    pub fn call_within(
        &self,
        timeout: Duration,
        contract: &str,
        operation: &str,
        payload: impl Into<Bytes>,
    ) -> Result<Bytes, Error> {
        self.driver.wait(self.peer.call_within(timeout, contract, operation, payload))
    }

    /// As [`crate::Peer::call_within`], of a named provider in place of the owner of the contract.
    ///
    /// # Errors
    /// As [`crate::Call::send`].
    pub fn call_provider(
        &self,
        provider: &str,
        timeout: Duration,
        contract: &str,
        operation: &str,
        payload: impl Into<Bytes>,
    ) -> Result<Bytes, Error> {
        let call = self.peer.operation(contract, operation).provider(provider).timeout(timeout);
        self.driver.wait(call.send(payload))
    }

    /// As [`crate::Peer::version`].
    #[must_use]
    pub fn version(&self) -> u16 {
        self.peer.version()
    }

    /// As [`crate::Peer::describe`].
    ///
    /// # Errors
    /// As [`crate::Peer::describe`].
    pub fn describe(&self, documents: impl Into<Bytes>) -> Result<(), Error> {
        self.driver.wait(self.peer.describe(documents))
    }

    /// As [`crate::Peer::part_of`].
    #[must_use]
    pub fn part_of(&self, span: Option<TraceContext>) -> Self {
        Self { peer: self.peer.part_of(span), driver: self.driver.clone() }
    }

    /// As [`crate::Peer::publish`].
    ///
    /// # Errors
    /// As [`crate::Peer::publish`].
    pub fn publish(&self, topic: &str, payload: impl Into<Bytes>) -> Result<Receipt, Error> {
        self.driver.wait(self.peer.publish(topic, payload))
    }

    /// As [`crate::Peer::publish_to`].
    ///
    /// # Errors
    /// As [`crate::Peer::publish_to`].
    pub fn publish_to(
        &self,
        receiver: &str,
        topic: &str,
        payload: impl Into<Bytes>,
    ) -> Result<Receipt, Error> {
        self.driver.wait(self.peer.publish_to(receiver, topic, payload))
    }

    /// As [`crate::Peer::publish_after`].
    ///
    /// # Errors
    /// As [`crate::Peer::publish_after`].
    pub fn publish_after(&self, lost: u64, topic: &str, payload: impl Into<Bytes>) -> Result<Receipt, Error> {
        self.driver.wait(self.peer.publish_after(lost, topic, payload))
    }

    /// As [`crate::Peer::announce`].
    ///
    /// # Errors
    /// As [`crate::Peer::announce`].
    pub fn announce(&self, topic: &str, payload: impl Into<Bytes>) -> Result<(), Error> {
        self.driver.wait(self.peer.announce(topic, payload))
    }

    /// As [`crate::Peer::subscribe`].
    ///
    /// # Errors
    /// As [`crate::Peer::subscribe`].
    pub fn subscribe(&self, pattern: &str) -> Result<Subscription, Error> {
        let subscription = self.driver.wait(self.peer.subscribe(pattern))?;
        Ok(Subscription::new(subscription, self.driver.clone()))
    }

    /// As [`crate::Peer::queue`].
    ///
    /// # Errors
    /// As [`crate::Peer::queue`].
    pub fn queue(&self, name: &str) -> Result<Queue, Error> {
        Ok(Queue::new(self.peer.queue(name)?, self.driver.clone()))
    }

    /// As [`crate::Peer::serve`].
    ///
    /// # Errors
    /// As [`crate::Peer::serve`].
    pub fn serve(&self, contract: &str, operations: &[&str]) -> Result<Requests, Error> {
        let requests = self.driver.wait(self.peer.serve(contract, operations))?;
        Ok(Requests::new(requests, self.driver.clone()))
    }

    /// As [`crate::Peer::in_flight`].
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.peer.in_flight()
    }

    /// As [`crate::Peer::subscriptions`].
    #[must_use]
    pub fn subscriptions(&self) -> u32 {
        self.peer.subscriptions()
    }

    /// Waits for the end of the session, and says why it ended.
    pub fn closed(&self) -> Ended {
        self.driver.wait(self.peer.closed())
    }

    /// Why the session ended; `None` while it goes on.
    #[must_use]
    pub fn ended(&self) -> Option<Ended> {
        self.peer.ended()
    }

    /// As [`crate::Peer::leave`].
    pub fn leave(self) -> Ended {
        self.driver.wait(self.peer.leave())
    }

    /// Main's number of the session, as its log lines show it.
    #[must_use]
    pub fn session(&self) -> u64 {
        self.peer.session()
    }

    /// Bytes of the largest payload, either way.
    #[must_use]
    pub fn message_size(&self) -> u32 {
        self.peer.message_size()
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.peer.fmt(f)
    }
}
