//! Topics, subscriptions, queues and jobs as text for people.

use std::time::SystemTime;

use weir_host::traffic::{QueueStatus, SubscriptionStatus, TopicStatus, TopicsReport};

use super::{NOTHING, age, finish, size, table};
use crate::{
    model::{Job, Queues},
    output::printable,
    payload,
};

/// Characters shown of a payload.
const SHOWN: usize = 60;

pub(crate) fn topics(TopicsReport { topics, subscriptions, .. }: &TopicsReport) -> String {
    let topics = if topics.is_empty() { "no topics\n".to_owned() } else { known(topics) };
    let subscriptions =
        if subscriptions.is_empty() { "no subscriptions\n".to_owned() } else { subscribed(subscriptions) };
    format!("{topics}\n{subscriptions}")
}

fn known(topics: &[TopicStatus]) -> String {
    let header = ["TOPIC", "SEQUENCE", "RATE/S", "SUBSCRIPTIONS", "DELIVERED", "SHED", "REFUSED", "RETAINED"];
    let mut table = table(header);
    table.add_rows(topics.iter().map(|topic| {
        let retained = match (topic.retain, topic.retained_bytes) {
            (false, _) => NOTHING.to_owned(),
            (true, None) => "nothing yet".to_owned(),
            (true, Some(bytes)) => size(bytes),
        };
        [
            topic.topic.to_string(),
            topic.sequence.to_string(),
            topic.rate.to_string(),
            topic.subscriptions.to_string(),
            topic.delivered.to_string(),
            topic.shed.to_string(),
            topic.refused.to_string(),
            retained,
        ]
    }));
    finish(&table)
}

fn subscribed(subscriptions: &[SubscriptionStatus]) -> String {
    let header =
        ["SUBSCRIBER", "PATTERN", "POLICY", "LAG", "BYTES", "BLOCKED", "RECEIVED", "SHED", "REFUSED"];
    let mut table = table(header);
    table.add_rows(subscriptions.iter().map(|subscription| {
        [
            printable(&subscription.subscriber),
            subscription.pattern.to_string(),
            printable(&subscription.policy),
            of(subscription.waiting.to_string(), subscription.messages_limit.map(|limit| limit.to_string())),
            of(size(subscription.bytes), subscription.bytes_limit.map(size)),
            subscription.blocked.to_string(),
            subscription.received.to_string(),
            subscription.shed.to_string(),
            subscription.refused.to_string(),
        ]
    }));
    finish(&table)
}

pub(crate) fn queues(Queues { queues }: &Queues) -> String {
    if queues.is_empty() {
        return "no queues are configured\n".to_owned();
    }
    let header = [
        "QUEUE",
        "WAITING",
        "IN HAND",
        "LIMIT",
        "BYTES",
        "PUT/S",
        "DONE/S",
        "DONE",
        "RETURNED",
        "DEAD",
        "SHED",
        "REFUSED",
        "IDLE",
        "BLOCKED",
        "WHEN FULL",
    ];
    let mut table = table(header);
    table.add_rows(queues.iter().map(|queue: &QueueStatus| {
        [
            queue.queue.to_string(),
            queue.waiting.to_string(),
            queue.in_hand.to_string(),
            queue.messages_limit.to_string(),
            of(size(queue.bytes), Some(size(queue.bytes_limit))),
            queue.put_rate.to_string(),
            queue.done_rate.to_string(),
            queue.done.to_string(),
            queue.returned.to_string(),
            queue.dead.to_string(),
            queue.shed.to_string(),
            queue.refused.to_string(),
            queue.idle_readers.to_string(),
            queue.blocked.to_string(),
            if queue.configured { printable(&queue.when_full) } else { "no longer configured".to_owned() },
        ]
    }));
    finish(&table)
}

pub(crate) fn jobs(queue: &str, jobs: &[Job], now: SystemTime) -> String {
    if jobs.is_empty() {
        return format!("no job waits in `{}`\n", printable(queue));
    }
    let mut table = table(["ID", "SENDER", "AGE", "DELIVERIES", "DIED", "BYTES", "PAYLOAD"]);
    table.add_rows(jobs.iter().map(|shown| {
        let job = &shown.status;
        let died = job.died_in.as_ref().map_or(NOTHING.to_owned(), |queue| {
            format!("in {queue} after {}", job.died_after.unwrap_or_default())
        });
        [
            job.id.to_string(),
            printable(&job.sender),
            age(job.put, now),
            job.deliveries.to_string(),
            died,
            size(job.bytes as u64),
            shortened(shown),
        ]
    }));
    finish(&table)
}

fn of(used: String, limit: Option<String>) -> String {
    match limit {
        Some(limit) => format!("{used} / {limit}"),
        None => used,
    }
}

fn shortened(job: &Job) -> String {
    let Job { payload, payload_text, payload_base64, .. } = job;
    let shown = payload::shown(payload.as_deref(), payload_text.as_deref(), payload_base64.as_deref());
    let shown = shown.unwrap_or(NOTHING.to_owned());
    match shown.char_indices().nth(SHOWN).and_then(|(end, _)| shown.get(..end)) {
        Some(beginning) => format!("{beginning}…"),
        None => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::assert_golden, *};
    use crate::model::Jobs;

    fn fixture<T: serde::de::DeserializeOwned>(key: &str) -> T {
        let json = include_str!("../../tests/golden/traffic.json");
        let mut all: serde_json::Map<_, _> = serde_json::from_str(json).unwrap();
        serde_json::from_value(all.remove(key).unwrap()).unwrap()
    }

    fn now() -> SystemTime {
        humantime::parse_rfc3339("2026-11-20T13:29:43.000Z").unwrap()
    }

    #[test]
    fn topics_line_up_with_those_who_have_subscribed() {
        assert_golden("topics", &topics(&fixture("topics")));
    }

    #[test]
    fn queues_line_up_with_what_became_of_their_jobs() {
        assert_golden("queues", &queues(&fixture("queues")));
    }

    #[test]
    fn jobs_line_up_with_where_they_died_and_the_beginning_of_what_they_are() {
        assert_golden("jobs", &jobs("uploads-dead", &fixture::<Jobs>("jobs").jobs, now()));
    }

    #[test]
    fn where_there_is_nothing_it_is_said_so() {
        let nothing = serde_json::from_str(r#"{"topics":[],"subscriptions":[]}"#).unwrap();
        assert_eq!(topics(&nothing), "no topics\n\nno subscriptions\n");
        assert_eq!(queues(&Queues { queues: Vec::new() }), "no queues are configured\n");
        assert_eq!(jobs("uploads", &[], now()), "no job waits in `uploads`\n");
    }

    #[test]
    fn payloads_from_outside_cannot_play_with_the_terminal() {
        let mut all: Jobs = fixture("jobs");
        all.jobs[0].status.sender = "a\x1b[2J".to_owned();
        all.jobs[0].payload_text = Some("\u{9b}2J\u{202e}\nforged".to_owned());
        all.jobs[0].payload = None;
        let text = jobs("uploads", &all.jobs, now());
        assert!(!text.contains(['\x1b', '\u{9b}', '\u{202e}']), "{text}");
        assert_eq!(text.lines().count(), all.jobs.len() + 1, "{text}");
    }
}
