//! Topics, subscriptions and queues at one moment.

use std::{
    borrow::Cow,
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use weir_bus::{Bus, Error, MessageId, QueueStats, QueuedJob, SubscriptionStats, TopicStats};
use weir_metrics::moment;
use weir_names::{QueueName, Topic, TopicPattern};
use weir_reports::rfc3339;

/// All known topics and all subscriptions.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[non_exhaustive]
pub struct TopicsReport {
    /// By name: all retained topics, and the 4096 others last published to while they had a subscription.
    pub topics: Vec<TopicStatus>,
    /// By subscriber and pattern.
    pub subscriptions: Vec<SubscriptionStatus>,
}

/// One topic.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
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
#[non_exhaustive]
pub struct SubscriptionStatus {
    /// The subscribing extension's id, or `main`.
    pub subscriber: String,
    /// The pattern of its topics.
    pub pattern: TopicPattern,
    /// What happens to an event without room: the [name](weir_names::Policy::name) of its policy.
    pub policy: Cow<'static, str>,
    /// Waiting events: the subscriber's lag.
    pub waiting: u64,
    /// Bytes of the waiting events.
    pub bytes: u64,
    /// Most events that may wait; none: as many as the inbox holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages_limit: Option<u32>,
    /// Most bytes that may wait; none: as many as the inbox holds.
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
#[non_exhaustive]
pub struct QueueStatus {
    /// Its name.
    pub queue: QueueName,
    /// False if a reload removed it: it takes no more jobs, and stays until it is empty.
    pub configured: bool,
    /// Jobs waiting for a reader.
    pub waiting: u64,
    /// Jobs in the hands of readers.
    pub in_hand: u64,
    /// Most jobs, waiting and in hand.
    pub messages_limit: u32,
    /// Bytes of jobs waiting and in hand, with 128 for each envelope.
    pub bytes: u64,
    /// Most bytes.
    pub bytes_limit: u64,
    /// What happens to a job without room: the [name](weir_names::QueuePolicy::name) of its policy.
    pub when_full: Cow<'static, str>,
    /// Deliveries before a job becomes a dead letter.
    pub max_deliveries: u32,
    /// The queue for dead letters; none: they are dropped.
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

/// One waiting job.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct JobStatus {
    /// The same at each delivery.
    pub id: MessageId,
    /// The sending extension's id, or `main`.
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

pub(crate) fn topics(bus: &Bus) -> TopicsReport {
    TopicsReport {
        topics: bus.topic_stats().into_iter().map(|stats| TopicStatus::new(bus, stats)).collect(),
        subscriptions: bus.subscription_stats().into_iter().map(SubscriptionStatus::new).collect(),
    }
}

pub(crate) fn queues(bus: &Bus) -> Vec<QueueStatus> {
    bus.queue_stats().into_iter().map(QueueStatus::new).collect()
}

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
            policy: delivery.policy.name().into(),
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
            when_full: settings.when_full.name().into(),
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
