//! Topics, subscriptions and queues at one moment.

use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use weir_bus::{Bus, MessageId, QueuedJob};
use weir_metrics::moment;
use weir_names::QueueName;
use weir_reports::rfc3339;
pub use weir_reports::{QueueStatus, SubscriptionStatus, TopicStatus};

/// All known topics and all subscriptions.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TopicsReport {
    /// By name: all retained topics, and the 4096 others last published to while they had a subscription.
    pub topics: Vec<TopicStatus>,
    /// By subscriber and pattern.
    pub subscriptions: Vec<SubscriptionStatus>,
}

/// One waiting job.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct JobStatus {
    /// Its number, which stays the same at each delivery.
    pub id: MessageId,
    /// The sending extension's id, a peer's name, or `main`.
    pub sender: String,
    /// When it was put.
    #[serde(with = "rfc3339")]
    pub put: SystemTime,
    /// Deliveries from this queue so far.
    pub deliveries: u32,
    /// For a dead letter: the queue where it died.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub died_in: Option<QueueName>,
    /// For a dead letter: its deliveries there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub died_after: Option<u32>,
    /// Bytes of its payload.
    pub bytes: usize,
    /// Its payload.
    #[serde(skip)]
    pub payload: Bytes,
}

impl JobStatus {
    pub(crate) fn new(bus: &Bus, job: QueuedJob) -> Self {
        let QueuedJob { id, sender, at, payload, deliveries, died_in, .. } = job;
        let age = Duration::from_nanos(moment(Instant::now()).saturating_sub(at));
        let (died_in, died_after) = died_in.map(|died| *died).unzip();
        Self {
            id,
            sender: bus.peer(sender).map(|peer| peer.name().to_owned()).unwrap_or_default(),
            put: SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH),
            deliveries,
            died_in,
            died_after,
            bytes: payload.len(),
            payload,
        }
    }
}
