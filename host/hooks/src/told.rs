//! Reports hooks that have ended: counts them for metrics, and logs a line for each that did not end well.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use weir_config::LimitHit;
use weir_names::{HookDirName, chain, harmless};

use crate::{HookError, HookOutcome, HookRun};

/// The most hooks of one directory that are counted by name, since files come and go. Further ones count as [`OTHER`].
const COUNTED_MAX: usize = 64;

const OTHER: &str = "other";

/// The most lines about one directory in a [`PERIOD`], since extensions may run hooks as often as they like.
const LINES_MAX: u32 = 10;

const PERIOD: Duration = Duration::from_secs(1);

/// The most bytes that are logged of a hook's name, of a reason, and of the last line of its standard error.
const TEXT_MAX: usize = 256;

/// How often the hooks of configured directories have ended, and how. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct HookCounts(Arc<Mutex<BTreeMap<HookDirName, Counts>>>);

type Counts = BTreeMap<Arc<str>, BTreeMap<&'static str, u64>>;

/// How often a hook has ended in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookCount {
    /// The directory.
    pub hooks: HookDirName,
    /// The hook's file, or `other` for all after the first 64 of a directory.
    pub hook: Arc<str>,
    /// How the hook ended: see [`HookOutcome::word`].
    pub outcome: &'static str,
    /// How often.
    pub runs: u64,
}

impl HookCounts {
    /// All counts, by directory, hook and outcome.
    #[must_use]
    pub fn all(&self) -> Vec<HookCount> {
        let mut all = Vec::new();
        for (hooks, counts) in &*self.0.lock() {
            for (hook, outcomes) in counts {
                all.extend(outcomes.iter().map(|(outcome, runs)| HookCount {
                    hooks: hooks.clone(),
                    hook: hook.clone(),
                    outcome,
                    runs: *runs,
                }));
            }
        }
        all
    }

    fn add(&self, hooks: &HookDirName, run: &HookRun) {
        let mut all = self.0.lock();
        // The directory may have been removed from the configuration during the run. Then it is not counted.
        let Some(counts) = all.get_mut(hooks) else { return };
        let name = harmless(&run.hook, TEXT_MAX);
        let is_counted = counts.contains_key(&*name) || counts.len() < COUNTED_MAX;
        let name = if is_counted { &*name } else { OTHER };
        let runs = counts.entry(name.into()).or_default().entry(run.outcome.word()).or_default();
        *runs = runs.saturating_add(1);
    }

    /// Counts hooks of these directories, which are configured now, and forgets the counts of others.
    pub(crate) fn keep<'a>(&self, configured: impl Iterator<Item = &'a HookDirName>) {
        let mut all = self.0.lock();
        let mut before = std::mem::take(&mut *all);
        all.extend(configured.map(|name| (name.clone(), before.remove(name).unwrap_or_default())));
    }
}

/// Bounds the lines of one directory in the log.
#[derive(Debug, Default)]
pub(crate) struct Lines(Mutex<Option<Spoken>>);

/// The lines of one [`PERIOD`].
#[derive(Debug)]
struct Spoken {
    since: Instant,
    lines: u32,
    left_out: u32,
}

impl Lines {
    fn say(&self, text: impl FnOnce() -> String) {
        if let Some(line) = self.line(text) {
            tracing::warn!(target: "weir", "{line}");
        }
    }

    /// The line with this text, if it is not left out.
    fn line(&self, text: impl FnOnce() -> String) -> Option<String> {
        Some(match self.next(Instant::now())? {
            0 => text(),
            left_out => format!("{} ({left_out} lines like this were left out before)", text()),
        })
    }

    /// How many lines were left out before this one. `None` if this one must be left out, too.
    fn next(&self, now: Instant) -> Option<u32> {
        let mut spoken = self.0.lock();
        match &mut *spoken {
            Some(period) if now.saturating_duration_since(period.since) < PERIOD => {
                if period.lines >= LINES_MAX {
                    period.left_out = period.left_out.saturating_add(1);
                    return None;
                }
                period.lines += 1;
                Some(0)
            }
            over => {
                let left_out = over.as_ref().map_or(0, |period| period.left_out);
                *over = Some(Spoken { since: now, lines: 1, left_out: 0 });
                Some(left_out)
            }
        }
    }
}

/// Counts the run of a hook, and logs it if it did not end well. `hooks` is the name of the directory, or `None` for
/// one of the embedding program.
pub(crate) fn tell(
    counts: &HookCounts,
    lines: &Lines,
    hooks: Option<&HookDirName>,
    run: &HookRun,
    is_loaded: bool,
) {
    if let Some(hooks) = hooks {
        counts.add(hooks, run);
    }
    // An interruption is no failure: Main ends.
    if !matches!(run.outcome, HookOutcome::Ok | HookOutcome::Interrupted) {
        lines.say(|| line(hooks, run, is_loaded));
    }
}

fn line(hooks: Option<&HookDirName>, run: &HookRun, is_loaded: bool) -> String {
    let (hook, place) = (harmless(&run.hook, TEXT_MAX), place(hooks));
    let ended = in_words(&run.outcome);
    if !is_loaded && matches!(run.outcome, HookOutcome::TimedOut { .. }) {
        return format!(
            "the hooks of {place} did not run, because `{hook}` was not loaded in time: {ended}; it is loaded further \
             for a later run"
        );
    }
    let text = format!("the hook `{hook}` of {place} ended with {ended}");
    match last_line(&run.stderr) {
        Some(said) => format!("{text}; its last line: {said}"),
        None => text,
    }
}

/// Logs what a hook was refused. `hooks` is the name of its directory, or `None` for one of the embedding program.
pub(crate) fn refused(lines: &Lines, hooks: Option<&HookDirName>, hook: &str, text: &str) {
    let line = || format!("the hook `{}` of {}: {text}", harmless(hook, TEXT_MAX), place(hooks));
    if let Some(line) = lines.line(line) {
        tracing::warn!(target: "weir::refused", "{line}");
    }
}

/// Logs that no hook of a directory could run. `hooks` is its name, or `None` for one of the embedding program.
pub(crate) fn not_run(lines: &Lines, hooks: Option<&HookDirName>, error: &HookError) {
    if !matches!(error, HookError::Ended) {
        lines.say(|| {
            format!("the hooks of {} did not run: {}", place(hooks), harmless(chain(error), TEXT_MAX))
        });
    }
}

/// Logs that a hook could not be loaded for a later run. `hooks` is the name of its directory, or `None` for one of
/// the embedding program.
pub(crate) fn not_loaded(lines: &Lines, hooks: Option<&HookDirName>, hook: &str, why: &str) {
    let (hook, why) = (harmless(hook, TEXT_MAX), harmless(why, TEXT_MAX));
    lines.say(|| format!("the hook `{hook}` of {} could not be loaded: {why}", place(hooks)));
}

fn place(hooks: Option<&HookDirName>) -> String {
    hooks.map_or_else(|| "a directory of the program".to_owned(), |name| format!("`hooks.{name}`"))
}

fn in_words(outcome: &HookOutcome) -> String {
    let word = outcome.word();
    match outcome {
        HookOutcome::Ok | HookOutcome::Interrupted => word.to_owned(),
        HookOutcome::Warning { code } | HookOutcome::ScriptError { code, .. } => {
            format!("{word}: exit code {code}")
        }
        HookOutcome::TimedOut { limit, allowed } => {
            format!("{word}: `{limit}` is {}", humantime::format_duration(*allowed))
        }
        HookOutcome::SystemError { reason, .. } => format!("{word}: {}", harmless(reason, TEXT_MAX)),
        HookOutcome::LimitExceeded(LimitHit { name, used, allowed, .. }) => {
            format!("{word}: `{name}` is {allowed}, and it used {used}")
        }
    }
}

fn last_line(stderr: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(harmless(line.trim(), TEXT_MAX))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn run(hook: &str, outcome: HookOutcome) -> HookRun {
        HookRun {
            hook: hook.to_owned(),
            outcome,
            stdout: Bytes::new(),
            stderr: Bytes::new(),
            duration: Duration::ZERO,
            loading: Duration::ZERO,
            fuel: 0,
            memory: 0,
            is_cut: false,
        }
    }

    #[test]
    fn hooks_are_counted_by_name_up_to_a_bound() {
        let (counts, lines) = (HookCounts::default(), Lines::default());
        let (init, gone): (HookDirName, HookDirName) = ("init".parse().unwrap(), "gone".parse().unwrap());
        counts.keep([&init, &gone].into_iter());
        let failed = HookOutcome::ScriptError { code: 7, is_reserved: false };
        for number in 0..100 {
            tell(&counts, &lines, Some(&init), &run(&format!("{number:02}.wasm"), failed.clone()), true);
        }
        tell(&counts, &lines, Some(&init), &run("00.wasm", HookOutcome::Ok), true);
        tell(&counts, &lines, Some(&gone), &run("00.wasm", HookOutcome::Ok), true);
        tell(&counts, &lines, None, &run("00.wasm", failed), true);
        counts.keep(std::iter::once(&init));
        // By a run that was under way.
        tell(&counts, &lines, Some(&gone), &run("00.wasm", HookOutcome::Ok), true);
        let all = counts.all();
        assert_eq!(all.len(), 66);
        let of = |hook: &str, outcome: &str| {
            all.iter().find(|it| (&*it.hook, it.outcome) == (hook, outcome)).map(|it| it.runs)
        };
        assert_eq!((of("00.wasm", "ok"), of("00.wasm", "script-error")), (Some(1), Some(1)));
        assert_eq!((of(OTHER, "script-error"), of("99.wasm", "script-error")), (Some(36), None));
    }

    #[test]
    fn a_hook_that_was_not_loaded_in_time_is_said_to_be_why_none_ran() {
        let name: HookDirName = "init".parse().unwrap();
        let outcome = HookOutcome::TimedOut {
            limit: weir_config::LimitName::TOTAL_TIMEOUT,
            allowed: Duration::from_secs(5),
        };
        let run = run("10-a.wasm", outcome);
        assert_eq!(
            line(Some(&name), &run, false),
            "the hooks of `hooks.init` did not run, because `10-a.wasm` was not loaded in time: timed-out: \
             `total-timeout` is 5s; it is loaded further for a later run"
        );
        assert_eq!(
            line(Some(&name), &run, true),
            "the hook `10-a.wasm` of `hooks.init` ended with timed-out: `total-timeout` is 5s"
        );
    }

    #[test]
    fn a_directory_has_ten_lines_a_second_and_then_says_how_many_were_left_out() {
        let (lines, begun) = (Lines::default(), Instant::now());
        let spoken: Vec<_> = (0..15).map(|_| lines.next(begun)).collect();
        assert_eq!(spoken[..10], [Some(0); 10]);
        assert_eq!(spoken[10..], [None; 5]);
        assert_eq!(lines.next(begun + PERIOD), Some(5));
        assert_eq!(lines.next(begun + PERIOD), Some(0));
    }

    #[test]
    fn the_last_line_of_an_error_is_safe_and_short() {
        assert_eq!(
            last_line(b"first\n no \x1b[31mlicence\xff \n\n"),
            Some("no \\u{1b}[31mlicence\u{fffd}".to_owned())
        );
        assert_eq!(last_line(b" \n"), None);
        assert!(last_line(&[b'x'; 4000]).unwrap().len() < 300);
    }
}
