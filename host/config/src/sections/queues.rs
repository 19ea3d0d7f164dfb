//! The keys of queues and topics.

use weir_names::{ContractName, QueueName, Topic, TopicPattern};

use super::{CONTRACT, QUEUE, named};
use crate::{
    QueueConfig, TopicConfig,
    error::{Location, quote},
    policy,
    queue::{BYTES, MAX_DELIVERIES, MESSAGES},
    section::{Located, Section},
};

#[derive(Debug)]
pub(crate) struct QueueDraft {
    pub(crate) config: QueueConfig,
    pub(crate) dead_letter: Option<Location>,
    pub(crate) store: Option<Location>,
}

/// `None` after reporting a faulty name.
pub(super) fn queue(
    section: &mut Section<'_, '_>,
    name: &Located<&str>,
) -> Option<(Located<QueueName>, QueueDraft)> {
    let errors = section.error_count();
    let messages = section.count("messages", MESSAGES);
    let bytes = section.number("bytes", &BYTES);
    let when_full = section.text("when-full", policy::OF_JOBS, policy::of_jobs);
    let max_deliveries = section.count("max-deliveries", MAX_DELIVERIES);
    let dead_letter = section.text("dead-letter", QUEUE, str::parse::<QueueName>);
    let store = section.text("store", CONTRACT, str::parse::<ContractName>);

    let new = QueueConfig::default();
    let (when_full, when_full_at) = when_full.map(|at| (at.value, at.location)).unzip();
    let (dead_letter, dead_letter_at) = dead_letter.map(|at| (at.value, at.location)).unzip();
    let (store, store_at) = store.map(|at| (at.value, at.location)).unzip();
    let config = QueueConfig {
        messages: messages.map_or(new.messages, Located::into_value),
        bytes: bytes.map_or(new.bytes, Located::into_value),
        when_full: when_full.unwrap_or(new.when_full),
        max_deliveries: max_deliveries.map_or(new.max_deliveries, Located::into_value),
        dead_letter,
        store,
    };
    if let Some(message) = config.contradiction().filter(|_| section.error_count() == errors) {
        section.contradiction([("when-full", when_full_at), ("store", store_at.clone())], &message);
    }
    let name = named(section, "queue", name, str::parse)?;
    Some((name, QueueDraft { config, dead_letter: dead_letter_at, store: store_at }))
}

pub(super) fn topic(
    section: &mut Section<'_, '_>,
    name: &Located<&str>,
) -> Option<(Located<Topic>, TopicConfig)> {
    section.explain_tables("a topic with dots needs quotes, as in `[topic.\"settings.changed\"]`");
    let retain = section.flag("retain");
    let name = named(section, "topic", name, one_topic)?;
    Some((name, TopicConfig { retain: retain.unwrap_or_default() }))
}

fn one_topic(text: &str) -> Result<Topic, String> {
    text.parse::<Topic>().map_err(|error| match text.parse::<TopicPattern>() {
        Ok(_) => format!(
            "{} stands for many topics, and a retained topic is one: give each a table of its own",
            quote(text)
        ),
        Err(_) => error.to_string(),
    })
}
