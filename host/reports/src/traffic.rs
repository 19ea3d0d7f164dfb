//! Topics, subscriptions and queues at one moment, and what became of requests.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};
use weir_metrics::DurationsSnapshot;
use weir_names::{QueueName, Topic, TopicPattern};

/// One topic.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct TopicStatus {
    /// Its name.
    pub topic: Topic,
    /// Sequence number of its last event.
    pub sequence: u64,
    /// Events in the last full second.
    pub rate: u64,
    /// Subscriptions that match it.
    pub subscriptions: usize,
    /// Deliveries to subscribers so far.
    pub delivered: u64,
    /// Events lost in any inbox for want of room.
    pub shed: u64,
    /// Deliveries refused for want of room.
    pub refused: u64,
    /// Whether its last value is retained.
    pub retain: bool,
    /// Bytes of the retained value, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retained_bytes: Option<u64>,
}

/// One subscription.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SubscriptionStatus {
    /// The subscriber: an extension's id, the name of a peer, or `main`.
    pub subscriber: String,
    /// The pattern of its topics.
    pub pattern: TopicPattern,
    /// What happens to an event without room: the [name](weir_names::Policy::name) of its policy.
    pub policy: Cow<'static, str>,
    /// Waiting events: the subscriber's lag.
    pub waiting: u64,
    /// Bytes of the waiting events.
    pub bytes: u64,
    /// The most events that may wait. `None` if only the inbox bounds them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_limit: Option<u32>,
    /// The most bytes that may wait. `None` if only the inbox bounds them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_limit: Option<u64>,
    /// Publishers waiting for room.
    pub blocked: u64,
    /// Events received by the subscriber.
    pub received: u64,
    /// Events lost for want of room.
    pub shed: u64,
    /// Events refused for want of room.
    pub refused: u64,
}

/// One shared queue.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct QueueStatus {
    /// Its name.
    pub queue: QueueName,
    /// False if a reload removed it: it takes no more jobs, and stays until it is empty.
    pub configured: bool,
    /// Jobs waiting for a reader.
    pub waiting: u64,
    /// Jobs in the hands of readers.
    pub in_hand: u64,
    /// The most jobs, waiting and in hand.
    pub messages_limit: u32,
    /// Bytes of jobs waiting and in hand, with 128 for each envelope.
    pub bytes: u64,
    /// The most bytes of jobs waiting and in hand.
    pub bytes_limit: u64,
    /// What happens to a job without room: the [name](weir_names::QueuePolicy::name) of its policy.
    pub when_full: Cow<'static, str>,
    /// Deliveries before a job becomes a dead letter.
    pub max_deliveries: u32,
    /// The queue for dead letters. `None` if they are dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_letter: Option<QueueName>,
    /// Readers waiting for a job.
    pub idle_readers: u64,
    /// Senders waiting for room.
    pub blocked: u64,
    /// Jobs put in the last full second.
    pub put_rate: u64,
    /// Jobs done in the last full second.
    pub done_rate: u64,
    /// Jobs put so far.
    pub put: u64,
    /// Deliveries so far.
    pub delivered: u64,
    /// Jobs done so far.
    pub done: u64,
    /// Deliveries returned undone.
    pub returned: u64,
    /// Jobs that ran out of deliveries.
    pub dead: u64,
    /// Jobs lost for want of room.
    pub shed: u64,
    /// Jobs refused for want of room.
    pub refused: u64,
}

/// What became of the requests for one operation.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct OperationStatus {
    /// The provider: an extension's id, the name of a peer, or `main`.
    pub provider: String,
    /// The contract. Empty for all operations above the bound of 256 for each provider.
    pub contract: String,
    /// The operation; `other` for those above the bound.
    pub operation: String,
    /// Requests that ended in an error, by its [case](weir_names::Error::case). Those refused before they were sent are
    /// included.
    pub failed: BTreeMap<Cow<'static, str>, u64>,
    /// From the send to the outcome, of each request that was sent, whatever the outcome. Requests that their sender gave
    /// up are left out.
    pub durations: DurationsSnapshot,
}

impl OperationStatus {
    /// Adds what became of other requests for the same operation.
    pub fn add(&mut self, other: &Self) {
        for (case, count) in &other.failed {
            *self.failed.entry(case.clone()).or_default() += count;
        }
        self.durations.add(&other.durations);
    }
}
