//! What the guest `churn` says: its instances to each other, and to the ledger that its test keeps
//! outside of them, so that no death takes a record along.

use serde::{Deserialize, Serialize};

/// The contract of Main's that keeps the ledger.
pub const LEDGER: &str = "ledger@1";

/// The topic of all events.
pub const TOPIC: &str = "churn.event";

/// Messages of one batch.
pub const BATCH: u32 = 16;

/// Requests that are hoarded.
pub const HOARD: usize = 8;

/// What one that receives does with what it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// One message after the other.
    Single,
    /// Batches in order, each request answered before the next is looked at.
    InOrder,
    /// Batches of which it answers the last request first.
    AnyOrder,
    /// One message after the other, answered when there are no more.
    Hoard,
}

/// One that receives.
#[derive(Clone, Copy, Debug)]
pub struct Receiver {
    /// Its id; it serves the contract `ID@1`, whose operation is `ask`.
    pub id: &'static str,
    /// How it receives.
    pub manner: Manner,
    /// Whether it may end by itself, or be stopped: what it has is then answered `peer-gone`.
    pub may_leave: bool,
}

/// All who receive requests.
pub const RECEIVERS: [Receiver; 4] = [
    Receiver { id: "single", manner: Manner::Single, may_leave: true },
    Receiver { id: "in-order", manner: Manner::InOrder, may_leave: false },
    Receiver { id: "any-order", manner: Manner::AnyOrder, may_leave: false },
    Receiver { id: "hoard", manner: Manner::Hoard, may_leave: true },
];

/// What a message has its receiver do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deed {
    /// Answer.
    Answer,
    /// Trap.
    Trap,
    /// Use up its fuel.
    Spin,
    /// Wait until it is killed from outside.
    Hold,
    /// Exit with an error.
    Fail,
    /// Exit without one.
    Finish,
}

/// The answer to an instance that says that it begins.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Begun {
    /// Its number, which no other instance has; from 1.
    pub instance: u32,
    /// Of its random numbers.
    pub seed: u64,
    /// It is to trap before it is ready.
    pub dies: bool,
}

/// A request, or an event.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Ask {
    /// The instance that sends it.
    pub from: u32,
    /// Its place among those that this instance sends to that receiver, or publishes; from 1.
    pub number: u32,
    /// What it has its receiver do.
    pub deed: Deed,
}

/// A receiver has a request in hand. Said before anything is done with it; and its answer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Handled {
    /// The instance that has.
    pub by: u32,
    /// The request.
    pub ask: Ask,
}

/// A subscriber has an event in hand. Said before anything is done with it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Heard {
    /// The instance that has.
    pub by: u32,
    /// The subscription.
    pub subscription: u32,
    /// Its place there.
    pub sequence: u64,
    /// How many were lost before it.
    pub lost: u64,
    /// The event.
    pub ask: Ask,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// This instance answered.
    Answered(u32),
    /// `trapped`.
    Trapped,
    /// `peer-gone`.
    PeerGone,
    /// `no-provider` or `overloaded`: it was not sent.
    Refused,
    /// `timeout`, or `not-ready` at the deadline.
    TimedOut,
    /// Its sender has cancelled it.
    GivenUp,
}

/// A request has ended.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Ended {
    /// The receiver's place in [`RECEIVERS`].
    pub to: usize,
    /// [`Ask::number`].
    pub number: u32,
    /// [`Ask::deed`].
    pub deed: Deed,
    /// Its time was so short that it could pass.
    pub hurried: bool,
    /// How.
    pub outcome: Outcome,
}

/// What a sender says of its requests, each once. The answer is whether it is to send more.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The instance.
    pub by: u32,
    /// What has ended since the last report.
    pub ended: Vec<Ended>,
    /// Its last one: all that it sent has ended, up to these numbers by receiver.
    pub last: Option<Vec<u32>>,
}
