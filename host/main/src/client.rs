//! Main as a peer: requests, events and subscriptions of the embedding program.

mod queue;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde::Serialize;
use tokio::task::coop::cooperative;
use weir_bus::{
    Bus, Error, Event, Inbox, InboxLimits, Incoming, LaneSettings, ReaderId, Receipt, Subscription, Taken,
    Target,
};
use weir_names::Policy;
use weir_schedule::{note_wait, switch};

pub use self::queue::{Job, Queue};

/// Sends requests and events as Main, and subscribes. Cheap to clone; usable from any thread and
/// any async runtime, or none with [`blocking`](crate::blocking).
#[derive(Clone, Debug)]
pub struct Client {
    bus: Arc<Bus>,
}

/// How a request is to be sent.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// Time for the answer; none is the default of the contract's owner. At most 7 days.
    pub timeout: Option<Duration>,
    /// The peer that is to answer: an extension's id, or `main`; none is whoever owns the contract.
    pub provider: Option<String>,
}

impl CallOptions {
    /// Sets the time for the answer.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Names the peer that is to answer.
    #[must_use]
    pub fn provider(mut self, provider: impl Into<String>) -> Self {
        self.provider = Some(provider.into());
        self
    }
}

/// How many events of a subscription may wait, and what becomes of one that finds no room.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SubscribeOptions {
    /// What becomes of one that finds no room. At first [`Policy::DropOldest`].
    pub policy: Policy,
    /// Events that may wait; at first 256.
    pub messages: u32,
    /// Bytes of the events that may wait; at first 2 MiB.
    pub bytes: u64,
}

impl Default for SubscribeOptions {
    fn default() -> Self {
        Self { policy: Policy::default(), messages: 256, bytes: 2 * 1024 * 1024 }
    }
}

impl SubscribeOptions {
    /// Sets what becomes of an event that finds no room.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets how many events may wait; one always can.
    #[must_use]
    pub fn messages(mut self, messages: u32) -> Self {
        self.messages = messages;
        self
    }

    /// Sets how many bytes of events may wait; one event always can.
    #[must_use]
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }
}

impl Client {
    pub(crate) fn new(bus: Arc<Bus>) -> Self {
        Self { bus }
    }

    /// Calls an operation of a contract and waits for the answer.
    ///
    /// Dropping the future gives up: the receiver's answer is then discarded.
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

    /// [`call`](Self::call) with a timeout or to a named provider.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub async fn call_with(
        &self,
        contract: &str,
        operation: &str,
        payload: impl Into<Bytes>,
        options: CallOptions,
    ) -> Result<Bytes, Error> {
        let mut target = self.bus.open(self.bus.main(), contract, operation, options.provider.as_deref())?;
        self.send(&mut target, payload.into(), options.timeout).await
    }

    /// Looks up an operation once, for many calls of it.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownContract`], [`Error::NoProvider`] or [`Error::Invalid`].
    pub fn operation(&self, contract: &str, operation: &str) -> Result<ClientOperation, Error> {
        let target = self.bus.open(self.bus.main(), contract, operation, None)?;
        Ok(ClientOperation { client: self.clone(), target })
    }

    /// Publishes an event; says who got it. Where a subscriber has its publishers wait for room, it waits
    /// for at most `[main] request-timeout`; all others get it as soon as the future is polled.
    ///
    /// What waits for room is in memory for as long as its future: how many of those there are is the
    /// caller's to bound.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if `topic` is not well formed.
    pub async fn publish(&self, topic: &str, payload: impl Into<Bytes>) -> Result<Receipt, Error> {
        self.publish_before(None, None, topic, payload.into()).await
    }

    /// [`publish`](Self::publish), waiting for room for at most so long.
    ///
    /// # Errors
    ///
    /// As [`publish`](Self::publish).
    pub async fn publish_within(
        &self,
        timeout: Duration,
        topic: &str,
        payload: impl Into<Bytes>,
    ) -> Result<Receipt, Error> {
        self.publish_before(Some(timeout), None, topic, payload.into()).await
    }

    /// Publishes an event to one extension alone.
    ///
    /// # Errors
    ///
    /// As [`publish`](Self::publish), [`Error::NoProvider`] if it has not subscribed, and
    /// [`Error::Overloaded`] or [`Error::Timeout`] if it has no room.
    pub async fn publish_to(
        &self,
        extension: &str,
        topic: &str,
        payload: impl Into<Bytes>,
    ) -> Result<Receipt, Error> {
        self.publish_before(None, Some(extension), topic, payload.into()).await
    }

    /// Subscribes to every topic that matches `pattern`. Up to 256 events or 2 MiB wait unread; then
    /// the oldest are lost, and counted. Of retained topics the last value comes first.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if the pattern is not well formed, [`Error::LimitExceeded`] for the 257th
    /// subscription.
    pub fn subscribe(&self, pattern: &str) -> Result<Subscriber, Error> {
        self.subscribe_with(pattern, SubscribeOptions::default())
    }

    /// [`subscribe`](Self::subscribe), with a capacity and a policy of its own.
    ///
    /// # Errors
    ///
    /// As [`subscribe`](Self::subscribe).
    pub fn subscribe_with(&self, pattern: &str, options: SubscribeOptions) -> Result<Subscriber, Error> {
        let SubscribeOptions { policy, messages, bytes } = options;
        let inbox = Arc::new(Inbox::new(InboxLimits { messages: messages.max(1), bytes }));
        let delivery = LaneSettings { policy, messages: u32::MAX, bytes: u64::MAX };
        let subscription = self.bus.subscribe(self.bus.main(), &inbox, pattern, Some(delivery))?;
        Ok(Subscriber { bus: self.bus.clone(), inbox, subscription })
    }

    /// A shared queue, to put into and to take from.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if no such queue is configured.
    pub fn queue(&self, name: &str) -> Result<Queue, Error> {
        Ok(Queue::new(self.bus.clone(), self.bus.queue(name)?))
    }

    /// Requests that somebody, extension or not, waits for at this moment.
    #[must_use]
    pub fn waiters(&self) -> usize {
        self.bus.waiters()
    }

    async fn publish_before(
        &self,
        timeout: Option<Duration>,
        to: Option<&str>,
        topic: &str,
        payload: Bytes,
    ) -> Result<Receipt, Error> {
        let publishing = self.bus.publish(self.bus.main(), to, topic, payload, (timeout, None))?;
        publishing.receipt().await
    }

    async fn send(
        &self,
        target: &mut Target,
        payload: Bytes,
        timeout: Option<Duration>,
    ) -> Result<Bytes, Error> {
        let (pending, _) = switch(|| {
            let term = self.bus.term(target, timeout, None);
            note_wait(term.sent.into_std());
            self.bus.call(self.bus.main(), target, payload, term, false)
        });
        // An answer that is there at once must not keep others from the thread for ever.
        cooperative(pending?.answer()).await
    }
}

/// An operation that was looked up once.
#[derive(Clone, Debug)]
pub struct ClientOperation {
    client: Client,
    target: Target,
}

impl ClientOperation {
    /// Calls it and waits for the answer.
    ///
    /// # Errors
    ///
    /// As [`Client::call`].
    pub async fn call(&mut self, payload: impl Into<Bytes>) -> Result<Bytes, Error> {
        self.client.send(&mut self.target, payload.into(), None).await
    }
}

/// An event, as a subscriber of Main's gets it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReceivedEvent {
    /// What it was published under.
    pub topic: weir_names::Topic,
    /// Who published it: an extension's id, or `main`.
    pub sender: String,
    /// Its place among the events of its topic: greater than that of the one before.
    pub sequence: u64,
    /// How many of this subscription were lost just before it.
    pub lost: u64,
    /// Whether it was published before the subscription began: the last value of a retained topic.
    pub retained: bool,
    /// What was published.
    #[serde(skip)]
    pub payload: Bytes,
}

/// A subscription of Main's. Dropped, it ends.
#[derive(Debug)]
pub struct Subscriber {
    bus: Arc<Bus>,
    inbox: Arc<Inbox>,
    subscription: Arc<Subscription>,
}

impl Subscriber {
    /// Waits for the next event; none once Main has ended. Dropping the future loses none.
    pub async fn next(&mut self) -> Option<ReceivedEvent> {
        loop {
            match self.inbox.take(ReaderId::FIRST) {
                Taken::Message(Incoming::Event(event)) => return Some(self.received(&event)),
                Taken::Stop => return None,
                _ => self.inbox.readable(ReaderId::FIRST).await,
            }
        }
    }

    fn received(&self, event: &Event) -> ReceivedEvent {
        let Event { lost, retained, published, .. } = event;
        ReceivedEvent {
            topic: published.topic.clone(),
            sender: self.bus.peer(published.sender).map(|peer| peer.name().to_owned()).unwrap_or_default(),
            sequence: published.sequence,
            lost: *lost,
            retained: *retained,
            payload: published.payload.clone(),
        }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        // It fails only if the subscription has ended already.
        let _ended = self.bus.unsubscribe(self.bus.main(), self.subscription.number());
    }
}
