//! The configuration of shared queues, topics and subscriptions.

use std::{collections::BTreeMap, str::FromStr};

use weir_names::{ContractName, NameError, Policy, QueueName, QueuePolicy, TopicPattern};

use super::{
    key::{Contradiction, Table},
    kind::{Kind, flag, number, policy, text, texts_and_tables},
    sections::{CONTRACT, QUEUE, TOPIC},
    shape::Shape,
};
use crate::keys;

/// The range of a queue's `bytes`: 4 KiB to 1 GiB.
const BYTES: Shape = Shape::Size(4 << 10..=1 << 30);

/// A shared queue: its room, and the fate of jobs that find none or are not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueConfig {
    /// Jobs that wait or are in hand: 1 to 1,000,000. Default: 1,000.
    pub messages: u32,
    /// Bytes of all these jobs: 4 KiB to 1 GiB. Default: 1 MiB.
    pub bytes: u64,
    /// What happens to a job without room. Default: [`QueuePolicy::Reject`].
    pub when_full: QueuePolicy,
    /// Deliveries of a job before it is dead: 1 to 1,000. Default: 3.
    pub max_deliveries: u32,
    /// The queue for dead jobs. If that queue is not configured, it has the largest `messages` and `bytes` of the
    /// queues that name it, [`QueuePolicy::DropOldest`], and no dead letters of its own.
    pub dead_letter: Option<QueueName>,
    /// The contract of the peer that keeps the jobs: a put calls its operation with this queue's name, and returns
    /// with its answer. The peer then puts the jobs here itself. `when_full` is then [`QueuePolicy::Reject`] or
    /// [`QueuePolicy::Block`].
    pub store: Option<ContractName>,
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self {
            messages: 1000,
            bytes: 1 << 20,
            when_full: QueuePolicy::Reject,
            max_deliveries: 3,
            dead_letter: None,
            store: None,
        }
    }
}

impl Table for QueueConfig {
    keys! {
        QueueConfig;
        /// Jobs in it, both waiting and in hand.
        "messages" messages = number(Shape::Count(1..=1_000_000));
        /// Bytes of these jobs, which count against `main.memory-budget`.
        "bytes" bytes = number(BYTES);
        /// What happens to a job that finds no room: [each policy](operators.md#when-there-is-no-room). Not `latest`:
        /// jobs have no topics. With a `store` only `reject` or `block`.
        "when-full" when_full = policy(&QueuePolicy::ALL, "keeps one of each topic, and jobs have no topics");
        /// How often a job is delivered at most. If it is not done by then, it is dead.
        "max-deliveries" max_deliveries = number(Shape::Count(1..=1000));
        /// The queue for dead jobs. Without one they are dropped.
        "dead-letter" dead_letter = text(QUEUE, str::parse).optional();
        /// The contract of the peer that keeps the jobs, if they must outlive Main.
        "store" store = text(CONTRACT, str::parse).optional();
    }

    fn contradictions(&self) -> Vec<Contradiction> {
        let is_lossy = !matches!(self.when_full, QueuePolicy::Reject | QueuePolicy::Block);
        let contradiction = || Contradiction {
            keys: ["when-full", "store"],
            message: format!(
                "`when-full` is `{}`, and a queue with a `store` loses no job: `reject` or `block`",
                self.when_full
            ),
        };
        (self.store.is_some() && is_lossy).then(contradiction).into_iter().collect()
    }
}

/// The settings of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicConfig {
    /// Whether Main keeps the last event for later subscribers.
    pub retain: bool,
}

impl Table for TopicConfig {
    keys! {
        TopicConfig;
        /// Whether Main keeps the last event of the topic. Each new subscriber gets that event first, marked as
        /// retained. It does not count against the memory budget.
        "retain" retain = flag();
    }
}

/// Topics that an extension or a peer may subscribe to, and the bounds of each subscription.
///
/// A grant that is made from a [`TopicPattern`] or its text has the default policy and the room of the whole inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscribeGrant {
    /// The topics.
    pub topic: TopicPattern,
    /// What happens to an event without room. Default: [`Policy::DropOldest`].
    pub policy: Policy,
    /// Waiting events of a subscription: 1 to 1,000,000, and at most the subscriber's `inbox.messages`, which `None`
    /// stands for.
    pub messages: Option<u32>,
    /// Bytes of these events: 1 KiB to 1 GiB, and at most the subscriber's `inbox.bytes`, which `None` stands for.
    pub bytes: Option<u64>,
}

impl From<TopicPattern> for SubscribeGrant {
    fn from(topic: TopicPattern) -> Self {
        Self { topic, policy: Policy::default(), messages: None, bytes: None }
    }
}

impl FromStr for SubscribeGrant {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        text.parse().map(TopicPattern::into)
    }
}

impl Table for SubscribeGrant {
    keys! {
        SubscribeGrant;
        /// Topics that the extension or the peer may subscribe to.
        "topic" topic = text(TOPIC, str::parse), required(TOPIC);
        /// What happens to an event that finds no room: [each policy](operators.md#when-there-is-no-room).
        "policy" policy = policy(&Policy::ALL, "is none of them");
        /// Events of one subscription that may wait. Not more than `inbox.messages` of the extension or the peer.
        "messages" messages = number(Shape::Count(1..=1_000_000)), default("`inbox.messages`");
        /// Bytes of them. Not more than `inbox.bytes` of the extension or the peer.
        "bytes" bytes = number(Shape::Size(1 << 10..=1 << 30)), default("`inbox.bytes`");
    }
}

/// Topics to subscribe to.
pub(super) fn subscribes() -> Kind<Vec<SubscribeGrant>> {
    texts_and_tables(TOPIC, str::parse, || ">".parse().ok())
}

/// The queues, and those that are only named as a `dead_letter`.
pub(super) fn with_dead_letters(
    queues: &BTreeMap<QueueName, QueueConfig>,
) -> BTreeMap<QueueName, QueueConfig> {
    let mut all = queues.clone();
    for queue in queues.values() {
        let Some(name) = queue.dead_letter.as_ref().filter(|name| !queues.contains_key(*name)) else {
            continue;
        };
        let dead_letters = all.entry(name.clone()).or_insert_with(|| QueueConfig {
            messages: 0,
            bytes: 0,
            when_full: QueuePolicy::DropOldest,
            ..QueueConfig::default()
        });
        dead_letters.messages = dead_letters.messages.max(queue.messages);
        dead_letters.bytes = dead_letters.bytes.max(queue.bytes);
    }
    all
}
