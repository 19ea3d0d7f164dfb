//! `telemetry@1`: counts of events.

use serde::{Deserialize, Serialize};
use weir_sdk::{Empty, Shape};

weir_sdk::contract! {
    /// Counts of events.
    pub const CONTRACT = "telemetry@1";

    /// The counts so far.
    pub const SNAPSHOT: fn(Empty) -> Snapshot = "snapshot";
}

/// The counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Shape)]
pub struct Snapshot {
    /// The start of counting, in seconds of Unix time.
    pub since: u64,
    /// By topic, in the order of the topics' names.
    pub topics: Vec<TopicCount>,
    /// All further topics together.
    pub other: Count,
}

/// A count of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Shape)]
pub struct Count {
    /// Events received.
    pub count: u64,
    /// Events lost before they were received.
    pub lost: u64,
    /// Events a second, on average over the last minute.
    pub per_second_1m: f64,
}

/// The count of one topic's events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Shape)]
pub struct TopicCount {
    /// The topic.
    pub topic: String,
    /// Events received.
    pub count: u64,
    /// Events lost before they were received. A pattern of several topics counts them with the topic of the
    /// next event.
    pub lost: u64,
    /// Events a second, on average over the last minute.
    pub per_second_1m: f64,
}
