//! What travels: envelopes that only Main stamps, payloads that are shared.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use weir_names::{ContractName, OperationName, Topic};

use super::{
    Error, Waiter,
    inbox::{ENVELOPE_BYTES, ReaderId},
};

/// Identifies one message for as long as Main runs; never zero, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(transparent)]
pub struct MessageId(pub u64);

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a peer: Main is 0, extensions follow in the order of their configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct PeerId(pub u32);

impl PeerId {
    /// Main itself.
    pub const MAIN: Self = Self(0);
}

/// Who got an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Receipt {
    /// Subscriptions in whose inbox it is.
    pub delivered: u32,
    /// Events that were lost for want of room: this one, or older ones in its place.
    pub shed: u32,
    /// Subscriptions that refused it for want of room, or for which it waited in vain.
    pub refused: u32,
}

/// What an inbox yields.
#[derive(Debug)]
pub enum Incoming {
    Reply(Reply),
    Request(Request),
    Event(Event),
}

/// The answer to a request that was sent without waiting.
#[derive(Debug)]
pub struct Reply {
    pub id: MessageId,
    pub outcome: Result<Bytes, Error>,
}

/// An operation by its full name.
#[derive(Debug, PartialEq, Eq)]
pub struct OperationId {
    pub contract: ContractName,
    pub name: OperationName,
}

/// A request on its way to, or in the hands of, the owner of its contract.
#[derive(Debug)]
pub struct Request {
    /// The operation's number among those that this instance of the receiver serves.
    pub number: u32,
    pub reader: ReaderId,
    pub payload: Bytes,
    pub answer: Answer,
}

/// The duty to answer one request, of which it knows the rest: dropped unanswered, it answers `peer-gone`.
#[derive(Debug)]
pub struct Answer(pub(super) Arc<Waiter>);

impl Answer {
    pub fn id(&self) -> MessageId {
        self.0.id()
    }

    pub fn sender(&self) -> PeerId {
        self.0.sender()
    }

    pub fn operation(&self) -> &OperationId {
        self.0.operation()
    }

    pub fn sent(&self) -> Instant {
        self.0.term().sent
    }

    pub fn deadline(&self) -> Instant {
        self.0.term().deadline
    }

    /// Whether nobody waits any more: answered, timed out or given up.
    pub fn is_done(&self) -> bool {
        self.0.is_done()
    }

    /// What becomes of it, for whoever wants to know whether somebody waits.
    pub fn waiter(&self) -> Arc<Waiter> {
        self.0.clone()
    }

    /// Answers; false if it came too late for anybody to hear it.
    pub fn give(&self, outcome: Result<Bytes, Error>) -> bool {
        self.0.complete(outcome)
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.0.complete(Err(Error::PeerGone));
    }
}

/// An event as one subscription gets it.
#[derive(Clone, Debug)]
pub struct Event {
    /// The number of the subscription.
    pub subscription: u32,
    /// Whether the subscription is to one topic, without a wildcard.
    pub names_one_topic: bool,
    /// Events of the subscription that were lost just before it.
    pub lost: u64,
    /// It was published before whoever gets it subscribed.
    pub retained: bool,
    pub published: Arc<Published>,
}

/// What was published, shared by all who get it.
#[derive(Debug)]
pub struct Published {
    pub sender: PeerId,
    pub topic: Topic,
    /// Its place in the topic; 0 if it is for one peer alone.
    pub sequence: u64,
    pub at: Instant,
    pub payload: Bytes,
}

impl Published {
    /// What it counts in an inbox.
    pub(super) fn bytes(&self) -> u64 {
        ENVELOPE_BYTES + (self.topic.as_str().len() + self.payload.len()) as u64
    }
}
