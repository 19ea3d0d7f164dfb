//! Topics, subscriptions and queues as they are at one moment, for whoever asks.

use std::time::{Instant, SystemTime};

use bytes::Bytes;
use serde::Serialize;
use weir_bus::{Bus, Error, MessageId, QueueStats, QueuedJob, SubscriptionStats, TopicStats};
use weir_logs::rfc3339;
use weir_names::{Policy, QueueName, QueuePolicy, Topic, TopicPattern};

/// Every topic that is known, and every subscription.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct TopicsReport {
    /// By name: topics that Main retains, and of all others the 4096 to which was published last while
    /// somebody had subscribed to them.
    pub topics: Vec<TopicStatus>,
    /// By subscriber and pattern.
    pub subscriptions: Vec<SubscriptionStatus>,
}

/// One topic.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct TopicStatus {
    /// Its name.
    pub topic: Topic,
    /// The number of its last event.
    pub sequence: u64,
    /// Events in the last full second.
    pub rate: u64,
    /// Subscriptions that match it.
    pub subscriptions: usize,
    /// Deliveries to subscribers so far.
    pub delivered: u64,
    /// Events that were lost for want of room, in whichever inbox.
    pub shed: u64,
    /// Deliveries that were refused for want of room.
    pub refused: u64,
    /// Whether its last value is retained.
    pub retain: bool,
    /// Bytes of that value, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retained_bytes: Option<u64>,
}

/// One subscription.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct SubscriptionStatus {
    /// Who has subscribed: an extension's id, or `main`.
    pub subscriber: String,
    /// To what.
    pub pattern: TopicPattern,
    /// What becomes of an event that finds no room.
    pub policy: Policy,
    /// Events that wait: how far the subscriber lags behind.
    pub waiting: u64,
    /// Bytes of the events that wait.
    pub bytes: u64,
    /// Events that may wait; none: as many as the inbox holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_limit: Option<u32>,
    /// Bytes of events that may wait; none: as many as the inbox holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_limit: Option<u64>,
    /// Publishers that wait for room.
    pub blocked: u64,
    /// Events that the subscriber received.
    pub received: u64,
    /// Events that were lost for want of room.
    pub shed: u64,
    /// Events that were refused for want of room.
    pub refused: u64,
}

/// One shared queue.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct QueueStatus {
    /// Its name.
    pub queue: QueueName,
    /// Whether it is still configured. One that is not takes no jobs, and stays while it holds some.
    pub configured: bool,
    /// Jobs that wait for a reader.
    pub waiting: u64,
    /// Jobs that a reader has in hand.
    pub in_hand: u64,
    /// Jobs that may wait and be in hand.
    pub messages_limit: u32,
    /// Bytes of the jobs that wait and are in hand, each with 128 for its envelope.
    pub bytes: u64,
    /// Bytes that there may be.
    pub bytes_limit: u64,
    /// What becomes of a job that finds no room.
    pub when_full: QueuePolicy,
    /// Deliveries after which a job goes to the dead letters.
    pub max_deliveries: u32,
    /// The queue to which it goes then; none: it is dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_letter: Option<QueueName>,
    /// Readers that wait for a job.
    pub idle_readers: u64,
    /// Senders that wait for room.
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
    /// Deliveries that came back undone.
    pub returned: u64,
    /// Jobs that were delivered too often.
    pub dead: u64,
    /// Jobs that were lost for want of room.
    pub shed: u64,
    /// Jobs that were refused for want of room.
    pub refused: u64,
}

/// A job that waits in a queue.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct JobStatus {
    /// The same at each delivery.
    pub id: MessageId,
    /// Who put it: an extension's id, or `main`.
    pub sender: String,
    /// When it was put.
    #[serde(serialize_with = "rfc3339")]
    pub put: SystemTime,
    /// How often it was delivered from this queue.
    pub deliveries: u32,
    /// Of a dead letter: the queue in which it died.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub died_in: Option<QueueName>,
    /// Of a dead letter: how often it was delivered there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub died_after: Option<u32>,
    /// Bytes of its payload.
    pub bytes: usize,
    /// Its payload.
    #[serde(skip)]
    pub payload: Bytes,
}

pub(crate) fn topics(bus: &Bus) -> TopicsReport {
    TopicsReport {
        topics: bus.topic_stats().into_iter().map(|stats| TopicStatus::new(bus, stats)).collect(),
        subscriptions: bus.subscription_stats().into_iter().map(SubscriptionStatus::new).collect(),
    }
}

pub(crate) fn queues(bus: &Bus) -> Vec<QueueStatus> {
    bus.queue_stats().into_iter().map(QueueStatus::new).collect()
}

/// The first jobs that wait in a queue.
pub(crate) fn jobs(bus: &Bus, queue: &str, max: usize) -> Result<Vec<JobStatus>, Error> {
    let jobs = bus.queue(queue)?.jobs(max);
    Ok(jobs.into_iter().map(|job| JobStatus::new(bus, job)).collect())
}

impl TopicStatus {
    fn new(bus: &Bus, stats: TopicStats) -> Self {
        let TopicStats { topic, sequence, rate, delivered, shed, refused, retained } = stats;
        Self {
            subscriptions: bus.subscribers(&topic),
            topic,
            sequence,
            rate,
            delivered,
            shed,
            refused,
            retain: retained.is_some(),
            retained_bytes: retained.flatten(),
        }
    }
}

impl SubscriptionStatus {
    fn new(SubscriptionStats { peer, pattern, delivery, lane }: SubscriptionStats) -> Self {
        Self {
            subscriber: peer.to_string(),
            pattern,
            policy: delivery.policy,
            waiting: lane.waiting,
            bytes: lane.bytes,
            messages_limit: (delivery.messages != u32::MAX).then_some(delivery.messages),
            bytes_limit: (delivery.bytes != u64::MAX).then_some(delivery.bytes),
            blocked: lane.blocked,
            received: lane.taken,
            shed: lane.shed,
            refused: lane.refused,
        }
    }
}

impl QueueStatus {
    fn new(stats: QueueStats) -> Self {
        let (settings, counts) = (stats.settings, stats.counts);
        Self {
            queue: stats.name,
            configured: stats.is_configured,
            waiting: stats.waiting,
            in_hand: stats.in_hand,
            messages_limit: settings.messages,
            bytes: stats.bytes,
            bytes_limit: settings.bytes,
            when_full: settings.when_full,
            max_deliveries: settings.max_deliveries,
            dead_letter: stats.dead_letter,
            idle_readers: stats.readers,
            blocked: stats.blocked,
            put_rate: stats.put_rate,
            done_rate: stats.done_rate,
            put: counts.put,
            delivered: counts.delivered,
            done: counts.done,
            returned: counts.returned,
            dead: counts.dead,
            shed: counts.shed,
            refused: counts.refused,
        }
    }
}

impl JobStatus {
    fn new(bus: &Bus, job: QueuedJob) -> Self {
        let QueuedJob { id, sender, at, payload, deliveries, died_in } = job;
        let age = Instant::now().saturating_duration_since(at.into_std());
        let (died_in, died_after) = died_in.unzip();
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
