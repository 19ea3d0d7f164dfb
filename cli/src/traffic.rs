//! `weir topics` and `weir queues`.

use std::time::SystemTime;

use anyhow::Context;
use bytes::Bytes;
use hyper::Method;
use serde::de::DeserializeOwned;
use serde_json::{Value, value::RawValue};
use weir_host::names::TopicPattern;

use crate::{
    args::{Asked, PutArgs, QueuesArgs, QueuesCommand, RequeueArgs, ShowArgs, TopicsArgs},
    client::{Client, Patience, Route},
    exit::Usage,
    model,
    output::{self, counted, printable},
    payload::payload,
    tables,
};

pub(crate) async fn topics(
    TopicsArgs { pattern, asked: Asked { json, target } }: TopicsArgs,
) -> anyhow::Result<()> {
    if let Some(pattern) = &pattern {
        pattern.parse::<TopicPattern>().map_err(|error| Usage(error.to_string()))?;
    }
    let mut report: Value = Client::connect(&target).await?.get(&Route::new(&["topics"])).await?;
    if let Some(pattern) = &pattern {
        narrow(&mut report, pattern);
    }
    if json { output::json(&report) } else { output::write(tables::topics(&understood(report)?).as_bytes()) }
}

pub(crate) async fn queues(QueuesArgs { command, asked }: QueuesArgs) -> anyhow::Result<()> {
    match command {
        None => list(asked).await,
        Some(QueuesCommand::Show(args)) => show(args).await,
        Some(QueuesCommand::Put(args)) => put(args).await,
        Some(QueuesCommand::Requeue(args)) => requeue(args).await,
    }
}

async fn list(Asked { json, target }: Asked) -> anyhow::Result<()> {
    let report: Value = Client::connect(&target).await?.get(&Route::new(&["queues"])).await?;
    if json { output::json(&report) } else { output::write(tables::queues(&understood(report)?).as_bytes()) }
}

async fn show(ShowArgs { queue, max, asked: Asked { json, target } }: ShowArgs) -> anyhow::Result<()> {
    let route = Route::named(&["queues", &queue, "jobs"])?.with("max", Some(&max.to_string()));
    let mut client = Client::connect(&target).await?;
    if json {
        // Main's own text: numbers in payloads may have more digits than Rust's types.
        let answer: Box<RawValue> = client.get(&route).await?;
        return output::json_line(answer.get().as_bytes());
    }
    let model::Jobs { jobs } = client.get(&route).await?;
    output::write(tables::jobs(&queue, &jobs, SystemTime::now()).as_bytes())
}

async fn put(PutArgs { queue, payload: text, asked: Asked { json, target } }: PutArgs) -> anyhow::Result<()> {
    let route = Route::named(&["queues", &queue, "jobs"])?;
    let payload = payload(text.as_deref())?;
    let mut client = Client::connect(&target).await?;
    let answer = client.ask(Method::POST, &route, payload, Patience::WhileMainAnswers).await?;
    let answer: Value = serde_json::from_slice(&answer)?;
    if json {
        return output::json(&answer);
    }
    let model::Put { id } = understood(answer)?;
    output::line(&format!("put as job {id}"))
}

async fn requeue(
    RequeueArgs { queue, id, all: _, asked: Asked { json, target } }: RequeueArgs,
) -> anyhow::Result<()> {
    let id = id.map(|id| id.to_string());
    let route = Route::named(&["queues", &queue, "requeue"])?.with("id", id.as_deref());
    let mut client = Client::connect(&target).await?;
    let answer = client.ask(Method::POST, &route, Bytes::new(), Patience::Query).await?;
    let answer: Value = serde_json::from_slice(&answer)?;
    if json {
        return output::json(&answer);
    }
    output::line(&match understood(answer)? {
        model::Requeued { requeued: 0 } => format!("no dead letter waits in `{}`", printable(&queue)),
        model::Requeued { requeued } => format!("requeued {}", counted(requeued, "job")),
    })
}

fn understood<T: DeserializeOwned>(answer: Value) -> anyhow::Result<T> {
    serde_json::from_value(answer).context("cannot read the answer of Main; is it of another version?")
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
}
