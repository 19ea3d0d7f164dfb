//! Endless answers: one JSON object a line, until the client leaves or Main has stopped everything else.

use std::{collections::VecDeque, convert::Infallible, future::Future, sync::Arc};

use axum::{
    body::{Body, Bytes},
    extract::{Query, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use serde_json::{json, value::RawValue};
use tokio::sync::OwnedSemaphorePermit;
use weir_host::{
    attached::Closed,
    client::{ReceivedEvent, Subscriber},
    events::MainEvents,
    logs::{LogLine, LogLines, NextLine},
};

use super::{
    error::Refusal,
    routes::{MAX_LOOKED_AT, QueryOf, ServerState},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsQuery {
    pattern: String,
}

pub(super) async fn events(
    State(served): State<ServerState>,
    query: QueryOf<EventsQuery>,
) -> Result<Response, Refusal> {
    let Query(EventsQuery { pattern }) = query?;
    let permit = permit(&served)?;
    let subscriber = served.client.subscribe(&pattern)?;
    Ok(lines(subscriber, served.closed, permit))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogsQuery {
    extension: Option<String>,
    /// How many past lines to send at most: the last ones.
    lines: Option<usize>,
    #[serde(default)]
    follow: bool,
}

pub(super) async fn logs(
    State(served): State<ServerState>,
    query: QueryOf<LogsQuery>,
) -> Result<Response, Refusal> {
    let Query(LogsQuery { extension, lines: wanted, follow }) = query?;
    if let Some(id) = &extension {
        served.control.status(id)?;
    }
    let permit = permit(&served)?;
    let (kept, next) = served.control.follow_logs();
    let is_meant = |line: &Arc<LogLine>| extension.as_deref().is_none_or(|id| *line.extension == *id);
    let mut kept: VecDeque<_> = kept.into_iter().filter(is_meant).collect();
    kept.drain(..kept.len().saturating_sub(wanted.unwrap_or(usize::MAX)));
    let source = LogSource { kept, next: follow.then_some(next), extension };
    Ok(lines(source, served.closed, permit))
}

pub(super) async fn main_events(State(served): State<ServerState>) -> Result<Response, Refusal> {
    let permit = permit(&served)?;
    Ok(lines(served.control.events(), served.closed, permit))
}

fn permit(served: &ServerState) -> Result<OwnedSemaphorePermit, Refusal> {
    served.streams.clone().try_acquire_owned().map_err(|_| {
        let message = "too many streams are open; end one of them";
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too-many-streams", message)
    })
}

/// What an endless answer gets its lines from.
trait Source: Send + 'static {
    /// The next line without its line end, or `None` after the last.
    fn next_line(&mut self) -> impl Future<Output = Option<String>> + Send;
}

fn lines(source: impl Source, closed: Closed, permit: OwnedSemaphorePermit) -> Response {
    let body = stream::unfold((source, closed, permit), |(mut source, mut closed, permit)| async move {
        let mut line = tokio::select! {
            // Pending lines go out before the end.
            biased;
            line = source.next_line() => line?,
            () = closed.wait() => return None,
        };
        line.push('\n');
        Some((Ok::<_, Infallible>(Bytes::from(line)), (source, closed, permit)))
    });
    ([(header::CONTENT_TYPE, "application/x-ndjson")], Body::from_stream(body)).into_response()
}

impl Source for Subscriber {
    async fn next_line(&mut self) -> Option<String> {
        let event = self.next().await?;
        // Receiving an event takes nothing of tokio's budget, so other tasks would wait while events are there.
        tokio::task::coop::consume_budget().await;
        Some(to_json(&EventLine::new(&event)))
    }
}

struct LogSource {
    /// Past lines, which are sent first.
    kept: VecDeque<Arc<LogLine>>,
    /// The lines to come. `None` if the client does not want them.
    next: Option<LogLines>,
    extension: Option<String>,
}

impl Source for LogSource {
    async fn next_line(&mut self) -> Option<String> {
        if let Some(line) = self.kept.pop_front() {
            return Some(to_json(&line));
        }
        let next = self.next.as_mut()?;
        loop {
            match next.next().await? {
                NextLine::Line(line) if self.extension.as_deref().is_none_or(|id| *line.extension == *id) => {
                    return Some(to_json(&line));
                }
                NextLine::Line(_) => {}
                NextLine::Missed(missed) => return Some(to_json(&json!({ "missed": missed }))),
            }
        }
    }
}

impl Source for MainEvents {
    async fn next_line(&mut self) -> Option<String> {
        Some(to_json(&self.next().await?))
    }
}

/// A payload in one of three forms: as JSON, as text if it is no JSON or too long to tell, or in Base64 if it is no
/// UTF-8.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct PayloadFields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
}

impl<'a> PayloadFields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let text = std::str::from_utf8(bytes).ok();
        let payload = text.and_then(on_one_line);
        Self {
            payload_text: text.filter(|_| payload.is_none()),
            payload_base64: text.is_none().then(|| BASE64_STANDARD.encode(bytes)),
            payload,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct EventLine<'a> {
    topic: &'a str,
    sender: &'a str,
    sequence: u64,
    lost: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    retained: bool,
    #[serde(flatten)]
    payload: PayloadFields<'a>,
}

impl<'a> EventLine<'a> {
    fn new(event: &'a ReceivedEvent) -> Self {
        Self {
            topic: event.topic.as_str(),
            sender: &event.sender,
            sequence: event.sequence,
            lost: event.lost,
            retained: event.retained,
            payload: PayloadFields::new(&event.payload),
        }
    }
}

/// JSON on one line, otherwise unchanged. Line ends are outside JSON's strings, where any white space will do. `None`
/// if the text is no JSON, or has more than [`MAX_LOOKED_AT`] bytes.
fn on_one_line(text: &str) -> Option<Box<RawValue>> {
    (text.len() <= MAX_LOOKED_AT).then(|| RawValue::from_string(text.replace(['\n', '\r'], " ")).ok())?
}

fn to_json<T: Serialize + ?Sized>(value: &T) -> String {
    // Everything streamed fits into JSON.
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(payload: &[u8]) -> String {
        let payload = PayloadFields::new(payload);
        to_json(&EventLine { topic: "a.b", sender: "main", sequence: 1, lost: 0, retained: false, payload })
    }

    #[test]
    fn json_travels_as_json_on_one_line_with_its_numbers_intact() {
        let line = line(b"{\n  \"n\": 12345678901234567890123,\r\n  \"s\": \"a\\nb\"\n}");
        assert!(!line.contains('\n'), "{line}");
        assert!(line.contains("12345678901234567890123"), "{line}");
    }

    #[test]
    fn what_is_no_json_travels_as_text_and_what_is_no_text_as_base64() {
        assert!(line(b"two words").ends_with(r#""payload-text":"two words"}"#));
        assert!(line(b"").ends_with(r#""payload-text":""}"#));
        assert!(line(b"\xff\x00").ends_with(r#""payload-base64":"/wA="}"#));
    }
}
