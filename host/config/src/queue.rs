//! The configuration of shared queues and topics.

use std::{collections::BTreeMap, ops::RangeInclusive};

use weir_names::{ContractName, QueueName, QueuePolicy};

use super::shape::Shape;

pub(super) const MESSAGES: RangeInclusive<u32> = 1..=1_000_000;

/// 4 KiB to 1 GiB.
pub(super) const BYTES: Shape = Shape::Size(4 << 10..=1 << 30);

pub(super) const MAX_DELIVERIES: RangeInclusive<u32> = 1..=1000;

/// A shared queue: its room, and the fate of jobs that find none or are not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueConfig {
    /// Jobs that wait or are in hand: 1 to 1,000,000. Default: 1,000.
    pub messages: u32,
    /// Their size in bytes: 4 KiB to 1 GiB. Default: 1 MiB.
    pub bytes: u64,
    /// What happens to a job without room. Default: [`QueuePolicy::Reject`].
    pub when_full: QueuePolicy,
    /// Deliveries of a job before it is dead: 1 to 1,000. Default: 3.
    pub max_deliveries: u32,
    /// The queue for dead jobs. If it is not configured, it has this queue's `messages` and `bytes`,
    /// [`QueuePolicy::DropOldest`], and no dead letters of its own.
    pub dead_letter: Option<QueueName>,
    /// The contract of the peer that keeps the jobs: a put calls its operation with this queue's name, and returns
    /// with its answer. The peer then puts the jobs here itself. `when_full` is then [`QueuePolicy::Reject`] or [`QueuePolicy::Block`].
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

impl QueueConfig {
    /// Keys with faulty values, and their faults, which complete "`key` must be".
    pub(super) fn out_of_range(&self) -> Vec<(&'static str, String)> {
        let (messages, deliveries) = (Shape::counts(MESSAGES), Shape::counts(MAX_DELIVERIES));
        [
            ("messages", messages.has(self.messages.into()), messages.to_string()),
            ("bytes", BYTES.has(self.bytes), BYTES.to_string()),
            ("max-deliveries", deliveries.has(self.max_deliveries.into()), deliveries.to_string()),
        ]
        .into_iter()
        .filter_map(|(key, within, must_be)| (!within).then_some((key, must_be)))
        .collect()
    }

    /// Why `when-full` contradicts `store`.
    pub(super) fn contradiction(&self) -> Option<String> {
        let is_lossy = !matches!(self.when_full, QueuePolicy::Reject | QueuePolicy::Block);
        (self.store.is_some() && is_lossy).then(|| {
            format!(
                "`when-full` is `{}`, and a queue with a `store` loses no job: `reject` or `block`",
                self.when_full
            )
        })
    }
}

/// The settings of a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicConfig {
    /// Whether Main keeps the last event for later subscribers.
    pub retain: bool,
}

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
