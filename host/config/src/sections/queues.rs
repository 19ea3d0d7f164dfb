//! The keys of queues and topics.

use weir_names::{QueueName, Topic, TopicPattern};

use super::{QUEUE, named};
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
}

/// `None` after reporting a faulty name.
pub(super) fn queue(
    section: &mut Section<'_, '_>,
    name: &Located<&str>,
) -> Option<(Located<QueueName>, QueueDraft)> {
    let messages = section.count("messages", MESSAGES);
    let bytes = section.number("bytes", &BYTES);
    let when_full = section.text("when-full", policy::OF_JOBS, policy::of_jobs);
    let max_deliveries = section.count("max-deliveries", MAX_DELIVERIES);
    let dead_letter = section.text("dead-letter", QUEUE, str::parse::<QueueName>);

    let new = QueueConfig::default();
    let (dead_letter, dead_letter_at) = dead_letter.map(|at| (at.value, at.location)).unzip();
    let config = QueueConfig {
        messages: messages.map_or(new.messages, Located::into_value),
        bytes: bytes.map_or(new.bytes, Located::into_value),
        when_full: when_full.map_or(new.when_full, Located::into_value),
        max_deliveries: max_deliveries.map_or(new.max_deliveries, Located::into_value),
        dead_letter,
    };
    let name = named(section, "queue", name, str::parse)?;
    Some((name, QueueDraft { config, dead_letter: dead_letter_at }))
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
