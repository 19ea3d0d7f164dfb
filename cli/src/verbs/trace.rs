//! `weir trace`, and the trace of one call.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::Context;
use comfy_table::{Cell, Color};
use serde::Deserialize;
use serde_json::Value;
use weir_host::traces::{Span, SpanId, SpanKind, TraceId};

use crate::{
    args::Target,
    client::{Client, Route},
    exit::Usage,
    output::{self, printable},
    tables::{NOTHING, finish, table},
};

/// The most spans of one answer of Main.
const AT_ONCE: &str = "4096";

const UNREADABLE: &str = "cannot read the spans of Main; is it of another version?";

/// The most levels of a tree that are indented.
const MAX_DEPTH: usize = 64;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Main records the calls, jobs and events that `main.trace-one-in` selects, and those that `weir call --trace`
asks for. AT is the time since the trace began. WAITED is the time until the receiver took the message, WORKED
that until the outcome. FUEL is what the receiver used meanwhile. docs/tracing.md says more.

Examples:
  weir call --trace settings@1 get '{\"key\": \"volume\"}'
  weir trace
  weir trace 0af7651916cd43dd8448eb211c80319c
  weir trace --slow --number 5")]
pub(crate) struct Args {
    /// The trace to show; by default, the last traces, a line for each
    #[arg(value_name = "TRACE", conflicts_with_all = ["slow", "number"])]
    trace: Option<TraceId>,
    /// List the slowest of the traces that Main still has, the slowest first
    #[arg(long)]
    slow: bool,
    /// How many traces to list
    #[arg(long, value_name = "N", default_value_t = 20)]
    number: usize,
    /// Print JSON: the spans of the trace, or all that Main has
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: Target,
}

#[derive(Deserialize)]
struct Spans {
    spans: Vec<Value>,
    recorded: u64,
}

pub(super) async fn run(Args { trace, slow, number, json, target }: Args) -> anyhow::Result<()> {
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
        None => traces(&spans, slow, number),
        Some(trace) => tree(&spans, trace)?,
    };
    output::write(text.as_bytes())
}

/// Asks Main for its spans, and shows those of one trace as a tree.
pub(super) async fn of_call(client: &mut Client, trace: TraceId) -> anyhow::Result<String> {
    tree(&understood(recorded(client).await?)?, trace)
}

fn tree(spans: &[Span], trace: TraceId) -> anyhow::Result<String> {
    spans_of(spans, trace).ok_or_else(|| {
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

/// Asks Main for all spans that it has, oldest first.
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
        // A busy Main may record faster than this reads. So this ends once it has what the first answer counts.
        until = until.min(recorded);
        if spans.is_empty() || after >= until {
            return Ok(all);
        }
        all.extend(spans);
    }
}

/// Makes the table of `weir trace`: a line for each trace.
fn traces(spans: &[Span], is_slowest: bool, max: usize) -> String {
    if spans.is_empty() {
        return "no traces are recorded; `weir call --trace` records one, and `main.trace-one-in` selects some\n"
            .to_owned();
    }
    let mut all: BTreeMap<TraceId, Vec<&Span>> = BTreeMap::new();
    for span in spans {
        all.entry(span.trace).or_default().push(span);
    }
    let mut all: Vec<_> = all.into_values().map(|mut spans| (in_order(&mut spans), spans).1).collect();
    match is_slowest {
        true => all.sort_by_key(|spans| Reverse(length(spans))),
        false => all.sort_by_key(|spans| spans.first().map(|span| span.start)),
    }
    let shown = if is_slowest { 0..max.min(all.len()) } else { all.len().saturating_sub(max)..all.len() };
    let mut table = table(["TRACE", "START", "TOOK", "SPANS", "OUTCOME", "FIRST"]);
    for spans in all.get(shown).unwrap_or_default() {
        let Some(first) = spans.first() else { continue };
        table.add_row(vec![
            Cell::new(first.trace),
            Cell::new(humantime::format_rfc3339_millis(first.start)),
            Cell::new(time(length(spans))),
            Cell::new(spans.len()),
            outcome(spans),
            Cell::new(format!("{} to {}", printable(&first.caller), message(first))),
        ]);
    }
    finish(&table)
}

/// Shows the spans of one trace as a tree. Returns `None` if there are none.
fn spans_of(spans: &[Span], trace: TraceId) -> Option<String> {
    let mut own: Vec<&Span> = spans.iter().filter(|span| span.trace == trace).collect();
    in_order(&mut own);
    let began = own.first()?.start;
    let ids: BTreeSet<SpanId> = own.iter().map(|span| span.span).collect();
    let mut children: BTreeMap<Option<SpanId>, Vec<&Span>> = BTreeMap::new();
    for span in &own {
        // The parent may be of another program, be under way, or be lost.
        let parent = span.parent.filter(|parent| ids.contains(parent));
        children.entry(parent).or_default().push(span);
    }
    let mut table = table(["SPAN", "FROM", "AT", "TOOK", "WAITED", "WORKED", "FUEL", "OUTCOME"]);
    let mut left: Vec<(&Span, Vec<bool>)> = Vec::new();
    push(&mut left, children.remove(&None), &[]);
    while let Some((span, lasts)) = left.pop() {
        let at = span.start.duration_since(began).unwrap_or_default();
        let if_any = |duration: Option<Duration>| duration.map_or(NOTHING.to_owned(), time);
        table.add_row(vec![
            Cell::new(format!("{}{}", branches(&lasts), message(span))),
            Cell::new(printable(&span.caller)),
            Cell::new(time(at)),
            Cell::new(time(span.duration)),
            Cell::new(if_any(span.waited)),
            Cell::new(if_any(span.worked)),
            Cell::new(span.fuel.map_or(NOTHING.to_owned(), |fuel| fuel.to_string())),
            outcome(&[span]),
        ]);
        push(&mut left, children.remove(&Some(span.span)), &lasts);
    }
    let mut text = finish(&table);
    for span in &own {
        if let Some(link) = &span.link {
            text.push_str(&format!("caused by trace {}\n", link.trace));
        }
    }
    let caused = spans.iter().filter(|span| span.link.as_ref().is_some_and(|link| link.trace == trace));
    for span in caused {
        text.push_str(&format!("caused trace {}: {}\n", span.trace, message(span)));
    }
    Some(text)
}

/// Puts the children of a span on the stack, the first on top. `lasts` says for the span and each above it whether it
/// is the last child.
fn push<'s>(left: &mut Vec<(&'s Span, Vec<bool>)>, children: Option<Vec<&'s Span>>, lasts: &[bool]) {
    for (place, span) in children.unwrap_or_default().into_iter().rev().enumerate() {
        let lasts = lasts.iter().copied().chain([place == 0]).collect();
        left.push((span, lasts));
    }
}

/// Draws the lines of the tree in front of a span. A span at the top has none.
fn branches(lasts: &[bool]) -> String {
    let Some((last, above)) = lasts.split_last().filter(|(_, above)| !above.is_empty()) else {
        return String::new();
    };
    let above = above.iter().skip(1).take(MAX_DEPTH).map(|is_last| if *is_last { "   " } else { "│  " });
    let own = if *last { "└─ " } else { "├─ " };
    above.chain([own]).collect()
}

fn in_order(spans: &mut [&Span]) {
    spans.sort_by_key(|span| (span.start, span.number));
}

/// Says what was sent and, unless it is an event, to whom.
fn message(span: &Span) -> String {
    let receiver = span.provider.as_deref().unwrap_or_default();
    let text = match &span.kind {
        SpanKind::Request { contract, operation } => format!("{receiver} {contract} {operation}"),
        SpanKind::Job { queue } => format!("{receiver} queue {queue}"),
        SpanKind::Event { topic } => format!("event {topic}"),
        _ => format!("{receiver} other"),
    };
    printable(&text)
}

/// Shows the first outcome that is an error, or `ok`.
fn outcome(spans: &[&Span]) -> Cell {
    match spans.iter().find(|span| span.outcome != "ok") {
        None => Cell::new("ok"),
        Some(span) => Cell::new(printable(&span.outcome)).fg(Color::Red),
    }
}

/// Returns the time from the beginning of the first span to the end of the last.
fn length(spans: &[&Span]) -> Duration {
    let end = |span: &&Span| span.start + span.duration;
    let (began, ended) = (spans.iter().map(|span| span.start).min(), spans.iter().map(end).max());
    began.zip(ended).and_then(|(began, ended)| ended.duration_since(began).ok()).unwrap_or_default()
}

/// Formats a duration in the unit that fits its length.
fn time(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    match micros {
        0.0..1e3 => format!("{micros:.0} µs"),
        1e3..1e6 => format!("{:.2} ms", micros / 1e3),
        _ => format!("{:.2} s", micros / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The trace of all spans here.
    const TRACE: &str = "00000000000000000000000000000001";

    fn span(id: u64, parent: u64, what: (&str, &str), micros: (u64, u64), outcome: &str) -> Span {
        let (caller, provider) = what;
        serde_json::from_value(serde_json::json!({
            "number": id,
            "trace": TRACE,
            "span": format!("{id:016x}"),
            "parent": (parent > 0).then(|| format!("{parent:016x}")),
            "kind": "request",
            "contract": "c@1",
            "operation": "do",
            "caller": caller,
            "provider": provider,
            "start": format!("2026-11-25T20:00:00.{:06}Z", micros.0),
            "duration-seconds": micros.1 as f64 / 1e6,
            "waited-seconds": 0.000_001,
            "outcome": outcome,
        }))
        .unwrap()
    }

    #[test]
    fn a_trace_is_a_tree_in_the_order_of_time() {
        let spans = [
            span(4, 2, ("b", "d"), (250, 20), "ok"),
            span(3, 2, ("b", "c\u{1b}[31m"), (200, 30), "timeout"),
            span(2, 1, ("a", "b"), (100, 400), "ok"),
            span(5, 1, ("a", "e"), (600, 1500), "ok"),
            span(1, 9, ("main", "a"), (0, 2_500_000), "ok"),
        ];
        let tree = [
            "SPAN                      FROM  AT      TOOK     WAITED  WORKED  FUEL  OUTCOME",
            "a c@1 do                  main  0 µs    2.50 s   1 µs    -       -     ok",
            "├─ b c@1 do               a     100 µs  400 µs   1 µs    -       -     ok",
            "│  ├─ c\\u{1b}[31m c@1 do  b     200 µs  30 µs    1 µs    -       -     timeout",
            "│  └─ d c@1 do            b     250 µs  20 µs    1 µs    -       -     ok",
            "└─ e c@1 do               a     600 µs  1.50 ms  1 µs    -       -     ok",
        ];
        assert_eq!(spans_of(&spans, TRACE.parse().unwrap()).unwrap().lines().collect::<Vec<_>>(), tree);
        assert_eq!(spans_of(&spans, TRACE.replace('1', "2").parse().unwrap()), None);
        let list = [
            "TRACE                             START                     TOOK    SPANS  OUTCOME  FIRST",
            "00000000000000000000000000000001  2026-11-25T20:00:00.000Z  2.50 s  5      timeout  main to a c@1 do",
        ];
        assert_eq!(traces(&spans, true, 9).lines().collect::<Vec<_>>(), list);
    }

    #[test]
    fn spans_that_name_each_other_as_parents_end_the_tree() {
        let spans = [span(1, 2, ("a", "b"), (0, 1), "ok"), span(2, 1, ("a", "b"), (0, 1), "ok")];
        assert!(spans_of(&spans, TRACE.parse().unwrap()).unwrap().starts_with("SPAN"));
    }
}
