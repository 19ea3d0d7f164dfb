//! `courier@1`: letters, as jobs of queues.

use serde::{Deserialize, Serialize};
use weir_sdk::{Empty, Shape};

weir_sdk::contract! {
    /// Letters to the other end of a queue.
    pub const CONTRACT = "courier@1";

    /// Puts a letter in the outgoing queue. It answers once the queue has the letter.
    pub const SEND: fn(Letter) -> Empty = "send", errors {
        "no-outgoing": "The operator named no outgoing queue.",
    };
    /// The latest letters of the incoming queue, oldest first.
    pub const RECEIVED: fn(Empty) -> Letters = "received";

    /// Letters that came, each published under `courier.received.<incoming queue>`.
    pub const ARRIVED: topic(Received) = "courier.received.>";
}

/// A letter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Shape)]
#[serde(deny_unknown_fields)]
pub struct Letter {
    /// What it says.
    pub text: String,
}

/// A letter that came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Shape)]
pub struct Received {
    /// What it says.
    pub text: String,
    /// Its deliveries so far, this one included. Over 1, it may have come before.
    pub deliveries: u32,
}

/// Letters that came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Shape)]
pub struct Letters {
    /// Oldest first.
    pub letters: Vec<Received>,
}
