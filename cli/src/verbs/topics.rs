//! `weir topics`: topics and their subscribers.

use clap_complete::engine::ArgValueCompleter;
use serde_json::Value;
use weir_host::{
    names::TopicPattern,
    traffic::{SubscriptionStatus, TopicStatus, TopicsReport},
};

use crate::{
    args::Asked,
    client::{Client, Route},
    complete,
    exit::Usage,
    output::printable,
    tables::{NOTHING, lined_up, size},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
SEQUENCE is the number of the topic's last event, and RETAINED the size of its retained value. LAG is waiting
events and their limit. SHED is events lost for want of room, REFUSED is refused events, and BLOCKED is
publishers that wait for room.

Examples:
  weir topics
  weir topics 'settings.changed.*'
  weir topics --json | jq '.subscriptions[] | select(.shed > 0) | .subscriber'")]
pub(crate) struct Args {
    /// Only topics that match, and subscriptions that can get their events
    #[arg(value_name = "PATTERN", add = ArgValueCompleter::new(complete::topic_pattern))]
    pattern: Option<String>,
    #[command(flatten)]
    asked: Asked,
}

pub(super) async fn run(Args { pattern, asked }: Args) -> anyhow::Result<()> {
    if let Some(pattern) = &pattern {
        pattern.parse::<TopicPattern>().map_err(|error| Usage(error.to_string()))?;
    }
    let mut report: Value = Client::connect(&asked.target).await?.get(&Route::new(&["topics"])).await?;
    if let Some(pattern) = &pattern {
        narrow(&mut report, pattern);
    }
    asked.print(report, topics)
}

/// Keeps the topics that match a pattern, and the subscriptions that may receive an event of such a topic.
fn narrow(report: &mut Value, pattern: &str) {
    for (list, name) in [("topics", "topic"), ("subscriptions", "pattern")] {
        if let Some(items) = report.get_mut(list).and_then(Value::as_array_mut) {
            items.retain(|item| {
                item.get(name).and_then(Value::as_str).is_some_and(|name| meet(name, pattern))
            });
        }
    }
}

/// Whether some topic matches both patterns.
fn meet(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.split('.'), other.split('.'));
    loop {
        match (one.next(), other.next()) {
            (None, None) => return true,
            (Some(">"), Some(_)) | (Some(_), Some(">")) => return true,
            (Some(a), Some(b)) if a == b || a == "*" || b == "*" => {}
            _ => return false,
        }
    }
}

fn topics(TopicsReport { topics, subscriptions, .. }: TopicsReport) -> String {
    let topics = if topics.is_empty() { "no topics\n".to_owned() } else { known(&topics) };
    let subscriptions =
        if subscriptions.is_empty() { "no subscriptions\n".to_owned() } else { subscribed(&subscriptions) };
    format!("{topics}\n{subscriptions}")
}

fn known(topics: &[TopicStatus]) -> String {
    lined_up(
        topics,
        &[
            ("TOPIC", &|of| of.topic.to_string()),
            ("SEQUENCE", &|of| of.sequence.to_string()),
            ("RATE/S", &|of| of.rate.to_string()),
            ("SUBSCRIPTIONS", &|of| of.subscriptions.to_string()),
            ("DELIVERED", &|of| of.delivered.to_string()),
            ("SHED", &|of| of.shed.to_string()),
            ("REFUSED", &|of| of.refused.to_string()),
            ("RETAINED", &retained),
        ],
    )
}

fn retained(topic: &TopicStatus) -> String {
    match (topic.retain, topic.retained_bytes) {
        (false, _) => NOTHING.to_owned(),
        (true, None) => "nothing yet".to_owned(),
        (true, Some(bytes)) => size(bytes),
    }
}

fn subscribed(subscriptions: &[SubscriptionStatus]) -> String {
    lined_up(
        subscriptions,
        &[
            ("SUBSCRIBER", &|of| printable(&of.subscriber)),
            ("PATTERN", &|of| of.pattern.to_string()),
            ("POLICY", &|of| printable(&of.policy)),
            ("LAG", &|of| bounded(of.waiting.to_string(), of.messages_limit.map(|limit| limit.to_string()))),
            ("BYTES", &|of| bounded(size(of.bytes), of.bytes_limit.map(size))),
            ("BLOCKED", &|of| of.blocked.to_string()),
            ("RECEIVED", &|of| of.received.to_string()),
            ("SHED", &|of| of.shed.to_string()),
            ("REFUSED", &|of| of.refused.to_string()),
        ],
    )
}

/// Shows what is used, and the limit if there is one.
fn bounded(used: String, limit: Option<String>) -> String {
    match limit {
        Some(limit) => format!("{used} / {limit}"),
        None => used,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tables::{assert_golden, traffic};

    #[test]
    fn patterns_meet_where_one_topic_matches_both() {
        for (one, other) in
            [("a.b", "a.b"), ("a.b", "a.*"), ("a.*", "*.b"), ("a.>", "a.*.c"), (">", "a"), ("a.>", "*.>")]
        {
            assert!(meet(one, other) && meet(other, one), "{one} {other}");
        }
        for (one, other) in [("a.b", "a"), ("a.b", "a.c"), ("a.>", "a"), ("a.*", "a.b.c"), ("a.>", "b.>")] {
            assert!(!meet(one, other) && !meet(other, one), "{one} {other}");
        }
    }

    #[test]
    fn a_pattern_leaves_what_it_concerns_of_both_lists() {
        let mut report = json!({
            "topics": [{ "topic": "a.b" }, { "topic": "c" }],
            "subscriptions": [{ "pattern": ">" }, { "pattern": "*.b" }, { "pattern": "c" }],
        });
        narrow(&mut report, "a.*");
        let left = json!({ "topics": [{ "topic": "a.b" }], "subscriptions": [{ "pattern": ">" }, { "pattern": "*.b" }] });
        assert_eq!(report, left);
    }

    #[test]
    fn topics_line_up_with_those_who_have_subscribed() {
        assert_golden("topics", &topics(traffic("topics")));
    }

    #[test]
    fn where_there_is_nothing_it_is_said_so() {
        let nothing = serde_json::from_str(r#"{"topics":[],"subscriptions":[]}"#).unwrap();
        assert_eq!(topics(nothing), "no topics\n\nno subscriptions\n");
    }
}
