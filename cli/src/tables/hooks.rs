//! The report on hooks as text for people.
//!
//! A hook's own output is indented, so that it cannot look like the report.

use std::{path::Path, time::Duration};

use weir_host::hooks::{HookOutcome, HookReport, HookRun};

use super::{limit_hit, time};
use crate::output::{counted, printable};

/// Loading times from this on are shown: somebody waited for the compiler.
const LONG: Duration = Duration::from_millis(100);

/// All of `weir hooks run`: each hook with its output, and a summary.
pub(crate) fn hooks(report: &HookReport) -> anyhow::Result<String> {
    let names: Vec<_> = report.runs.iter().map(|run| printable(&run.hook)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for (name, run) in names.iter().zip(&report.runs) {
        let took = took(run);
        text.push_str(&format!("{name:<width$}  {}, {took}\n", run.outcome));
        for (fact, value) in facts(&run.outcome)? {
            text.push_str(&format!("  {fact:<8}{}\n", printable(&value)));
        }
        text.push_str(&written(run));
    }
    text.push_str(&summary(report));
    Ok(text)
}

pub(crate) fn no_hooks(which: &Path, suffixes: &[String]) -> String {
    let suffixes: Vec<_> = suffixes.iter().map(|suffix| format!("`{}`", printable(suffix))).collect();
    let which = printable(&which.display().to_string());
    format!("`{which}` has no hooks: no file name ends with {}", suffixes.join(" or "))
}

fn facts(outcome: &HookOutcome) -> anyhow::Result<Vec<(&'static str, String)>> {
    Ok(match outcome {
        HookOutcome::TimedOut { limit, allowed } => {
            vec![("limit", format!("{limit}: {}", seconds(*allowed)))]
        }
        HookOutcome::LimitExceeded(hit) => vec![("limit", limit_hit(hit))],
        HookOutcome::SystemError { reason, trace } => {
            let names = ["trace"].into_iter().chain(std::iter::repeat(""));
            let trace = names.zip(trace.iter().cloned());
            [("cause", reason.clone())].into_iter().chain(trace).collect()
        }
        _ => Vec::new(),
    })
}

/// The lines that a hook wrote. Lines of its standard error have a mark.
fn written(run: &HookRun) -> String {
    let streams = [("    ", &run.stdout), ("  ! ", &run.stderr)];
    let lines = streams.into_iter().flat_map(|(mark, bytes)| {
        let text = String::from_utf8_lossy(bytes);
        text.lines().map(|line| format!("{mark}{}\n", printable(line))).collect::<Vec<_>>()
    });
    lines.collect()
}

fn summary(report: &HookReport) -> String {
    let count = |is: fn(&HookOutcome) -> bool| report.runs.iter().filter(|run| is(&run.outcome)).count();
    let mut text = counted(report.runs.len() as u64, "hook");
    let warnings = count(|outcome| matches!(outcome, HookOutcome::Warning { .. }));
    if warnings > 0 {
        text.push_str(&format!(", {}", counted(warnings as u64, "warning")));
    }
    text.push_str(&format!(", in {}", seconds(report.duration)));
    if let Some(HookRun { hook, outcome, .. }) = report.runs.last()
        && !outcome.goes_on()
    {
        text.push_str(&format!("; stopped at `{}`: {outcome}", printable(hook)));
    }
    text.push('\n');
    text
}

fn took(run: &HookRun) -> String {
    let took = seconds(run.duration);
    match run.loading {
        short if short < LONG => took,
        long => format!("{took}, of which {} to load it", seconds(long)),
    }
}

fn seconds(duration: Duration) -> String {
    time(duration.as_secs_f64())
}
