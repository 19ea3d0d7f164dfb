//! `GET /v1/spans`, and the `traceparent` of other requests.

use std::time::Duration;

use axum::{
    extract::{FromRequestParts, Query, State},
    http::request::Parts,
    response::Response,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use weir_host::traces::{RecordedSpans, Span, SpanId, SpanKind, TraceContext, TraceId};

use super::{
    error::Refusal,
    report::report,
    routes::{QueryOf, Served},
};

/// Spans of one answer, unless fewer are asked for.
const SPANS: usize = 1000;

/// Spans that one answer may have.
const MAX_SPANS: usize = 4096;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SpansQuery {
    after: Option<u64>,
    limit: Option<usize>,
    trace: Option<String>,
}

pub(super) async fn all(
    State(served): State<Served>,
    query: QueryOf<SpansQuery>,
) -> Result<Response, Refusal> {
    let Query(SpansQuery { after, limit, trace }) = query?;
    let trace = trace.map(|text| text.parse::<TraceId>()).transpose();
    let trace = trace.map_err(|error| Refusal::invalid(error.to_string()))?;
    let limit = limit.unwrap_or(SPANS).min(MAX_SPANS);
    report(served, move |control| {
        let spans = control.spans(after.unwrap_or_default(), trace, limit);
        let RecordedSpans { instance, recorded, lost, .. } = spans;
        let spans: Vec<_> = spans.spans.iter().map(SpanFields::new).collect();
        let instance = format!("{instance:016x}");
        json!({ "spans": spans, "instance": instance, "recorded": recorded, "lost": lost })
    })
    .await
}

/// The caller's place in a trace, if its request has a `traceparent`.
pub(super) struct Traceparent(pub(super) Option<TraceContext>);

impl FromRequestParts<Served> for Traceparent {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _served: &Served) -> Result<Self, Refusal> {
        let Some(value) = parts.headers.get("traceparent") else { return Ok(Self(None)) };
        // Bytes beyond ASCII are in no `traceparent` either.
        let context = value.to_str().unwrap_or_default().parse::<TraceContext>();
        context.map(|context| Self(Some(context))).map_err(|error| Refusal::invalid(error.to_string()))
    }
}

/// A span as JSON.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct SpanFields<'s> {
    number: u64,
    trace: TraceId,
    span: SpanId,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<SpanId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<TraceContext>,
    #[serde(flatten)]
    message: Message<'s>,
    caller: &'s str,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<&'s str>,
    start: String,
    duration_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    waited_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worked_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fuel: Option<u64>,
    outcome: &'static str,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Message<'s> {
    Request {
        contract: &'s str,
        operation: &'s str,
    },
    Job {
        queue: &'s str,
    },
    Event {
        topic: &'s str,
    },
    /// Of a later version of the host.
    Other,
}

impl<'s> SpanFields<'s> {
    fn new(span: &'s Span) -> Self {
        let message = match &span.kind {
            SpanKind::Request { contract, operation } => {
                Message::Request { contract: contract.as_str(), operation: operation.as_str() }
            }
            SpanKind::Job { queue } => Message::Job { queue: queue.as_str() },
            SpanKind::Event { topic } => Message::Event { topic: topic.as_str() },
            _ => Message::Other,
        };
        Self {
            number: span.number,
            trace: span.trace,
            span: span.span,
            parent: span.parent,
            link: span.link,
            message,
            caller: &span.caller,
            provider: span.provider.as_deref(),
            start: humantime::format_rfc3339_nanos(span.start).to_string(),
            duration_seconds: span.duration.as_secs_f64(),
            waited_seconds: span.waited.as_ref().map(Duration::as_secs_f64),
            worked_seconds: span.worked.as_ref().map(Duration::as_secs_f64),
            fuel: span.fuel,
            outcome: span.outcome,
        }
    }
}
