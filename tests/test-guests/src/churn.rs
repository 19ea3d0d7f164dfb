//! Messages of the guest `churn`: between its instances, and to the ledger. The test keeps the ledger outside
//! of them, so that no death takes a record along.

use serde::{Deserialize, Serialize};

/// Main's contract for the ledger.
pub const LEDGER: &str = "ledger@1";

/// The topic of all events.
pub const TOPIC: &str = "churn.event";

/// Messages of one batch.
pub const BATCH: u32 = 16;

/// Requests hoarded before the first answer.
pub const HOARD: usize = 8;

/// How a receiver handles its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// One message after the other.
    Single,
    /// Batches in order: it answers each request before it looks at the next.
    InOrder,
    /// Batches, with the last request answered first.
    AnyOrder,
    /// One message after the other, answered when there are no more.
    Hoard,
}

/// A receiver of requests.
#[derive(Clone, Copy, Debug)]
pub struct Receiver {
    /// Its id. It serves the contract `ID@1` with the operation `ask`.
    pub id: &'static str,
    /// How it handles its messages.
    pub manner: Manner,
    /// Whether it may end by itself or be stopped. Its requests are then answered `peer-gone`.
    pub may_leave: bool,
}

/// All receivers of requests.
pub const RECEIVERS: [Receiver; 4] = [
    Receiver { id: "single", manner: Manner::Single, may_leave: true },
    Receiver { id: "in-order", manner: Manner::InOrder, may_leave: false },
    Receiver { id: "any-order", manner: Manner::AnyOrder, may_leave: false },
    Receiver { id: "hoard", manner: Manner::Hoard, may_leave: true },
];

/// What a message makes its receiver do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deed {
    /// Answer.
    Answer,
    /// Trap.
    Trap,
    /// Use up its fuel.
    Spin,
    /// Wait for a kill from outside.
    Hold,
    /// Exit with an error.
    Fail,
    /// Exit without an error.
    Finish,
}

/// The answer to an instance that reports its start.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Begun {
    /// Its unique number, from 1.
    pub instance: u32,
    /// The seed of its random numbers.
    pub seed: u64,
    /// It must trap before it is ready.
    pub dies: bool,
}

/// A request, or an event.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Ask {
    /// The instance that sends it.
    pub from: u32,
    /// Its place among this instance's messages to that receiver, or among its events; from 1.
    pub number: u32,
    /// What its receiver must do.
    pub deed: Deed,
}

/// A receiver has a request in hand. Reported before anything else; also the request's answer.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Handled {
    /// The receiving instance.
    pub by: u32,
    /// The request.
    pub ask: Ask,
}

/// A subscriber has an event in hand. Reported before anything else.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Heard {
    /// The receiving instance.
    pub by: u32,
    /// The subscription.
    pub subscription: u32,
    /// Its place there.
    pub sequence: u64,
    /// Events lost before it.
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
    /// Its sender cancelled it.
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
    /// How it ended.
    pub outcome: Outcome,
}

/// A sender's report of its ended requests, each once. The answer says whether to send more.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The instance.
    pub by: u32,
    /// Requests ended since the last report.
    pub ended: Vec<Ended>,
    /// In the last report: all sent requests have ended, up to these numbers by receiver.
    pub last: Option<Vec<u32>>,
}
