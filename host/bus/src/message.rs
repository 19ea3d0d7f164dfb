//! The messages that travel on the bus: envelopes that only Main fills in, and shared payloads.
//!
//! Knows nothing of where a message waits, or of how it is routed.

use std::{any::Any, fmt::Debug, ops::Deref, sync::Arc};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use weir_names::{Error, Topic, TraceContext};

use crate::{
    id::{InstanceId, MessageId, PeerId},
    waiter::Waiter,
};

/// Bytes that a message counts in addition to its payload, so that empty messages are bounded too.
pub(crate) const ENVELOPE_BYTES: u64 = 128;

/// What happened to an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct Receipt {
    /// Subscriptions that have the event in their inbox.
    pub delivered: u32,
    /// Events lost: this event, for want of room or because it is too large, or older events that made room for it.
    pub shed: u32,
    /// Subscriptions that refused the event for want of room, or where it waited for room in vain.
    pub refused: u32,
}

/// The types of the values that a receiver takes for an operation in place of payloads. Only the receiver and its callers
/// look into them.
pub type ValueTypes = Arc<dyn Any + Send + Sync>;

/// Values that a request carries in place of a payload. Sender and receiver know them, and the bus does not. The receiver may
/// leave the answer in them, too.
pub trait CarriedValues: Any + Debug + Send + Sync {
    /// The types that the receiver has declared, and that the values have.
    fn types(&self) -> ValueTypes;

    /// The bytes that they take in memory.
    fn bytes(&self) -> u64;

    /// The payload that says the same, of at most so many bytes.
    fn payload(&self, most: u64) -> Result<Bytes, Error>;
}

/// What a request carries.
#[derive(Debug)]
pub enum Carried {
    /// A payload.
    Payload(Bytes),
    /// Values, and no payload.
    Values(Arc<dyn CarriedValues>),
}

impl From<Bytes> for Carried {
    fn from(payload: Bytes) -> Self {
        Self::Payload(payload)
    }
}

/// A message that a peer takes from its inbox.
#[derive(Debug)]
pub enum Incoming {
    /// The answer to a request of the peer.
    Reply(Reply),
    /// A request that the peer must answer.
    Request(Request),
    /// An event of one of its subscriptions.
    Event(Event),
}

/// The answer to a request sent without waiting.
#[derive(Debug)]
pub struct Reply {
    /// The number of the request that this reply answers.
    pub id: MessageId,
    /// The receiver's answer, or why there is none.
    pub outcome: Result<Bytes, Error>,
}

/// A request to the peer that serves its contract, under way or in hand.
#[derive(Debug)]
pub struct Request {
    /// The operation's number among those that one instance of the receiver serves.
    pub number: u32,
    /// The instance of the receiver for which `number` holds.
    pub instance: InstanceId,
    /// What is asked, in the contract's own encoding. Empty if there are values.
    pub payload: Bytes,
    /// Values in place of a payload. Only instances of extensions get some, of which an earlier one has
    /// [declared](crate::Peer::take_values) that it takes them.
    pub values: Option<Arc<dyn CarriedValues>>,
    /// The means to answer the request.
    pub responder: Responder,
}

/// The duty to answer one request. It gives access to the [`Waiter`], which has the envelope and takes the answer.
/// If it is dropped without an answer, the sender gets `peer-gone`.
#[derive(Debug)]
pub struct Responder(Arc<Waiter>);

impl Responder {
    pub(crate) fn new(waiter: Arc<Waiter>) -> Self {
        Self(waiter)
    }

    /// Returns the sender's wait, for code that watches for its end.
    #[inline]
    pub fn waiter(&self) -> Arc<Waiter> {
        self.0.clone()
    }
}

impl Deref for Responder {
    type Target = Waiter;

    #[inline]
    fn deref(&self) -> &Waiter {
        &self.0
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.give(Err(Error::PeerGone));
        self.let_go();
    }
}

/// An event as one subscription gets it.
#[derive(Clone, Debug)]
pub struct Event {
    /// The number of the subscription.
    pub subscription: u32,
    /// Whether the subscription names one topic, without a wildcard.
    pub names_one_topic: bool,
    /// How many events of the subscription were lost just before this one.
    pub lost: u64,
    /// Whether this is the last value of a retained topic, given to a new subscriber or to a peer that asked for it.
    pub retained: bool,
    /// What was published.
    pub published: Arc<Published>,
}

/// What was published, shared by all receivers.
#[derive(Debug)]
pub struct Published {
    /// The peer that published it.
    pub sender: PeerId,
    /// Where it was published.
    pub topic: Topic,
    /// The event's place in the topic, or 0 for an event to one peer.
    pub sequence: u64,
    /// When it was published, as a [`moment`](weir_metrics::moment).
    pub at: u64,
    /// What was published, in the topic's own encoding.
    pub payload: Bytes,
    /// The event's span, if the event is sampled.
    pub trace: Option<Box<TraceContext>>,
}

impl Published {
    /// Returns the bytes that the event counts in an inbox.
    pub(crate) fn bytes(&self) -> u64 {
        ENVELOPE_BYTES + (self.topic.as_str().len() + self.payload.len()) as u64
    }
}
