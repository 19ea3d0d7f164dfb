//! What a handler can reach: other contracts, topics, its caller, time and configuration.

use std::{cell::Cell, fmt, rc::Rc, time::Duration};

use serde::Serialize;

use crate::{
    Contract, Error, Operation, Receipt,
    codec::{Decode, Encode},
    host::{MessageId, Options, Peer},
    link::Link,
};

/// What a handler can reach beside its own extension.
///
/// ```
/// # use weir_sdk::{Context, Contract, Error, Operation};
/// # const UPTIME: Operation<(), f64> = Contract::new("device.info@1").operation("uptime");
/// # struct Greeter;
/// impl Greeter {
///     async fn greet(&self, ctx: &Context, name: String) -> Result<String, Error> {
///         let seconds = ctx.call(UPTIME, &()).await?;
///         ctx.publish("greeter.greeted", &name)?;
///         Ok(format!("hello {name}, I am up since {seconds} s"))
///     }
/// }
/// ```
pub struct Context {
    link: Rc<Link>,
    origin: Origin,
}

/// How a call differs from the usual one.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallOptions<'a> {
    timeout: Option<Duration>,
    provider: Option<&'a str>,
}

/// What a handler runs for.
#[derive(Debug)]
pub(crate) enum Origin {
    Request(Rc<InHand>),
    Event(Peer),
    Itself,
}

/// A request that is being handled.
#[derive(Debug)]
pub(crate) struct InHand {
    pub(crate) id: MessageId,
    pub(crate) sender: Peer,
    /// The time left for the answer when it was received.
    pub(crate) remaining: Duration,
    /// When it was received; set once that matters, so that quick handlers need no clock.
    pub(crate) received: Cell<Option<Duration>>,
}

impl InHand {
    /// When the time is over, once it is known when the request was received.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        Some(self.received.get()?.saturating_add(self.remaining))
    }
}

impl Context {
    pub(crate) fn new(link: Rc<Link>, origin: Origin) -> Self {
        Self { link, origin }
    }

    /// Calls another contract and waits for the answer; meanwhile this extension serves other
    /// requests.
    ///
    /// A call made for a request has at most the time that is left for that request. Dropping the
    /// future cancels the call.
    ///
    /// # Errors
    /// Those of [`Error`], among them the provider's own as [`Error::Handler`]; the code
    /// `invalid-answer` if the answer is not what the contract says.
    pub async fn call<A, R, C>(&self, operation: Operation<A, R, C>, args: &A) -> Result<R, Error>
    where
        C: Encode<A> + Decode<R>,
    {
        self.call_with(operation, args, CallOptions::new()).await
    }

    /// [`call`](Self::call) with a timeout of its own, or to one provider by name.
    ///
    /// # Errors
    /// As `call`.
    pub async fn call_with<A, R, C>(
        &self,
        operation: Operation<A, R, C>,
        args: &A,
        options: CallOptions<'_>,
    ) -> Result<R, Error>
    where
        C: Encode<A> + Decode<R>,
    {
        let payload = C::encode(args)?;
        let answer = self.send(operation.contract(), operation.name(), &payload, options).await?;
        C::decode(answer)
            .map_err(|error| Error::handler("invalid-answer", format_args!("`{operation}`: {error}")))
    }

    /// Publishes an event, as JSON, to all who have subscribed to its topic.
    ///
    /// # Errors
    /// `PermissionDenied` if `publishes` does not cover the topic, `TooLarge`, or `Invalid`.
    pub fn publish<T: Serialize + ?Sized>(&self, topic: &str, value: &T) -> Result<Receipt, Error> {
        self.publish_bytes(topic, &serde_json::to_vec(value)?)
    }

    /// Publishes an event whose payload is bytes as they are.
    ///
    /// # Errors
    /// As `publish`.
    pub fn publish_bytes(&self, topic: &str, payload: &[u8]) -> Result<Receipt, Error> {
        self.link.host.publish(None, topic, payload)
    }

    /// Publishes an event, as JSON, to one extension alone, which must have subscribed to its topic.
    ///
    /// # Errors
    /// As `publish`, and `NoProvider` if the extension does not run or has not subscribed.
    pub fn publish_to<T: Serialize + ?Sized>(
        &self,
        extension: &str,
        topic: &str,
        value: &T,
    ) -> Result<Receipt, Error> {
        self.link.host.publish(Some(extension), topic, &serde_json::to_vec(value)?)
    }

    /// Subscribes to a pattern that is only known now, from the configuration perhaps; its events
    /// reach the handler given to [`on_any_event`](crate::Extension::on_any_event).
    ///
    /// # Errors
    /// `PermissionDenied` if `subscribes` does not cover the pattern, `Invalid`, or
    /// `LimitExceeded`.
    pub fn subscribe(&self, pattern: &str) -> Result<(), Error> {
        self.link.subscribe(pattern).map(drop)
    }

    /// The id of the extension that sent the request or event in hand, or `main`. Main vouches for
    /// it.
    #[must_use]
    pub fn sender(&self) -> Option<String> {
        let peer = match &self.origin {
            Origin::Request(request) => request.sender,
            Origin::Event(peer) => *peer,
            Origin::Itself => return None,
        };
        self.link.host.name_of(peer)
    }

    /// The time left to answer the request in hand. None where there is none.
    ///
    /// Past it the caller has been told `timeout`, and the handler is dropped where it waits.
    #[must_use]
    pub fn remaining(&self) -> Option<Duration> {
        let Origin::Request(request) = &self.origin else {
            return None;
        };
        let now = self.link.host.now();
        request.received.set(request.received.get().or(Some(now)));
        Some(request.deadline()?.saturating_sub(now))
    }

    /// Waits; meanwhile this extension serves other requests.
    pub async fn sleep(&self, duration: Duration) {
        self.link.host.sleep(duration).await;
    }

    /// A value of this extension's `config` table in the operator's file.
    ///
    /// # Errors
    /// The code `config` if Main cannot say.
    pub fn config(&self, key: &str) -> Result<Option<String>, Error> {
        self.link.host.config(key)
    }

    /// The id under which the operator runs this extension.
    #[must_use]
    pub fn own_name(&self) -> String {
        self.link.host.own_name()
    }

    /// Declares that this extension serves again, after [`interrupted`](Self::interrupted). Before
    /// the first request this is done for you.
    pub fn ready(&self) {
        self.link.host.ready();
    }

    /// Declares that this extension cannot serve for now, and why: requests to it fail with
    /// `not-ready` until [`ready`](Self::ready).
    pub fn interrupted(&self, reason: &str) {
        self.link.host.interrupted(reason);
    }

    async fn send(
        &self,
        contract: Contract,
        operation: &'static str,
        payload: &[u8],
        options: CallOptions<'_>,
    ) -> Result<Vec<u8>, Error> {
        let parent = match &self.origin {
            Origin::Request(request) => Some(request.id),
            _ => None,
        };
        let timeout_ms = options.timeout.map(|timeout| {
            // Main counts from 1: nothing left is over after the least that there is.
            u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX).max(1)
        });
        let wit = Options { timeout_ms, parent };
        self.link.call((contract, operation), options.provider, payload, wit).await
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl<'a> CallOptions<'a> {
    /// The operator's default timeout, and whoever owns the contract.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits for this long at most, in whole milliseconds, from 1.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// Calls this extension, or `main`, whoever owns the contract.
    #[must_use]
    pub fn provider(self, id: &'a str) -> Self {
        Self { provider: Some(id), ..self }
    }
}
