//! `weir limits`: the limits of extensions, of a running Main or of a file.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::ValueHint;
use clap_complete::engine::ArgValueCompleter;
use serde::Deserialize;
use serde_json::{Map, Number, Value};
use weir_host::{
    control::ControlError,
    limits::{DirLimits, LimitUnit, LimitsReport},
    names::ExtensionId,
};

use crate::{
    args::{self, Asked},
    client::Route,
    complete, features,
    output::printable,
    tables::{NOTHING, finish, percent, size, table, time},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
USED is now, and PEAK the highest since Main started, over all instances. For ready-timeout and stop-timeout,
USED is the time of the last start and stop. FROM is where the limit is set. The time beside fuel is for plain
arithmetic on this machine; other code takes up to ten times as long.

Examples:
  weir limits
  weir limits telemetry
  weir limits --file weir.toml
  weir limits --json | jq -r '.extensions[] | [.id, .\"memory-sum\"] | @tsv'")]
pub(crate) struct Args {
    /// Only this extension
    #[arg(value_name = "ID", add = ArgValueCompleter::new(complete::extension))]
    id: Option<String>,
    /// Show the limits that this configuration sets; needs no Main
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["socket", "config"])]
    file: Option<PathBuf>,
    #[command(flatten)]
    asked: Asked,
}

pub(super) async fn run(Args { id, file, asked }: Args) -> anyhow::Result<()> {
    if file.is_some() {
        args::refuse_choice_before()?;
    }
    let route = Route::all_or_one("limits", id.as_deref())?;
    match file {
        None => asked.get(&route, limits).await,
        Some(file) => asked.print(configured(&file, id.as_deref()).await?, limits),
    }
}

async fn configured(file: &Path, id: Option<&str>) -> anyhow::Result<Value> {
    let config = features::load(file)?;
    let is_asked_for = |other: &ExtensionId| id.is_none_or(|id| id == other.as_str());
    if let Some(id) = id
        && !config.extensions.iter().any(|extension| is_asked_for(&extension.id))
    {
        return Err(ControlError::Unknown(id.to_owned()).into());
    }
    let mut report = LimitsReport::configured(&config).await;
    report.extensions.retain(|extension| is_asked_for(&extension.id));
    Ok(serde_json::to_value(report)?)
}

/// The part of Main's report that people see. Other fields are ignored.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Limits {
    pub(super) memory_budget: Option<u64>,
    pub(super) memory_sum: u64,
    pub(super) fuel_per_ms: Option<u64>,
    pub(super) extensions: Vec<ExtensionLimits>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ExtensionLimits {
    pub(super) id: String,
    pub(super) class: String,
    pub(super) memory_sum: u64,
    pub(super) delayed_seconds: Option<f64>,
    pub(super) log_dropped: Option<u64>,
    pub(super) http_refused: Option<u64>,
    pub(super) http_timed_out: Option<u64>,
    pub(super) limits: Vec<Limit>,
    pub(super) dirs: Vec<DirLimits>,
    pub(super) fixed: Map<String, Value>,
    pub(super) transfer: u64,
    #[serde(default)]
    pub(super) features: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Limit {
    pub(super) key: String,
    pub(super) unit: LimitUnit,
    pub(super) allowed: Number,
    pub(super) text: String,
    pub(super) used: Option<Number>,
    pub(super) peak: Option<Number>,
    pub(super) source: LimitSource,
}

#[derive(Debug, Deserialize)]
pub(super) struct LimitSource {
    pub(super) text: String,
}

/// Shows all of `weir limits`: a table for each extension, the sum of their memory, and the time of fuel.
fn limits(report: Limits) -> String {
    let mut text: String =
        report.extensions.iter().map(|extension| of_one(extension, report.fuel_per_ms)).collect();
    text.push_str(&memory(&report));
    text.push_str(&match report.fuel_per_ms {
        Some(rate) => format!("\nOne millisecond of this machine is {rate} of fuel, as measured.\n"),
        None => "\nThe time of fuel is not measured here. Without the compiler, Main measures it once it has loaded \
                 an artifact.\n"
            .to_owned(),
    });
    text
}

fn of_one(extension: &ExtensionLimits, fuel_per_ms: Option<u64>) -> String {
    let mut table = table(["LIMIT", "ALLOWED", "USED", "PEAK", "FROM"]);
    for limit in &extension.limits {
        let used = |value: &Option<Number>| {
            value.as_ref().map_or(NOTHING.to_owned(), |number| amount(limit.unit, number))
        };
        table.add_row([
            printable(&limit.key),
            allowed(limit, fuel_per_ms),
            used(&limit.used),
            used(&limit.peak) + &consequence(extension, limit),
            printable(&limit.source.text),
        ]);
    }
    table.add_rows(extension.dirs.iter().flat_map(directory));
    let class = extension.fixed.get("class").and_then(|class| class.as_str()).unwrap_or_default();
    let from = format!("fixed, `{}`", printable(class));
    for (key, value) in &extension.fixed {
        if let Some(bound) = value.as_u64() {
            let bound = match key.as_str() {
                "host-stack" | "random-bytes" => size(bound),
                _ => bound.to_string(),
            };
            table.add_row([&printable(key), &bound, NOTHING, NOTHING, &from]);
        }
    }
    let from = "fixed, 64 KiB over `message-size`";
    table.add_row(["transfer", &size(extension.transfer), NOTHING, NOTHING, from]);
    let features = match &*extension.features {
        [] => String::new(),
        features => format!(", with {}", printable(&features.join(", "))),
    };
    format!(
        "{}: class `{}`{features}\n\n{}\n",
        printable(&extension.id),
        printable(&extension.class),
        finish(&table)
    )
}

fn directory(dir: &DirLimits) -> [[String; 5]; 2] {
    let row = |of: &str, numbers: [Option<u64>; 3], show: &dyn Fn(u64) -> String| {
        let [allowed, used, peak] = numbers.map(|number| number.map_or(NOTHING.to_owned(), show));
        [format!("{of} in {}", printable(&dir.guest)), allowed, used, peak, "`grants.dirs`".to_owned()]
    };
    let mut bytes = row("bytes", [dir.max_bytes, dir.used_bytes, dir.peak_bytes], &size);
    if let Some(written) = dir.written_bytes {
        bytes[3] += &format!(", {} written", size(written));
    }
    [bytes, row("files", [dir.max_files, dir.used_files, dir.peak_files], &|number| number.to_string())]
}

/// Shows the limit. A limit of fuel is shown with its time, too.
fn allowed(limit: &Limit, fuel_per_ms: Option<u64>) -> String {
    let text = printable(&limit.text);
    match (limit.unit, limit.allowed.as_u64(), fuel_per_ms) {
        (LimitUnit::Fuel, Some(fuel), Some(rate)) if rate > 0 => {
            let nanoseconds = u128::from(fuel) * 1_000_000 / u128::from(rate);
            let took = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
            format!("{text} (≈ {})", time(took.as_secs_f64()))
        }
        _ => text,
    }
}

/// Says what reaching some limits has done so far: delays, dropped lines, and requests that were refused or ended.
fn consequence(extension: &ExtensionLimits, limit: &Limit) -> String {
    let counted = |number: Option<u64>, what: &str| {
        number.filter(|number| *number > 0).map(|number| format!(", {number} {what}"))
    };
    let told = match limit.key.as_str() {
        "cpu-share" => {
            let delayed = extension.delayed_seconds.filter(|seconds| *seconds > 0.0);
            delayed.map(|seconds| format!(", delayed {}", time(seconds)))
        }
        "log-rate" => counted(extension.log_dropped, "dropped"),
        "http.in-flight" => counted(extension.http_refused, "refused"),
        "http.total-timeout" => counted(extension.http_timed_out, "ended"),
        _ => None,
    };
    told.unwrap_or_default()
}

/// Makes the table of the memory that each extension may use, and of the sum beside the budget.
fn memory(report: &Limits) -> String {
    let mut table = table(["ID", "MEMORY, STACK AND INBOX"]);
    let row = |extension: &ExtensionLimits| [printable(&extension.id), size(extension.memory_sum)];
    table.add_rows(report.extensions.iter().map(row));
    let sum = size(report.memory_sum);
    let sum = match report.memory_budget {
        Some(budget) => format!("{sum} of {}, the `main.memory-budget`", size(budget)),
        None => format!("{sum}; `main.memory-budget` is not set"),
    };
    // The brackets keep the row of the sum apart from those of extensions.
    table.add_row(["(all)".to_owned(), sum]);
    finish(&table)
}

fn amount(unit: LimitUnit, number: &Number) -> String {
    match (unit, number.as_u64(), number.as_f64()) {
        (LimitUnit::Bytes, Some(bytes), _) => size(bytes),
        (LimitUnit::Seconds, _, Some(seconds)) => time(seconds),
        (LimitUnit::Share, _, Some(share)) => percent(share),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::assert_golden;

    fn fixture() -> Limits {
        serde_json::from_str(include_str!("../../tests/golden/limits.json")).unwrap()
    }

    #[test]
    fn limits_line_up_with_their_use_and_their_origin() {
        assert_golden("limits", &limits(fixture()));
    }

    #[test]
    fn limits_of_no_running_main_show_no_use() {
        let mut report = fixture();
        (report.fuel_per_ms, report.memory_budget) = (None, None);
        report.extensions.truncate(1);
        for extension in &mut report.extensions {
            (extension.delayed_seconds, extension.log_dropped) = (None, None);
            (extension.http_refused, extension.http_timed_out) = (None, None);
            for limit in &mut extension.limits {
                (limit.used, limit.peak) = (None, None);
            }
            for dir in &mut extension.dirs {
                (dir.used_bytes, dir.used_files) = (None, None);
                (dir.peak_bytes, dir.peak_files, dir.written_bytes) = (None, None, None);
            }
        }
        assert_golden("limits-of-a-file", &limits(report));
    }

    #[test]
    fn names_from_outside_cannot_play_with_the_terminal() {
        let mut report = fixture();
        report.extensions[0].limits[0].source.text = "a\x1b[2J\n.toml:1".to_owned();
        let text = limits(report);
        assert!(!text.contains('\x1b') && text.contains("\\n.toml:1"), "{text}");
    }
}
