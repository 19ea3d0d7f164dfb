//! The pane of one extension or peer: what it is, its sparklines, its last failures and its log.

use std::{fmt::Display, time::SystemTime};

use ratatui::{
    Frame,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};

use weir_names::ContractName;
use weir_reports::FailureRecord;

use super::{
    draw_lines,
    figures::{NOTHING, bytes, count, maximum, percent, printable, rate, seconds, spark, time},
    style::Styles,
};
use crate::{
    answers::LogLine,
    model::{Key, Row, Sample},
    state::{Pane, State},
};

/// The state of an extension that waits for its next restart.
const BACKING_OFF: &str = "backing-off";

/// The columns of the names of figures; those of their values follow.
const LABEL: usize = 10;
const VALUE: usize = 20;

/// The least columns of a sparkline: a shorter one says nothing.
const MIN_SPARK: usize = 5;

/// The most columns of a sparkline: as many as there are samples.
const MAX_SPARK: usize = 120;

/// The columns for the largest value after a sparkline.
const MOST: usize = 15;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, state: &mut State, styles: Styles) {
    let State { model, pane: Some(Pane { key, scroll }), .. } = state else { return };
    let text = match model.get(key) {
        Some(row) => {
            let log = model.log.as_ref().filter(|(id, _)| Key::Extension(id.clone()) == *key);
            let log = log.map(|(_, lines)| lines.as_slice());
            contents(row, log, usize::from(area.width), styles)
        }
        None => vec![Line::raw(format!("`{}` is no longer configured", printable(key.name())))],
    };
    draw_lines(frame, area, &text, scroll);
    state.page = usize::from(area.height);
}

fn contents(row: &Row, log: Option<&[LogLine]>, width: usize, styles: Styles) -> Vec<Line<'static>> {
    let facts = &row.facts;
    let mut lines = vec![fact("name", row.key.name()).style(styles.strong()), state(row, styles)];
    let mut add = |name, value: &str| lines.extend((!value.is_empty()).then(|| fact(name, value)));
    add("reason", facts.reason.as_deref().unwrap_or_default());
    add("class", &facts.class);
    add("fulfills", &facts.fulfills.iter().map(ContractName::as_str).collect::<Vec<_>>().join(" "));
    if facts.denied > 0 {
        add("denied", &format!("{} attempts to connect with a wrong proof", facts.denied));
    }
    lines.extend(figures(row, width, styles));
    if let Key::Peer(_) = row.key {
        return lines;
    }
    lines.extend([Line::default(), Line::styled("Failures, newest first", styles.header())]);
    if facts.failures.is_empty() {
        lines.push(Line::raw("none"));
    }
    let is_waiting = row.state == BACKING_OFF;
    lines.extend(facts.failures.iter().rev().map(|one| failure(one, is_waiting, styles)));
    lines.extend([Line::default(), Line::styled("Log, newest first", styles.header())]);
    lines.extend(match log {
        None => vec![Line::raw("waiting for Main")],
        Some([]) => vec![Line::raw("no lines")],
        Some(log) => log.iter().rev().map(|line| log_line(line, styles)).collect(),
    });
    lines
}

fn fact(name: &str, value: &str) -> Line<'static> {
    Line::raw(format!("{name:<LABEL$}{}", printable(value)))
}

fn state(row: &Row, styles: Styles) -> Line<'static> {
    let label = format!("{:<LABEL$}", "state");
    let since = row.facts.since.map(|since| format!(" since {}", moment(since))).unwrap_or_default();
    let state = Span::styled(printable(&row.state), styles.state(&row.state));
    Line::from(vec![Span::raw(label), state, Span::raw(since)])
}

/// Makes the lines of the figures, with sparklines of what they were before.
fn figures(row: &Row, width: usize, styles: Styles) -> Vec<Line<'static>> {
    let or_nothing = |text: Option<String>| text.unwrap_or(NOTHING.to_owned());
    let line = |name: &str, value: String, of: fn(&Sample) -> Option<f64>, least, most: fn(f64) -> String| {
        let mut spans = vec![Span::raw(format!("{name:<LABEL$}{value:<VALUE$}"))];
        let room = width.saturating_sub(LABEL + VALUE + 1);
        let room = if room > MOST + MIN_SPARK { room - MOST } else { room };
        let samples = row.history.of(of);
        if room >= MIN_SPARK {
            let shown = room.min(MAX_SPARK).min(samples.len());
            spans.push(Span::styled(spark(&samples, shown, least), styles.spark()));
            let largest = maximum(samples.get(samples.len() - shown..).unwrap_or_default());
            if width > LABEL + VALUE + shown + MOST
                && let Some(largest) = largest
            {
                spans.push(Span::styled(format!(" most {}", most(largest)), styles.quiet()));
            }
        }
        Line::from(spans)
    };
    let mut lines = Vec::new();
    if let Some(cpu) = row.cpu {
        let most = |share| format!("{}%", percent(share));
        lines.push(line("CPU", format!("{}%", percent(cpu)), |sample| sample.cpu, 0.01, most));
    }
    if let Some((used, limit)) = row.memory {
        let value = format!("{} / {}", bytes(used), bytes(limit));
        lines.push(line("memory", value, |sample| sample.memory, 1.0, as_bytes));
    }
    let messages = row.messages.map(|messages| format!("{} a second", rate(messages)));
    lines.push(line("messages", or_nothing(messages), |sample| sample.messages, 1.0, rate));
    let quantiles = format!("{}, {}", or_nothing(row.p50.map(time)), or_nothing(row.p99.map(time)));
    lines.push(line("p50, p99", quantiles, |sample| sample.p99, 0.000_001, seconds));
    lines.push(line("inbox", count(row.inbox), |sample| sample.inbox, 1.0, as_count));
    let lost = match row.newly_lost {
        0 => count(row.lost),
        more => format!("{}, {} just now", count(row.lost), count(more)),
    };
    lines.push(line("lost", lost, |sample| sample.lost, 1.0, as_count));
    lines.extend(row.restarts.map(|restarts| fact("restarts", &restarts.to_string())));
    lines
}

fn as_bytes(amount: f64) -> String {
    bytes(whole(amount))
}

fn as_count(number: f64) -> String {
    count(whole(number))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was converted from a `u64`")]
fn whole(number: f64) -> u64 {
    number as u64
}

/// Makes the line of a failure. Its next restart is past if the extension does not wait for it, and is then left out.
fn failure(failure: &FailureRecord, is_waiting: bool, styles: Styles) -> Line<'static> {
    let FailureRecord { time, cause, then, next_restart, .. } = failure;
    let next_restart = next_restart.filter(|_| is_waiting);
    let next = next_restart.map(|time| format!(" until {}", moment(time))).unwrap_or_default();
    Line::from(vec![
        Span::raw(format!("{} ", moment(*time))),
        Span::styled(printable(cause), styles.bad()),
        Span::raw(format!(", then {then}{next}")),
    ])
}

fn moment(time: SystemTime) -> impl Display {
    humantime::format_rfc3339_millis(time)
}

fn log_line(line: &LogLine, styles: Styles) -> Line<'static> {
    let style = match line.level.as_str() {
        "error" => styles.bad(),
        "warn" => styles.doubtful(),
        _ => Style::new(),
    };
    let fields: String =
        line.fields.iter().map(|(name, value)| printable(&format!(" {name}={value:?}"))).collect();
    let level = printable(&line.level.to_uppercase());
    Line::from(vec![
        Span::raw(format!("{} ", printable(&line.time))),
        Span::styled(format!("{level:>5}"), style),
        Span::raw(format!(" {}{fields}", printable(&line.message))),
    ])
}
