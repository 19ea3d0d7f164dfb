//! The client for programs without async code.
//!
//! The types here mirror those of the crate, and each function blocks where the other is awaited. One thread, named
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
//! All functions that wait, other than [`Peer::connect`], panic on a thread that runs async code: there they would stop
//! other tasks.

mod driver;

use std::{fmt, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use weir_names::{Error, HandlerError, TraceContext};

use self::driver::Driver;
use crate::{ConnectError, Ended, Event, Options, Receipt};

/// Methods that wait for those of the same name in the async type.
macro_rules! waits {
    ($of:ident: $($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        #[doc = concat!("As [`crate::", stringify!($of), "::", stringify!($name), "`].")]
        ///
        /// # Errors
        #[doc = concat!("As [`crate::", stringify!($of), "::", stringify!($name), "`].")]
        pub fn $name(&self, $($argument: $type),*) -> $result {
            self.driver.wait(self.inner.$name($($argument),*))
        }
    )*};
}

/// Methods that give what those of the same name in the async type give.
macro_rules! gives {
    ($of:ident: $($name:ident -> $result:ty;)*) => {$(
        #[doc = concat!("As [`crate::", stringify!($of), "::", stringify!($name), "`].")]
        #[must_use]
        pub fn $name(&self) -> $result {
            self.inner.$name()
        }
    )*};
}

/// Implements `Debug` with the output of the async types.
macro_rules! debug {
    ($($of:ident),*) => {$(
        impl fmt::Debug for $of {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.inner.fmt(f)
            }
        }
    )*};
}

debug!(Peer, Queue, Job, Subscription, Requests, Request);

/// A session with Main, under the name of one peer: [`crate::Peer`] for programs without async code. Clones share it, also
/// between threads.
#[derive(Clone)]
pub struct Peer {
    // This field is dropped before the driver, whose drop waits for the session's end.
    inner: crate::Peer,
    driver: Arc<Driver>,
}

impl Peer {
    /// Connects, and starts the session's thread.
    ///
    /// # Errors
    /// Those of [`crate::Peer::connect`], and [`ConnectError::Io`] if no thread can be started.
    pub fn connect(path: impl AsRef<Path>, options: Options) -> Result<Self, ConnectError> {
        let (inner, driver) = Driver::start(path.as_ref(), options)?;
        Ok(Self { inner, driver: Arc::new(driver) })
    }

    waits! { Peer:
        call(contract: &str, operation: &str, payload: impl Into<Bytes>) -> Result<Bytes, Error>;
        call_within(timeout: Duration, contract: &str, operation: &str, payload: impl Into<Bytes>) -> Result<Bytes, Error>;
        describe(documents: impl Into<Bytes>) -> Result<(), Error>;
        publish(topic: &str, payload: impl Into<Bytes>) -> Result<Receipt, Error>;
        publish_to(receiver: &str, topic: &str, payload: impl Into<Bytes>) -> Result<Receipt, Error>;
        publish_after(lost: u64, topic: &str, payload: impl Into<Bytes>) -> Result<Receipt, Error>;
        announce(topic: &str, payload: impl Into<Bytes>) -> Result<(), Error>;
    }

    gives! { Peer:
        version -> u16;
        session -> u64;
        message_size -> u32;
        in_flight -> u32;
        subscriptions -> u32;
        ended -> Option<Ended>;
    }

    /// Calls an operation of a named provider in place of the owner of the contract, and waits for the answer no longer
    /// than `timeout`. The provider is an extension, a peer or `main`.
    ///
    /// # Errors
    /// Those of [`crate::Call::send`].
    pub fn call_provider(
        &self,
        provider: &str,
        timeout: Duration,
        contract: &str,
        operation: &str,
        payload: impl Into<Bytes>,
    ) -> Result<Bytes, Error> {
        let call = self.inner.operation(contract, operation).provider(provider).timeout(timeout);
        self.driver.wait(call.send(payload))
    }

    /// A handle of the session by which all that is called, published or put is part of this span: see
    /// [`crate::Peer::part_of`].
    #[must_use]
    pub fn part_of(&self, span: Option<TraceContext>) -> Self {
        Self { inner: self.inner.part_of(span), driver: self.driver.clone() }
    }

    /// Subscribes to the topics that match a pattern: see [`crate::Peer::subscribe`].
    ///
    /// # Errors
    /// Those of [`crate::Peer::subscribe`].
    pub fn subscribe(&self, pattern: &str) -> Result<Subscription, Error> {
        let inner = self.driver.wait(self.inner.subscribe(pattern))?;
        Ok(Subscription { inner, driver: self.driver.clone() })
    }

    /// A shared queue, to put jobs into and to take them from: see [`crate::Peer::queue`].
    ///
    /// # Errors
    /// Those of [`crate::Peer::queue`].
    pub fn queue(&self, name: &str) -> Result<Queue, Error> {
        Ok(Queue { inner: self.inner.queue(name)?, driver: self.driver.clone() })
    }

    /// Serves a contract from now on: see [`crate::Peer::serve`].
    ///
    /// # Errors
    /// Those of [`crate::Peer::serve`].
    pub fn serve(&self, contract: &str, operations: &[&str]) -> Result<Requests, Error> {
        let inner = self.driver.wait(self.inner.serve(contract, operations))?;
        Ok(Requests { inner, driver: self.driver.clone() })
    }

    /// Waits for the end of the session, and says why it ended.
    pub fn closed(&self) -> Ended {
        self.driver.wait(self.inner.closed())
    }

    /// Ends the session, and waits until what was sent before is written, for at most a second: see
    /// [`crate::Peer::leave`].
    pub fn leave(self) -> Ended {
        self.driver.wait(self.inner.leave())
    }
}

/// A shared queue: [`crate::Queue`] for programs without async code.
#[derive(Clone)]
pub struct Queue {
    inner: crate::Queue,
    driver: Arc<Driver>,
}

impl Queue {
    waits! { Queue:
        put(payload: impl Into<Bytes>) -> Result<u64, Error>;
        put_within(timeout: Duration, payload: impl Into<Bytes>) -> Result<u64, Error>;
        put_until_done(payload: impl Into<Bytes>) -> Result<(), Error>;
        put_until_done_after(deliveries: u32, payload: impl Into<Bytes>) -> Result<(), Error>;
    }

    /// Takes the next job, and waits for it without a time limit: see [`crate::Queue::take`].
    ///
    /// # Errors
    /// Those of [`crate::Queue::take`].
    pub fn take(&self) -> Result<Job, Error> {
        let inner = self.driver.wait(self.inner.take())?;
        Ok(Job { inner, driver: self.driver.clone() })
    }

    /// Takes the next job, and waits for it at most this long.
    ///
    /// # Errors
    /// [`Error::Timeout`], and those of [`crate::Queue::take`].
    pub fn take_within(&self, timeout: Duration) -> Result<Job, Error> {
        let inner = self.driver.wait_within(timeout, self.inner.take())??;
        Ok(Job { inner, driver: self.driver.clone() })
    }
}

/// A job in hand: [`crate::Job`] for programs without async code.
#[must_use = "dropped, it goes back to the queue"]
pub struct Job {
    inner: crate::Job,
    #[expect(dead_code, reason = "the session's thread lives as long as its values")]
    driver: Arc<Driver>,
}

impl Job {
    gives! { Job:
        trace -> Option<TraceContext>;
        payload -> &Bytes;
        sender -> &str;
        id -> u64;
        deliveries -> u32;
    }

    /// Says that the job is done: see [`crate::Job::done`].
    pub fn done(self) {
        self.inner.done();
    }
}

/// The events of a subscription: [`crate::Subscription`] for programs without async code.
#[must_use = "dropped, it ends the subscription"]
pub struct Subscription {
    inner: crate::Subscription,
    driver: Arc<Driver>,
}

impl Subscription {
    /// Waits for the next event: see [`crate::Subscription::next`].
    #[expect(clippy::should_implement_trait, reason = "mirrors an async type that is no iterator")]
    pub fn next(&mut self) -> Option<Event> {
        self.driver.wait(self.inner.next())
    }

    /// Waits for the next event, for at most this long.
    ///
    /// # Errors
    /// [`Error::Timeout`].
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<Event>, Error> {
        self.driver.wait_within(timeout, self.inner.next())
    }
}

/// The requests to a contract: [`crate::Requests`] for programs without async code.
#[must_use = "dropped, it refuses all requests"]
pub struct Requests {
    inner: crate::Requests,
    driver: Arc<Driver>,
}

impl Requests {
    /// Waits for the next request: see [`crate::Requests::next`].
    #[expect(clippy::should_implement_trait, reason = "mirrors an async type that is no iterator")]
    pub fn next(&mut self) -> Option<Request> {
        let inner = self.driver.wait(self.inner.next())?;
        Some(Request { inner, driver: self.driver.clone() })
    }

    /// Waits for the next request, for at most this long.
    ///
    /// # Errors
    /// [`Error::Timeout`].
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<Request>, Error> {
        let next = self.driver.wait_within(timeout, self.inner.next())?;
        Ok(next.map(|inner| Request { inner, driver: self.driver.clone() }))
    }
}

/// A request in hand: [`crate::Request`] for programs without async code.
#[must_use = "dropped, it answers with an error"]
pub struct Request {
    inner: crate::Request,
    driver: Arc<Driver>,
}

impl Request {
    gives! { Request:
        sender -> &str;
        contract -> &str;
        operation -> &str;
        payload -> &Bytes;
        id -> u64;
        trace -> Option<TraceContext>;
        remaining -> Duration;
        is_given_up -> bool;
    }

    /// Answers the request: see [`crate::Request::answer`].
    pub fn answer(self, answer: Result<impl Into<Bytes>, HandlerError>) {
        let Self { inner, driver } = self;
        driver.wait(inner.answer(answer));
    }

    /// Answers with one of Weir's own errors: see [`crate::Request::refuse`].
    pub fn refuse(self, error: Error) {
        let Self { inner, driver } = self;
        driver.wait(inner.refuse(error));
    }
}
