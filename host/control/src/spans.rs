//! `GET /v1/spans`, and the `traceparent` of other requests.

use axum::{
    extract::{FromRequestParts, Query, State},
    http::request::Parts,
    response::Response,
};
use serde::Deserialize;
use serde_json::json;
use weir_host::traces::{RecordedSpans, TraceContext, TraceId};

use super::{
    error::Refusal,
    report::report,
    routes::{QueryOf, ServerState},
};

/// The most spans of an answer, if the request has no `limit`.
const SPANS: usize = 1000;

/// The most spans of an answer, whatever `limit` the request has.
const MAX_SPANS: usize = 4096;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SpansQuery {
    after: Option<u64>,
    limit: Option<usize>,
    trace: Option<String>,
}

pub(super) async fn all(
    State(served): State<ServerState>,
    query: QueryOf<SpansQuery>,
) -> Result<Response, Refusal> {
    let Query(SpansQuery { after, limit, trace }) = query?;
    let trace = trace.map(|text| text.parse::<TraceId>()).transpose();
    let trace = trace.map_err(|error| Refusal::invalid(error.to_string()))?;
    let limit = limit.unwrap_or(SPANS).min(MAX_SPANS);
    report(served, move |control| {
        let RecordedSpans { spans, instance, recorded, lost, .. } =
            control.spans(after.unwrap_or_default(), trace, limit);
        let instance = format!("{instance:016x}");
        json!({ "spans": spans, "instance": instance, "recorded": recorded, "lost": lost })
    })
    .await
}

/// The caller's place in a trace, if its request has a `traceparent`.
pub(super) struct Traceparent(pub(super) Option<TraceContext>);

impl FromRequestParts<ServerState> for Traceparent {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _served: &ServerState) -> Result<Self, Refusal> {
        let Some(value) = parts.headers.get("traceparent") else { return Ok(Self(None)) };
        // A value with bytes beyond ASCII counts as an empty one, which is refused.
        let context = value.to_str().unwrap_or_default().parse::<TraceContext>();
        context.map(|context| Self(Some(context))).map_err(|error| Refusal::invalid(error.to_string()))
    }
}
