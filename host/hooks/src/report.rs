//! The report of a run.

use std::{fmt, time::Duration};

use bytes::Bytes;
use serde::{Serialize, Serializer, ser::SerializeMap};
use weir_config::{LimitHit, LimitName};
use weir_metrics::nanoseconds;

/// The report of a run. In JSON it also has the total outcome; output is text, and times are in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookReport {
    /// The hooks that ran or could not be loaded, in order. Only the last one may have stopped the run.
    pub runs: Vec<HookRun>,
    /// Time from the call to the end.
    pub duration: Duration,
}

/// The result of one hook.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookRun {
    /// The name of its file.
    pub hook: String,
    /// How the hook ended.
    pub outcome: HookOutcome,
    /// What the hook wrote to standard output.
    pub stdout: Bytes,
    /// What the hook wrote to standard error.
    pub stderr: Bytes,
    /// Time that the hook took, including loading.
    pub duration: Duration,
    /// Time for reading the component, and for compiling it if the cache did not have it.
    pub loading: Duration,
    /// Fuel that the hook used.
    pub fuel: u64,
    /// Peak of linear memory in bytes.
    pub memory: u64,
    /// Whether output is missing because it exceeds the message size of the caller of `hooks@1`.
    pub is_cut: bool,
}

/// How a hook ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HookOutcome {
    /// Success.
    Ok,
    /// An exit code in the range of warnings: the next hook runs.
    Warning {
        /// The exit code.
        code: u8,
    },
    /// Any other exit code.
    ScriptError {
        /// The exit code.
        code: u8,
        /// Whether it is outside all ranges.
        is_reserved: bool,
    },
    /// Main ended before the hook did.
    Interrupted,
    /// The time was over before the hook ended, or before it was loaded.
    TimedOut {
        /// The limit: [`LimitName::TIMEOUT`], [`LimitName::TOTAL_TIMEOUT`], or [`LimitName::CALL`] if the caller set
        /// less for all hooks.
        limit: LimitName,
        /// The time limit.
        allowed: Duration,
    },
    /// There is no exit code: the file is not a component that runs here, the hook trapped, or the host failed.
    SystemError {
        /// The reason, in one line.
        reason: String,
        /// The running functions, innermost first.
        trace: Vec<String>,
    },
    /// The hook exceeded a limit.
    LimitExceeded(LimitHit),
}

impl HookReport {
    /// The total outcome: of the hook that stopped the run, else of the last warning.
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

    /// Keeps the first `bytes` bytes of each hook's standard output, and as many of its standard error.
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
    /// The name in JSON.
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
        self.run_exit_code() == 0
    }

    /// The exit code of a program that ran hooks and ends because of this outcome, such as `weir hooks run`. It is 0 if the
    /// next hook runs.
    #[must_use]
    pub fn run_exit_code(&self) -> u8 {
        match self {
            Self::Ok | Self::Warning { .. } => 0,
            Self::Interrupted | Self::SystemError { .. } => 1,
            Self::LimitExceeded(_) => 5,
            Self::TimedOut { .. } => 6,
            Self::ScriptError { .. } => 7,
        }
    }
}

/// Writes the outcome in words, without the limit or the cause.
impl fmt::Display for HookOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => f.write_str("ok"),
            Self::Warning { code } => write!(f, "warning, exit code {code}"),
            Self::ScriptError { code, is_reserved } => {
                let reserved = if *is_reserved { ", which is reserved" } else { "" };
                write!(f, "script error, exit code {code}{reserved}")
            }
            Self::Interrupted => f.write_str("interrupted"),
            Self::TimedOut { .. } => f.write_str("timed out"),
            Self::SystemError { .. } => f.write_str("system error"),
            Self::LimitExceeded(_) => f.write_str("limit exceeded"),
        }
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
                map.serialize_entry("limit", &LimitHit::new(limit.clone(), allowed, allowed))?;
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
