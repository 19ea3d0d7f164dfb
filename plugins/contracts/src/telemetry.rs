//! `telemetry@1`: how many events there were.

use serde::{Deserialize, Serialize};
use weir_sdk::{Contract, Empty, Operation};

/// The contract.
pub const CONTRACT: Contract = Contract::new("telemetry@1");

/// What was counted so far.
pub const SNAPSHOT: Operation<Empty, Snapshot> = CONTRACT.operation("snapshot");

/// What was counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Since when, in seconds of Unix time.
    pub since: u64,
    /// Per topic, in the order of the topics' names.
    pub topics: Vec<TopicCount>,
    /// Of topics beyond those that are told apart.
    pub other: Count,
}

/// How many events there were.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Count {
    /// Events received.
    pub count: u64,
    /// Events lost before they were received.
    pub lost: u64,
    /// Events a second, on average over the last minute.
    pub per_second_1m: f64,
}

/// How many events of one topic there were.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopicCount {
    /// The topic.
    pub topic: String,
    /// Events received.
    pub count: u64,
    /// Events lost before they were received; with a pattern that covers several topics, counted with
    /// the topic of the next event that came.
    pub lost: u64,
    /// Events a second, on average over the last minute.
    pub per_second_1m: f64,
}
