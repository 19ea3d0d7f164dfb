//! Traces as text for people.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    time::{Duration, SystemTime},
};

use comfy_table::{Cell, Color};

use super::{NOTHING, finish, table};
use crate::{model::Span, output::printable};

/// Levels of a tree that are indented.
const MAX_DEPTH: usize = 64;

/// The list of `weir trace`.
pub(crate) fn traces(spans: &[Span], is_slowest: bool, max: usize) -> String {
    if spans.is_empty() {
        return "no traces are recorded; `weir call --trace` records one, and `main.trace-one-in` selects some\n"
            .to_owned();
    }
    let mut all: BTreeMap<&str, Vec<&Span>> = BTreeMap::new();
    for span in spans {
        all.entry(&span.trace).or_default().push(span);
    }
    let mut all: Vec<_> = all.into_values().map(|mut spans| (in_order(&mut spans), spans).1).collect();
    match is_slowest {
        true => all.sort_by_key(|spans| Reverse(length(spans))),
        false => all.sort_by_key(|spans| spans.first().map(|span| start(span))),
    }
    let shown = if is_slowest { 0..max.min(all.len()) } else { all.len().saturating_sub(max)..all.len() };
    let mut table = table(["TRACE", "START", "TOOK", "SPANS", "OUTCOME", "FIRST"]);
    for spans in all.get(shown).unwrap_or_default() {
        let Some(first) = spans.first() else { continue };
        table.add_row(vec![
            Cell::new(printable(&first.trace)),
            Cell::new(humantime::format_rfc3339_millis(start(first)).to_string()),
            Cell::new(time(length(spans))),
            Cell::new(spans.len()),
            outcome(spans),
            Cell::new(format!("{} to {}", printable(&first.caller), message(first))),
        ]);
    }
    finish(&table)
}

/// The tree of one trace; none if it has no spans.
pub(crate) fn trace(spans: &[Span], trace: &str) -> Option<String> {
    let mut own: Vec<&Span> = spans.iter().filter(|span| span.trace == trace).collect();
    in_order(&mut own);
    let began = start(own.first()?);
    let ids: BTreeSet<&str> = own.iter().map(|span| &*span.span).collect();
    let mut children: BTreeMap<Option<&str>, Vec<&Span>> = BTreeMap::new();
    for span in &own {
        // The parent may be of another program, be under way, or be lost.
        let parent = span.parent.as_deref().filter(|parent| ids.contains(parent));
        children.entry(parent).or_default().push(span);
    }
    let mut table = table(["SPAN", "FROM", "AT", "TOOK", "WAITED", "WORKED", "FUEL", "OUTCOME"]);
    let mut left: Vec<(&Span, Vec<bool>)> = Vec::new();
    push(&mut left, children.remove(&None), &[]);
    while let Some((span, lasts)) = left.pop() {
        let at = start(span).duration_since(began).unwrap_or_default();
        let if_any =
            |seconds: Option<f64>| seconds.map_or(NOTHING.to_owned(), |seconds| time(of_seconds(seconds)));
        table.add_row(vec![
            Cell::new(format!("{}{}", branches(&lasts), message(span))),
            Cell::new(printable(&span.caller)),
            Cell::new(time(at)),
            Cell::new(time(of_seconds(span.duration_seconds))),
            Cell::new(if_any(span.waited_seconds)),
            Cell::new(if_any(span.worked_seconds)),
            Cell::new(span.fuel.map_or(NOTHING.to_owned(), |fuel| fuel.to_string())),
            outcome(&[span]),
        ]);
        push(&mut left, children.remove(&Some(&*span.span)), &lasts);
    }
    let mut text = finish(&table);
    for span in &own {
        if let Some(link) = &span.link {
            text.push_str(&format!("caused by trace {}\n", printable(&link.trace)));
        }
    }
    let caused = spans.iter().filter(|span| span.link.as_ref().is_some_and(|link| link.trace == trace));
    for span in caused {
        text.push_str(&format!("caused trace {}: {}\n", printable(&span.trace), message(span)));
    }
    Some(text)
}

/// Puts the children of a span on the stack, the first on top. `lasts` says of it and each span above it whether it was
/// the last.
fn push<'s>(left: &mut Vec<(&'s Span, Vec<bool>)>, children: Option<Vec<&'s Span>>, lasts: &[bool]) {
    for (place, span) in children.unwrap_or_default().into_iter().rev().enumerate() {
        let lasts = lasts.iter().copied().chain([place == 0]).collect();
        left.push((span, lasts));
    }
}

fn branches(lasts: &[bool]) -> String {
    let Some((last, above)) = lasts.split_last().filter(|(_, above)| !above.is_empty()) else {
        return String::new();
    };
    let above = above.iter().skip(1).take(MAX_DEPTH).map(|is_last| if *is_last { "   " } else { "│  " });
    let own = if *last { "└─ " } else { "├─ " };
    above.chain([own]).collect()
}

fn in_order(spans: &mut [&Span]) {
    spans.sort_by_key(|span| (start(span), span.number));
}

/// What was sent where.
fn message(span: &Span) -> String {
    let receiver = span.provider.as_deref().unwrap_or_default();
    let text = match (&span.contract, &span.operation, &span.queue, &span.topic) {
        (Some(contract), Some(operation), ..) => format!("{receiver} {contract} {operation}"),
        (.., Some(queue), _) => format!("{receiver} queue {queue}"),
        (.., Some(topic)) => format!("event {topic}"),
        _ => format!("{receiver} {}", span.kind),
    };
    printable(&text)
}

/// The first outcome that is an error, or `ok`.
fn outcome(spans: &[&Span]) -> Cell {
    match spans.iter().find(|span| span.outcome != "ok") {
        None => Cell::new("ok"),
        Some(span) => Cell::new(printable(&span.outcome)).fg(Color::Red),
    }
}

/// From the beginning of the first span to the end of the last.
fn length(spans: &[&Span]) -> Duration {
    let end = |span: &&Span| start(span) + of_seconds(span.duration_seconds);
    let (began, ended) = (spans.iter().map(|span| start(span)).min(), spans.iter().map(end).max());
    began.zip(ended).and_then(|(began, ended)| ended.duration_since(began).ok()).unwrap_or_default()
}

fn start(span: &Span) -> SystemTime {
    humantime::parse_rfc3339(&span.start).unwrap_or(SystemTime::UNIX_EPOCH)
}

fn of_seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// A duration with three digits or more.
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

    fn span(id: u64, parent: u64, what: (&str, &str), micros: (u64, u64), outcome: &str) -> Span {
        let (caller, provider) = what;
        serde_json::from_value(serde_json::json!({
            "number": id,
            "trace": "t",
            "span": id.to_string(),
            "parent": (parent > 0).then(|| parent.to_string()),
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
        assert_eq!(trace(&spans, "t").unwrap().lines().collect::<Vec<_>>(), tree);
        assert_eq!(trace(&spans, "other"), None);
        let list = [
            "TRACE  START                     TOOK    SPANS  OUTCOME  FIRST",
            "t      2026-11-25T20:00:00.000Z  2.50 s  5      timeout  main to a c@1 do",
        ];
        assert_eq!(traces(&spans, true, 9).lines().collect::<Vec<_>>(), list);
    }

    #[test]
    fn spans_that_name_each_other_as_parents_end_the_tree() {
        let spans = [span(1, 2, ("a", "b"), (0, 1), "ok"), span(2, 1, ("a", "b"), (0, 1), "ok")];
        assert!(trace(&spans, "t").unwrap().starts_with("SPAN"));
    }
}
