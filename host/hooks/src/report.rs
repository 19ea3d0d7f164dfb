//! What came of a run.

use std::time::Duration;

use bytes::Bytes;
use serde::{Serialize, Serializer, ser::SerializeMap};
use weir_config::{LimitHit, LimitName};
use weir_metrics::nanoseconds;

/// What came of a run of the hooks of a directory.
/// In JSON it has the outcome of all beside them, what was written as text, and times in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookReport {
    /// The hooks that were run, in order. Only the last can be one after which none runs.
    pub runs: Vec<HookRun>,
    /// Time from the call to the end of the last.
    pub duration: Duration,
}

/// What came of one hook.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookRun {
    /// The name of its file.
    pub hook: String,
    /// How it ended.
    pub outcome: HookOutcome,
    /// What it wrote to its standard output.
    pub stdout: Bytes,
    /// What it wrote to its standard error.
    pub stderr: Bytes,
    /// Time that it took, loading included.
    pub duration: Duration,
    /// Time of that in which its component was read, and compiled if the cache did not have it.
    pub loading: Duration,
    /// Units of fuel that it used.
    pub fuel: u64,
    /// Bytes of linear memory that it had at most.
    pub memory: u64,
    /// A part of what it wrote is left out, since whoever asked through `hooks@1` takes no larger messages.
    pub is_cut: bool,
}

/// How a hook ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HookOutcome {
    /// Well.
    Ok,
    /// With a code in the range of warnings: the next hook runs.
    Warning {
        /// The exit code.
        code: u8,
    },
    /// With any other exit code.
    ScriptError {
        /// The exit code.
        code: u8,
        /// It is in none of the ranges.
        is_reserved: bool,
    },
    /// Main has ended.
    Interrupted,
    /// It took too long.
    TimedOut {
        /// The limit that says how long it may take: [`LimitName::TIMEOUT`], [`LimitName::TOTAL_TIMEOUT`], or
        /// [`LimitName::CALL`] where the caller set less for all of them.
        limit: LimitName,
        /// How long that is.
        allowed: Duration,
    },
    /// It came to no exit code: it is no component that runs here, it trapped, or the host failed under it.
    SystemError {
        /// What happened, in one line.
        reason: String,
        /// Names of the functions that were running, innermost first.
        trace: Vec<String>,
    },
    /// It was ended for using more than it may.
    LimitExceeded(LimitHit),
}

impl HookReport {
    /// Of all hooks together: that of the hook that ended the run, or else of the last that warned.
    #[must_use]
    pub fn outcome(&self) -> &HookOutcome {
        let last = self.runs.last().map(|run| &run.outcome);
        match last {
            Some(last) if !last.goes_on() => last,
            _ => self
                .runs
                .iter()
                .rev()
                .map(|run| &run.outcome)
                .find(|it| **it != HookOutcome::Ok)
                .unwrap_or(&HookOutcome::Ok),
        }
    }

    /// Keeps the first bytes of what each hook wrote.
    pub fn cut_output(&mut self, bytes: usize) {
        for run in &mut self.runs {
            let is_cut = run.stdout.len().max(run.stderr.len()) > bytes;
            run.is_cut |= is_cut;
            run.stdout.truncate(bytes);
            run.stderr.truncate(bytes);
        }
    }

    /// Whether every hook ended well or with a warning.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.outcome().goes_on()
    }
}

impl HookOutcome {
    /// Its name, as it stands in JSON.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning { .. } => "warning",
            Self::ScriptError { .. } => "script-error",
            Self::Interrupted => "interrupted",
            Self::TimedOut { .. } => "timed-out",
            Self::SystemError { .. } => "system-error",
            Self::LimitExceeded(_) => "limit-exceeded",
        }
    }

    /// Whether the next hook runs.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        matches!(self, Self::Ok | Self::Warning { .. })
    }
}

impl Serialize for HookReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("outcome", self.outcome().word())?;
        map.serialize_entry("duration-us", &self.duration.as_micros())?;
        map.serialize_entry("hooks", &self.runs)?;
        map.end()
    }
}

impl Serialize for HookRun {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("hook", &self.hook)?;
        map.serialize_entry("outcome", self.outcome.word())?;
        match &self.outcome {
            HookOutcome::Ok | HookOutcome::Interrupted => {}
            HookOutcome::Warning { code } => map.serialize_entry("code", code)?,
            HookOutcome::ScriptError { code, is_reserved } => {
                map.serialize_entry("code", code)?;
                map.serialize_entry("reserved", is_reserved)?;
            }
            HookOutcome::TimedOut { limit, allowed } => {
                let allowed = nanoseconds(*allowed);
                map.serialize_entry("limit", &LimitHit::new(*limit, allowed, allowed))?;
            }
            HookOutcome::SystemError { reason, trace } => {
                map.serialize_entry("reason", reason)?;
                map.serialize_entry("trace", trace)?;
            }
            HookOutcome::LimitExceeded(limit) => map.serialize_entry("limit", limit)?,
        }
        map.serialize_entry("stdout", &String::from_utf8_lossy(&self.stdout))?;
        map.serialize_entry("stderr", &String::from_utf8_lossy(&self.stderr))?;
        if self.is_cut {
            map.serialize_entry("cut", &true)?;
        }
        map.serialize_entry("duration-us", &self.duration.as_micros())?;
        map.serialize_entry("loading-us", &self.loading.as_micros())?;
        map.serialize_entry("fuel", &self.fuel)?;
        map.serialize_entry("memory", &self.memory)?;
        map.end()
    }
}
