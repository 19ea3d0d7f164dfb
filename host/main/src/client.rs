//! Calls, events, subscriptions and queues of the embedding program: as Main, or as a peer in a session.

mod call;
mod operation;
mod options;
mod queue;
mod subscriber;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use weir_bus::{Bus, Error, Parent, Peer, SpanOrigin, Target};
pub use weir_bus::{MessageId, PeerId, Receipt};
use weir_names::{
    Operation, TraceContext,
    codec::{Decode, Encode},
};
use weir_supervisor::Roster;

use self::operation::{answer, send, watched};
pub(crate) use self::subscriber::received;
pub use self::{
    call::{Call, CallError},
    operation::ClientOperation,
    options::{CallOptions, PublishOptions, PutOptions, SubscribeOptions},
    queue::{Job, Queue},
    subscriber::{ReceivedEvent, Subscriber},
};
use crate::peers::Live;

/// Calls, publishes and subscribes, as Main or as a peer with grants of its own. Cheap to clone. Works on any thread
/// and any async runtime, or without one: see [`blocking`](crate::blocking).
///
/// As a peer, it fails with [`Error::PermissionDenied`] without a grant, with [`Error::LimitExceeded`] for more messages
/// under way than `limits.in-flight`, and with [`Error::PeerGone`] after the end of its session. All of it fails with
/// [`Error::Ended`] after the end of Main.
#[derive(Clone, Debug)]
pub struct Client {
    bus: Arc<Bus>,
    peer: Arc<Peer>,
    session: Option<Arc<Live>>,
    /// Where Main finds why extensions failed. A peer has none, because it may not know.
    roster: Option<Arc<Roster>>,
}

impl Client {
    pub(crate) fn new(bus: Arc<Bus>) -> Self {
        Self { peer: bus.main().clone(), bus, session: None, roster: None }
    }

    pub(crate) fn of_main(bus: Arc<Bus>, roster: Arc<Roster>) -> Self {
        Self { roster: Some(roster), ..Self::new(bus) }
    }

    pub(crate) fn of_session(bus: Arc<Bus>, session: Arc<Live>) -> Self {
        Self { peer: session.peer.clone(), bus, session: Some(session), roster: None }
    }

    /// Takes room for one more message under way, which is bounded in a session and not for Main. Fails if Main has
    /// ended.
    fn room(&self) -> Result<Option<OwnedSemaphorePermit>, Error> {
        self.alive()?;
        let Some(session) = &self.session else { return Ok(None) };
        session.room.clone().try_acquire_owned().map(Some).map_err(|refused| match refused {
            tokio::sync::TryAcquireError::Closed => Error::PeerGone,
            tokio::sync::TryAcquireError::NoPermits => {
                let allowed = session.limits.in_flight.into();
                Error::LimitExceeded { name: "in-flight".into(), used: allowed + 1, allowed }
            }
        })
    }

    /// Fails if Main has ended.
    fn alive(&self) -> Result<(), Error> {
        if self.bus.is_closed() { Err(Error::Ended) } else { Ok(()) }
    }

    fn open(&self, contract: &str, operation: &str, provider: Option<&str>) -> Result<Target, Error> {
        self.alive()?;
        self.bus.open(&self.peer, contract, operation, provider)
    }

    /// Calls an operation of a contract and waits for the answer.
    ///
    /// Dropping the future gives up the call; a later answer is discarded.
    ///
    /// # Errors
    ///
    /// Any case of [`Error`]; [`Error::Handler`] is the provider's own.
    pub async fn call(
        &self,
        contract: &str,
        operation: &str,
        payload: impl Into<Bytes>,
    ) -> Result<Bytes, Error> {
        self.call_with(contract, operation, payload, CallOptions::default()).await
    }

    /// [`call`](Self::call) with options, such as a timeout or a named provider.
    ///
    /// # Errors
    ///
    /// Any case of [`Error`], as for [`call`](Self::call).
    pub async fn call_with(
        &self,
        contract: &str,
        operation: &str,
        payload: impl Into<Bytes>,
        options: CallOptions,
    ) -> Result<Bytes, Error> {
        let mut target = self.open(contract, operation, options.provider.as_deref())?;
        let _room = self.room()?;
        answer(self, &options, || send(self, &mut target, payload.into(), &options)).await
    }

    /// Sends a request, and returns it under way: with its number, and with the failure that may end it.
    ///
    /// ```no_run
    /// use weir_host::{CallOptions, Client, Error};
    ///
    /// async fn scale(client: &Client, image: Vec<u8>) -> Result<bytes::Bytes, Error> {
    ///     let mut call = client.begin("images@1", "scale", image, CallOptions::default())?;
    ///     call.answer().await.map_err(|failed| {
    ///         if let Some(failure) = &failed.failure {
    ///             eprintln!("request {}: {}, in {:?}", failed.message, failure.cause, failure.trace);
    ///         }
    ///         failed.into()
    ///     })
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// Any case of [`Error`] for a request that was not sent.
    pub fn begin(
        &self,
        contract: &str,
        operation: &str,
        payload: impl Into<Bytes>,
        options: CallOptions,
    ) -> Result<Call, Error> {
        let mut target = self.open(contract, operation, options.provider.as_deref())?;
        let room = self.room()?;
        let sent = send(self, &mut target, payload.into(), &options)?;
        Ok(Call::new(self.clone(), watched(self, &options, sent), room))
    }

    /// Bytes of the largest payload that the present provider accepts.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownContract`], [`Error::NoProvider`] or [`Error::Invalid`].
    pub fn max_request(&self, contract: &str, operation: &str, options: &CallOptions) -> Result<u64, Error> {
        Ok(self.open(contract, operation, options.provider.as_deref())?.max_request())
    }

    /// Calls an operation declared in a crate of contracts, with Rust values.
    ///
    /// ```no_run
    /// use serde::{Deserialize, Serialize};
    /// use weir_host::{Client, Contract, Error, Operation};
    ///
    /// #[derive(Serialize)]
    /// struct Name {
    ///     name: String,
    /// }
    ///
    /// #[derive(Deserialize)]
    /// struct Greeting {
    ///     text: String,
    /// }
    ///
    /// const GREET: Operation<Name, Greeting> = Contract::new("greeter@1").operation("greet");
    ///
    /// async fn greet(client: &Client, name: String) -> Result<String, Error> {
    ///     let Greeting { text } = client.call_typed(GREET, &Name { name }).await?;
    ///     Ok(text)
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// Any case of [`Error`], as for [`call`](Self::call). [`Error::Invalid`] also means that the arguments cannot be
    /// encoded or the answer cannot be decoded.
    pub async fn call_typed<A, R, C>(&self, operation: Operation<A, R, C>, arguments: &A) -> Result<R, Error>
    where
        C: Encode<A> + Decode<R>,
    {
        self.call_typed_with(operation, arguments, CallOptions::default()).await
    }

    /// [`call_typed`](Self::call_typed) with options, such as a timeout or a named provider.
    ///
    /// # Errors
    ///
    /// Any case of [`Error`], as for [`call_typed`](Self::call_typed).
    pub async fn call_typed_with<A, R, C>(
        &self,
        operation: Operation<A, R, C>,
        arguments: &A,
        options: CallOptions,
    ) -> Result<R, Error>
    where
        C: Encode<A> + Decode<R>,
    {
        let no_encoding =
            |error| Error::Invalid(format!("the arguments of `{operation}` cannot be encoded: {error}"));
        let no_decoding =
            |error| Error::Invalid(format!("the answer of `{operation}` cannot be decoded: {error}"));
        let payload = C::encode(arguments).map_err(no_encoding)?.into_owned();
        let answer = self.call_with(operation.contract().name(), operation.name(), payload, options).await?;
        C::decode(answer.into()).map_err(no_decoding)
    }

    /// Looks up an operation once, for many calls of it.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownContract`], [`Error::NoProvider`] or [`Error::Invalid`].
    pub fn operation(&self, contract: &str, operation: &str) -> Result<ClientOperation, Error> {
        self.operation_of(None, contract, operation)
    }

    /// Looks up an operation of a named provider, or of the contract's owner if `provider` is `None`.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownContract`], [`Error::NoProvider`] or [`Error::Invalid`].
    pub fn operation_of(
        &self,
        provider: Option<&str>,
        contract: &str,
        operation: &str,
    ) -> Result<ClientOperation, Error> {
        Ok(ClientOperation::new(self.clone(), self.open(contract, operation, provider)?))
    }

    /// Publishes an event, and returns how many subscriptions got it.
    ///
    /// Subscriptions with room get the event on the first poll. If one is full and its policy is `block`, the future
    /// waits for room, up to `[main] request-timeout`, and holds the payload in memory: bound how many such futures
    /// you run.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if `topic` is not well formed, and [`Error::TooLarge`] if the payload of a peer exceeds its
    /// `limits.message-size`.
    pub async fn publish(&self, topic: &str, payload: impl Into<Bytes>) -> Result<Receipt, Error> {
        self.publish_with(topic, payload, PublishOptions::default()).await
    }

    /// [`publish`](Self::publish), waiting at most `timeout` for room.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] or [`Error::TooLarge`], as for [`publish`](Self::publish).
    pub async fn publish_within(
        &self,
        timeout: Duration,
        topic: &str,
        payload: impl Into<Bytes>,
    ) -> Result<Receipt, Error> {
        let options = PublishOptions { timeout: Some(timeout), ..PublishOptions::default() };
        self.publish_with(topic, payload, options).await
    }

    /// [`publish`](Self::publish) with options, such as a timeout or one receiver.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] or [`Error::TooLarge`], as for [`publish`](Self::publish). If `options` name one receiver,
    /// also the other errors of [`publish_to`](Self::publish_to).
    pub async fn publish_with(
        &self,
        topic: &str,
        payload: impl Into<Bytes>,
        options: PublishOptions,
    ) -> Result<Receipt, Error> {
        let _room = self.room()?;
        let PublishOptions { timeout, to, trace, lost } = options;
        let parent = Parent { counted: lost, ..self.parent(trace.as_ref()) };
        let publishing =
            self.bus.publish(&self.peer, to.as_deref(), topic, payload.into(), (timeout, parent))?;
        publishing.receipt().await
    }

    /// Publishes an event to one extension alone.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] or [`Error::TooLarge`], as for [`publish`](Self::publish). [`Error::NoProvider`] if the
    /// extension does not run or has not subscribed, and [`Error::Overloaded`] or [`Error::Timeout`] if it has no room.
    pub async fn publish_to(
        &self,
        extension: &str,
        topic: &str,
        payload: impl Into<Bytes>,
    ) -> Result<Receipt, Error> {
        let options = PublishOptions { to: Some(extension.to_owned()), ..PublishOptions::default() };
        self.publish_with(topic, payload, options).await
    }

    /// Subscribes to every topic that matches `pattern`. Retained values come first. Up to 256 events or 2 MiB wait
    /// unread; after that the oldest are lost, and counted. A peer's grant sets other bounds and another policy.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if the pattern is not well formed, [`Error::LimitExceeded`] for the 257th subscription.
    pub fn subscribe(&self, pattern: &str) -> Result<Subscriber, Error> {
        self.subscribe_with(pattern, SubscribeOptions::default())
    }

    /// [`subscribe`](Self::subscribe) with another capacity or policy. A peer keeps the policy of its grant, and has no
    /// more capacity than that.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] or [`Error::LimitExceeded`], as for [`subscribe`](Self::subscribe).
    pub fn subscribe_with(&self, pattern: &str, options: SubscribeOptions) -> Result<Subscriber, Error> {
        self.alive()?;
        Subscriber::new(self, pattern, options)
    }

    /// The last values of retained topics that match `pattern`, in no order.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if the pattern is not well formed.
    pub fn retained(&self, pattern: &str) -> Result<Vec<ReceivedEvent>, Error> {
        self.alive()?;
        let events = self.bus.retained(&self.peer, pattern)?;
        Ok(events.iter().map(|event| received(&self.bus, event)).collect())
    }

    /// Opens a shared queue, to put and take jobs.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if no such queue is configured.
    pub fn queue(&self, name: &str) -> Result<Queue, Error> {
        self.alive()?;
        Ok(Queue::new(self.clone(), self.bus.open_queue(&self.peer, name)?))
    }

    /// Requests waiting for an answer now, from all peers.
    #[must_use]
    pub fn waiters(&self) -> usize {
        self.bus.waiters()
    }

    /// Adds to an error why its receiver does not run, if the client may know.
    fn explained(&self, error: Error, receiver: &str) -> Error {
        let Error::NoProvider(what) = error else { return error };
        let status = self.roster.as_ref().and_then(|roster| roster.find(receiver)).map(|unit| unit.status());
        Error::NoProvider(match status.and_then(|status| Some((status.state, status.reason?))) {
            Some((state, reason)) => format!("{what}: {state}: {reason}"),
            None => what,
        })
    }

    /// The parent of a message that is sent as part of `context`.
    fn parent(&self, context: Option<&TraceContext>) -> Parent {
        Parent { trace: context.and_then(|context| self.origin(context)), ..Parent::default() }
    }

    /// The place of a message in the trace of `context`. A message of Main is recorded if the trace is sampled, and one
    /// of a peer if it has a recorded message of the trace in hand. Otherwise chance decides, as for a trace that
    /// begins here.
    #[cold]
    fn origin(&self, context: &TraceContext) -> Option<Box<SpanOrigin>> {
        let is_wanted = match &self.session {
            None => context.is_sampled,
            Some(session) => session.traced.has(context.trace),
        };
        self.bus.join_trace(context, is_wanted)
    }
}
