//! What the tables of several verbs have in common: their shape, and the words for states, sizes and times.

use std::time::{Duration, SystemTime};

use bytesize::ByteSize;
use comfy_table::{Cell, Color, Table, presets};
use weir_host::{
    control::{ExtensionState, ExtensionStatus, FailureRecord, ServingVersion, Standing},
    limits::{LimitHit, LimitUnit, LimitValue},
    names::ContractName,
};

use crate::output::{self, printable};

/// Shown for a value that is unknown or not measured.
pub(crate) const NOTHING: &str = "-";

/// Shown for an extension that is `starting` and being compiled.
pub(crate) const COMPILING: &str = "compiling";

/// The number of digits of a hash that are shown, which are enough to tell versions apart.
pub(crate) const SHORT_HASH: usize = 12;

pub(crate) fn table<'h>(header: impl IntoIterator<Item = &'h str>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    if !output::wants_color() {
        table.force_no_tty();
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

/// A column: its heading, and the function that makes its text for an item.
pub(crate) type Column<'a, T> = (&'a str, &'a dyn Fn(&T) -> String);

/// Makes a table with a line for each item.
pub(crate) fn lined_up<T>(items: &[T], columns: &[Column<'_, T>]) -> String {
    let mut table = table(columns.iter().map(|(heading, _)| *heading));
    table.add_rows(items.iter().map(|item| columns.iter().map(|(_, value)| value(item))));
    finish(&table)
}

pub(crate) fn finish(table: &Table) -> String {
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A state, which may have a [`mark`] of its version behind it.
pub(crate) fn state(state: &str) -> Cell {
    let cell = Cell::new(printable(state));
    match state.split_whitespace().next() {
        Some("ready") if state == "ready" => cell.fg(Color::Green),
        Some("failed" | "quarantined") => cell.fg(Color::Red),
        Some("ready" | "interrupted" | "starting" | COMPILING | "draining" | "backing-off") => {
            cell.fg(Color::Yellow)
        }
        _ => cell,
    }
}

/// What an operator must know of the version that an extension runs. None if it is proven and configured.
pub(crate) fn mark(version: &ServingVersion) -> Option<&'static str> {
    match version {
        ServingVersion { is_held_back: true, .. } => Some("held back"),
        ServingVersion { standing: Standing::Probation, .. } => Some("probation"),
        _ => None,
    }
}

pub(crate) fn restarts(extension: &ExtensionStatus) -> String {
    // Failures during the wait, such as a failed reload, have no next restart, so the last one that has one counts.
    let next = extension.failures.iter().rev().find_map(|failure| failure.next_restart);
    match next {
        Some(time) if extension.state == ExtensionState::BackingOff => {
            format!("{}, next at {}", extension.restarts, moment(time))
        }
        _ => extension.restarts.to_string(),
    }
}

/// Says what followed a failure, and until when if a restart is due.
pub(crate) fn then(FailureRecord { then, next_restart, .. }: &FailureRecord) -> String {
    next_restart.map_or_else(|| then.to_string(), |time| format!("{then} until {}", moment(time)))
}

pub(crate) fn limit_hit(hit: &LimitHit) -> String {
    let unit = hit.name.unit();
    let [used, allowed] = [hit.used, hit.allowed].map(|number| match unit.value(number) {
        LimitValue::Time(duration) => time(duration.as_secs_f64()),
        LimitValue::Share(share) => percent(share),
        _ if unit == LimitUnit::Bytes => size(number),
        _ => number.to_string(),
    });
    format!("{}: {used} used of {allowed}", hit.name)
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

pub(crate) fn size(bytes: u64) -> String {
    ByteSize::b(bytes).display().iec().to_string()
}

/// Formats the time since a moment. Main and this command share a clock.
pub(crate) fn age(since: SystemTime, now: SystemTime) -> String {
    time(now.duration_since(since).unwrap_or_default().as_secs_f64())
}

/// Formats a time in RFC 3339 with milliseconds, which is the form in Main's JSON.
pub(crate) fn moment(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

/// Joins names with spaces. Returns `-` if there are none.
pub(crate) fn list(names: &[ContractName]) -> String {
    let names: Vec<_> = names.iter().map(ContractName::as_str).collect();
    if names.is_empty() { NOTHING.to_owned() } else { names.join(" ") }
}

/// Formats a duration in the units that fit its length.
pub(crate) fn time(seconds: f64) -> String {
    let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    match time.as_secs() {
        0 => format!("{:.1} ms", time.as_secs_f64() * 1000.0),
        1..60 => format!("{:.1} s", time.as_secs_f64()),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
pub(crate) fn assert_golden(name: &str, text: &str) {
    insta::with_settings!({ snapshot_path => "../tests/golden", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

/// A part of Main's answers on traffic.
#[cfg(test)]
pub(crate) fn traffic<T: serde::de::DeserializeOwned>(key: &str) -> T {
    let json = include_str!("../tests/golden/traffic.json");
    let mut all: serde_json::Map<_, _> = serde_json::from_str(json).unwrap();
    serde_json::from_value(all.remove(key).unwrap()).unwrap()
}
