//! `weir trace`, and the trace of one call.

use anyhow::Context;
use serde_json::Value;
use weir_host::traces::{Span, TraceId};

use crate::{
    args::TraceArgs,
    client::{Client, Route},
    exit::Usage,
    model::Spans,
    output, tables,
};

/// Spans of one answer of Main.
const AT_ONCE: &str = "4096";

const UNREADABLE: &str = "cannot read the spans of Main; is it of another version?";

pub(crate) async fn trace(args: TraceArgs) -> anyhow::Result<()> {
    let TraceArgs { trace, slow, number, json, target } = args;
    let mut client = Client::connect(&target).await?;
    let mut spans = recorded(&mut client).await?;
    if json {
        if let Some(trace) = trace.map(|trace| trace.to_string()) {
            spans.retain(|span| span.get("trace").and_then(Value::as_str) == Some(&trace));
        }
        return output::json(&spans);
    }
    let spans = understood(spans)?;
    let text = match trace {
        None => tables::traces(&spans, slow, number),
        Some(trace) => tree(&spans, trace)?,
    };
    output::write(text.as_bytes())
}

/// The tree of one trace.
pub(crate) async fn of_call(client: &mut Client, trace: TraceId) -> anyhow::Result<String> {
    tree(&understood(recorded(client).await?)?, trace)
}

fn tree(spans: &[Span], trace: TraceId) -> anyhow::Result<String> {
    tables::trace(spans, trace).ok_or_else(|| {
        let text = format!(
            "Main has no span of trace `{trace}`: it was not sampled, has not ended, or was dropped for later ones; \
             `weir trace` lists what is there"
        );
        Usage(text).into()
    })
}

fn understood(spans: Vec<Value>) -> anyhow::Result<Vec<Span>> {
    serde_json::from_value(Value::Array(spans)).context(UNREADABLE)
}

/// All spans that Main has, oldest first.
async fn recorded(client: &mut Client) -> anyhow::Result<Vec<Value>> {
    let mut all: Vec<Value> = Vec::new();
    let mut until = u64::MAX;
    loop {
        let after = match all.last() {
            Some(span) => span.get("number").and_then(Value::as_u64).context(UNREADABLE)?,
            None => 0,
        };
        let route =
            Route::new(&["spans"]).with("limit", Some(AT_ONCE)).with("after", Some(&after.to_string()));
        let Spans { spans, recorded } = client.get(&route).await?;
        // A busy Main may record faster than this reads.
        until = until.min(recorded);
        if spans.is_empty() || after >= until {
            return Ok(all);
        }
        all.extend(spans);
    }
}
