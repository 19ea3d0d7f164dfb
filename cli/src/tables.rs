//! Text tables for people: extensions, failures, limits, topics, queues, peers and hooks.

mod hooks;
mod limits;
mod parts;
mod peers;
#[cfg(feature = "store")]
mod stores;
mod traces;
mod traffic;

use std::time::{Duration, SystemTime};

use bytesize::ByteSize;
use comfy_table::{Cell, Color, ContentArrangement, Table, presets};
use serde_json::Number;
use weir_host::{
    control::{
        BeingCompiled, ExtensionState, ExtensionStatus, FailureRecord, HandledMessage, HistoryEntry,
        HistoryEvent,
    },
    limits::{LimitHit, LimitUnit, LimitValue},
    names::ContractName,
};

#[cfg(feature = "store")]
pub(crate) use self::stores::{entries, stores};
pub(crate) use self::{
    hooks::{hooks, no_hooks},
    limits::limits,
    parts::{faulty_parts, refusals},
    peers::{peers, peers_in_short},
    traces::{trace, traces},
    traffic::{jobs, queues, topics},
};
use crate::output::printable;

/// Shown for a value that is unknown or not measured.
const NOTHING: &str = "-";

/// Shown for an extension that is `starting` and being compiled.
const COMPILING: &str = "compiling";

/// Digits of a hash that identify a version.
const SHORT_HASH: usize = 12;

/// The table of `weir ps`, and why extensions have failed.
pub(crate) fn extensions(extensions: &[ExtensionStatus]) -> String {
    let mut table = table(["ID", "STATE", "CPU", "CPU%", "MEMORY", "INBOX", "SHED", "RESTARTS"]);
    table.add_rows(extensions.iter().map(|extension| {
        vec![
            Cell::new(&extension.id),
            state(if extension.compiling.is_some() { COMPILING } else { extension.state.as_str() }),
            Cell::new(time(extension.cpu.as_secs_f64())),
            Cell::new(percent(extension.cpu_share)),
            Cell::new(format!("{} / {}", size(extension.memory), size(extension.memory_limit))),
            Cell::new(format!("{} / {}", extension.inbox_messages, size(extension.inbox_bytes))),
            Cell::new(extension.shed),
            Cell::new(printable(&restarts(extension))),
        ]
    }));
    let failed = extensions.iter().filter(|extension| extension.state == ExtensionState::Failed);
    let reasons: String = failed
        .filter_map(|extension| Some((&extension.id, extension.reason.as_ref()?)))
        .map(|(id, reason)| format!("`{id}`: {}\n", printable(reason)))
        .collect();
    let gap = if reasons.is_empty() { "" } else { "\n" };
    format!("{}{gap}{reasons}", finish(&table))
}

/// The table of `weir ps --failures`, oldest first.
pub(crate) fn failures(extensions: &[ExtensionStatus]) -> String {
    let mut failures: Vec<_> = extensions.iter().flat_map(|extension| &extension.failures).collect();
    failures.sort_by_key(|failure| failure.time);
    let mut table = table(["TIME", "ID", "HANDLING", "MESSAGE", "SENDER", "LIMIT", "THEN", "CAUSE"]);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.add_rows(failures.into_iter().map(|failure| {
        let [operation, message, sender] = match &failure.handling {
            Some(HandledMessage { operation, message, sequence, sender }) => {
                let number = message.map(|id| id.to_string()).or(sequence.map(|number| format!("#{number}")));
                [printable(operation), number.unwrap_or(NOTHING.to_owned()), printable(sender)]
            }
            None => [NOTHING; 3].map(str::to_owned),
        };
        [
            moment(failure.time),
            failure.extension.to_string(),
            operation,
            message,
            sender,
            failure.limit.as_ref().map_or(NOTHING.to_owned(), |hit| printable(&limit_hit(hit))),
            then(failure),
            printable(&failure.cause),
        ]
    }));
    finish(&table)
}

pub(crate) fn history(entries: &[HistoryEntry]) -> String {
    let mut table = table(["TIME", "EVENT", "WHY", "SHA-256"]);
    table.add_rows(entries.iter().map(|HistoryEntry { time, event, .. }| {
        let (event, why, hash) = match event {
            HistoryEvent::Asked { order, by } => {
                (Cell::new(printable(&format!("{order} asked for"))), Some(format!("by {by}")), None)
            }
            HistoryEvent::State { state: now, hash, reason } => {
                (state(now.as_str()), reason.clone(), hash.as_ref())
            }
            HistoryEvent::Failed { cause, hash } => {
                (Cell::new("failure").fg(Color::Red), Some(cause.clone()), hash.as_ref())
            }
            _ => (Cell::new(NOTHING), None, None),
        };
        let text = |text: Option<&str>| Cell::new(printable(text.unwrap_or(NOTHING)));
        let hash = hash.map(|hash| hash.chars().take(SHORT_HASH).collect::<String>());
        vec![Cell::new(moment(*time)), event, text(why.as_deref()), text(hash.as_deref())]
    }));
    finish(&table)
}

/// All of `weir status`. `compared` is the comparison with the file.
pub(crate) fn status(extension: &ExtensionStatus, compared: Option<&str>) -> String {
    let told = |reason: &String| {
        // An extension's own words may begin with the state's, too.
        let own = reason.strip_prefix(extension.state.as_str()).and_then(|rest| rest.strip_prefix(": "));
        format!(": {}", own.unwrap_or(reason))
    };
    let reason = extension.reason.as_ref().map(told).unwrap_or_default();
    let state = match &extension.compiling {
        Some(BeingCompiled { bytes, since }) => {
            format!("{COMPILING}: {}, since {}", size(*bytes), moment(*since))
        }
        None => format!("{}{reason}", extension.state),
    };
    let facts = [
        ("id", extension.id.to_string()),
        ("state", state),
        ("since", moment(extension.since)),
        ("class", extension.class.clone()),
        ("fulfills", list(&extension.fulfills)),
        ("sha-256", extension.hash.clone().unwrap_or(NOTHING.to_owned())),
        ("cpu", time(extension.cpu.as_secs_f64())),
        ("memory", format!("{} of {}", size(extension.memory), size(extension.memory_limit))),
        ("inbox", format!("{} messages, {}", extension.inbox_messages, size(extension.inbox_bytes))),
        ("messages", format!("{} received, {} sent", extension.received, extension.sent)),
        ("shed", extension.shed.to_string()),
        ("late", extension.late.to_string()),
        ("restarts", restarts(extension)),
        ("config", compared.unwrap_or(NOTHING).to_owned()),
    ];
    let refused = extension.refused.map(|refused| ("refused", refused.to_string()));
    let mut text: String = facts
        .iter()
        .chain(&refused)
        .map(|(name, value)| format!("{name:<10}{}\n", printable(value)))
        .collect();
    text.extend(extension.failures.iter().map(failure));
    text
}

fn failure(failure: &FailureRecord) -> String {
    let mut text =
        format!("\nfailed {}\n  {:<10}{}\n", moment(failure.time), "cause", printable(&failure.cause));
    let mut fact = |name: &str, value: &str| text.push_str(&format!("  {name:<10}{}\n", printable(value)));
    if let Some(HandledMessage { message, sequence, sender, operation }) = &failure.handling {
        let number = message.map(|id| format!(", message {id}"));
        let number = number.or(sequence.map(|number| format!(", sequence {number}"))).unwrap_or_default();
        fact("handling", &format!("{operation} for {sender}{number}"));
    }
    if let Some(hit) = &failure.limit {
        fact("limit", &limit_hit(hit));
    }
    fact("then", &then(failure));
    if let Some(hash) = &failure.hash {
        fact("sha-256", hash);
    }
    for (index, function) in failure.trace.iter().enumerate() {
        fact(if index == 0 { "trace" } else { "" }, function);
    }
    text
}

fn restarts(extension: &ExtensionStatus) -> String {
    // A failure during the wait, such as a failed reload, has no next restart.
    let next = extension.failures.iter().rev().find_map(|failure| failure.next_restart);
    match next {
        Some(time) if extension.state == ExtensionState::BackingOff => {
            format!("{}, next at {}", extension.restarts, moment(time))
        }
        _ => extension.restarts.to_string(),
    }
}

fn then(FailureRecord { then, next_restart, .. }: &FailureRecord) -> String {
    next_restart.map_or_else(|| then.to_string(), |time| format!("{then} until {}", moment(time)))
}

fn limit_hit(hit: &LimitHit) -> String {
    let unit = hit.name.unit();
    let [used, allowed] = [hit.used, hit.allowed].map(|number| match unit.value(number) {
        LimitValue::Time(duration) => time(duration.as_secs_f64()),
        LimitValue::Share(share) => percent(share),
        _ if unit == LimitUnit::Bytes => size(number),
        _ => number.to_string(),
    });
    format!("{}: {used} used of {allowed}", hit.name)
}

fn amount(unit: LimitUnit, number: &Number) -> String {
    match (unit, number.as_u64(), number.as_f64()) {
        (LimitUnit::Bytes, Some(bytes), _) => size(bytes),
        (LimitUnit::Seconds, _, Some(seconds)) => time(seconds),
        (LimitUnit::Share, _, Some(share)) => percent(share),
        _ => number.to_string(),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

fn table<const COLUMNS: usize>(header: [&str; COLUMNS]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
        table.force_no_tty();
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

fn finish(table: &Table) -> String {
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn state(state: &str) -> Cell {
    let cell = Cell::new(printable(state));
    match state {
        "ready" => cell.fg(Color::Green),
        "failed" | "quarantined" => cell.fg(Color::Red),
        "interrupted" | "starting" | COMPILING | "draining" | "backing-off" => cell.fg(Color::Yellow),
        _ => cell,
    }
}

pub(crate) fn size(bytes: u64) -> String {
    ByteSize::b(bytes).display().iec().to_string()
}

/// The time since a moment. Main and this command share a clock.
fn age(since: SystemTime, now: SystemTime) -> String {
    time(now.duration_since(since).unwrap_or_default().as_secs_f64())
}

/// A time as Main's JSON has it.
fn moment(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

/// Names with spaces between.
fn list(names: &[ContractName]) -> String {
    let names: Vec<_> = names.iter().map(ContractName::as_str).collect();
    if names.is_empty() { NOTHING.to_owned() } else { names.join(" ") }
}

/// A duration with its significant digits.
fn time(seconds: f64) -> String {
    let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    match time.as_secs() {
        0 => format!("{:.1} ms", time.as_secs_f64() * 1000.0),
        1..60 => format!("{:.1} s", time.as_secs_f64()),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Extensions;

    fn fixture() -> Vec<ExtensionStatus> {
        let json = include_str!("../tests/golden/extensions.json");
        serde_json::from_str::<Extensions>(json).unwrap().extensions
    }

    pub(super) fn assert_golden(name: &str, text: &str) {
        insta::with_settings!({ snapshot_path => "../tests/golden", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name, text);
        });
    }

    #[test]
    fn ps_lines_up_what_counts() {
        assert_golden("ps", &extensions(&fixture()));
    }

    #[test]
    fn failures_of_all_extensions_stand_in_the_order_of_time() {
        assert_golden("ps-failures", &failures(&fixture()));
    }

    #[test]
    fn status_says_all_with_failures_and_their_traces() {
        assert_golden("status", &status(&fixture()[1], Some("as the file has it")));
    }

    #[test]
    fn names_from_outside_cannot_play_with_the_terminal() {
        let mut fixture = fixture();
        fixture[1].reason = Some("a\x1b[2Jb\nc".to_owned());
        fixture[1].failures[0].cause = "\x1b]0;title\x07".to_owned();
        for text in [status(&fixture[1], None), failures(&fixture)] {
            assert!(!text.contains(['\x1b', '\x07']), "{text}");
        }
    }
}
