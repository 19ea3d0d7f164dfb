//! Events and requests for programs without async code.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use weir_names::{Error, HandlerError, TraceContext};

use super::driver::Driver;
use crate::Event;

/// As [`crate::Subscription`].
#[must_use = "dropped, it ends the subscription"]
pub struct Subscription {
    subscription: crate::Subscription,
    driver: Arc<Driver>,
}

impl Subscription {
    pub(super) fn new(subscription: crate::Subscription, driver: Arc<Driver>) -> Self {
        Self { subscription, driver }
    }

    /// As [`crate::Subscription::next`].
    #[expect(clippy::should_implement_trait, reason = "as the async one, which is no iterator")]
    pub fn next(&mut self) -> Option<Event> {
        self.driver.wait(self.subscription.next())
    }

    /// As [`next`](Self::next), for at most this long.
    ///
    /// # Errors
    /// [`Error::Timeout`].
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<Event>, Error> {
        self.driver.wait_within(timeout, self.subscription.next())
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.subscription.fmt(f)
    }
}

/// As [`crate::Requests`].
#[must_use = "dropped, it refuses all requests"]
pub struct Requests {
    requests: crate::Requests,
    driver: Arc<Driver>,
}

impl Requests {
    pub(super) fn new(requests: crate::Requests, driver: Arc<Driver>) -> Self {
        Self { requests, driver }
    }

    /// As [`crate::Requests::next`].
    #[expect(clippy::should_implement_trait, reason = "as the async one, which is no iterator")]
    pub fn next(&mut self) -> Option<Request> {
        let request = self.driver.wait(self.requests.next())?;
        Some(Request { request, driver: self.driver.clone() })
    }

    /// As [`next`](Self::next), for at most this long.
    ///
    /// # Errors
    /// [`Error::Timeout`].
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<Request>, Error> {
        let request = self.driver.wait_within(timeout, self.requests.next())?;
        Ok(request.map(|request| Request { request, driver: self.driver.clone() }))
    }
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.requests.fmt(f)
    }
}

/// As [`crate::Request`].
#[must_use = "dropped, it answers with an error"]
pub struct Request {
    request: crate::Request,
    driver: Arc<Driver>,
}

impl Request {
    /// The sender. It cannot be forged.
    #[must_use]
    pub fn sender(&self) -> &str {
        self.request.sender()
    }

    /// The contract.
    #[must_use]
    pub fn contract(&self) -> &str {
        self.request.contract()
    }

    /// The operation of the contract.
    #[must_use]
    pub fn operation(&self) -> &str {
        self.request.operation()
    }

    /// The arguments.
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        self.request.payload()
    }

    /// Main's id of the message.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.request.id()
    }

    /// As [`crate::Request::trace`].
    #[must_use]
    pub fn trace(&self) -> Option<TraceContext> {
        self.request.trace()
    }

    /// The time left for the answer. A later one is discarded.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.request.remaining()
    }

    /// As [`crate::Request::is_given_up`].
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.request.is_given_up()
    }

    /// As [`crate::Request::answer`].
    pub fn answer(self, answer: Result<impl Into<Bytes>, HandlerError>) {
        let Self { request, driver } = self;
        driver.wait(request.answer(answer));
    }

    /// As [`crate::Request::refuse`].
    pub fn refuse(self, error: Error) {
        let Self { request, driver } = self;
        driver.wait(request.refuse(error));
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.request.fmt(f)
    }
}
