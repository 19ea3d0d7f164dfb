//! The configuration of restarts and reloads.
//!
//! Owns the values and the rules between them. Knows nothing of clocks: the supervisor counts.

use std::{ops::RangeInclusive, time::Duration};

use super::{error::quote, shape::Shape};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) const BACKOFF: RangeInclusive<Duration> = Duration::from_millis(1)..=DAY;

pub(super) const FAILURES: RangeInclusive<u32> = 1..=1000;

pub(super) const WINDOW: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(7 * DAY.as_secs());

/// When an extension that has ended starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestartConfig {
    /// The ends after which it restarts.
    pub policy: RestartPolicy,
    /// Longest delay of the first restart; it doubles with each further one: 1 ms to 1 day. Default: 100 ms. The delay
    /// is drawn evenly between half of that and all of it.
    pub backoff: Duration,
    /// Longest delay of any restart: 1 ms to 1 day, at least `backoff`. Default: 1 minute.
    pub max_backoff: Duration,
    /// Failures within `window` that quarantine it: 1 to 1,000. Default: 5.
    pub failures: u32,
    /// How long a failure counts: 1 ms to 7 days. Default: 1 minute.
    pub window: Duration,
}

/// The ends after which an extension restarts. A requested stop is never one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestartPolicy {
    /// None.
    Never,
    /// Failures.
    #[default]
    OnFailure,
    /// All ends. An end without a failure counts as one.
    Always,
}

/// The order of start and stop in a reload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReloadMode {
    /// The old instance drains and stops, then the new one starts: never more than one runs.
    #[default]
    StopFirst,
    /// The old instance drains once the new one is ready: for a while two run.
    Overlap,
}

impl Default for RestartConfig {
    fn default() -> Self {
        Self {
            policy: RestartPolicy::default(),
            backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(60),
            failures: 5,
            window: Duration::from_secs(60),
        }
    }
}

impl RestartConfig {
    /// The delay after failure `number` (from 1) within `window`. `draw`, from 0 to 1, picks a point between half of
    /// the longest delay and all of it, so that extensions that failed together restart apart.
    ///
    /// This is "equal jitter" of Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    pub fn delay(&self, number: u32, draw: f64) -> Duration {
        let half = self.longest_delay(number) / 2;
        half + half.mul_f64(draw.clamp(0.0, 1.0))
    }

    /// min(`backoff` · 2^(number - 1), `max-backoff`).
    pub fn longest_delay(&self, number: u32) -> Duration {
        let doubled = 2_u32.checked_pow(number.saturating_sub(1));
        let delay = doubled.and_then(|times| self.backoff.checked_mul(times));
        delay.map_or(self.max_backoff, |delay| delay.min(self.max_backoff))
    }

    /// Least sum of delays between `failures` failures. If that is `window` or more, quarantine never comes.
    fn least_delays(&self) -> Duration {
        let mut sum = Duration::ZERO;
        for failure in 1..self.failures {
            let longest = self.longest_delay(failure);
            if longest == self.max_backoff {
                // Further delays are equal.
                return sum.saturating_add((longest / 2).saturating_mul(self.failures - failure));
            }
            sum = sum.saturating_add(longest / 2);
        }
        sum
    }

    /// Why quarantine never comes. Expects valid values.
    pub(super) fn without_quarantine(&self) -> Option<String> {
        let sum = self.least_delays();
        if self.policy == RestartPolicy::Never || !self.out_of_range().is_empty() || sum < self.window {
            return None;
        }
        Some(format!(
            "the delays between {} failures (`restart.failures`) come to {} at least, and \
             `restart.window` is {}: raise `window`, or lower `failures`, `backoff` or `max-backoff`",
            self.failures,
            humantime::format_duration(sum),
            humantime::format_duration(self.window)
        ))
    }

    pub(super) fn contradiction(&self) -> Option<String> {
        (self.max_backoff < self.backoff).then(|| {
            format!(
                "`max-backoff` is {} and `backoff` {}: the longest delay cannot be shorter than the first",
                humantime::format_duration(self.max_backoff),
                humantime::format_duration(self.backoff)
            )
        })
    }

    pub(super) fn out_of_range(&self) -> Vec<(&'static str, String)> {
        [
            ("backoff", BACKOFF.contains(&self.backoff), Shape::Time(BACKOFF)),
            ("max-backoff", BACKOFF.contains(&self.max_backoff), Shape::Time(BACKOFF)),
            ("failures", FAILURES.contains(&self.failures), Shape::counts(FAILURES)),
            ("window", WINDOW.contains(&self.window), Shape::Time(WINDOW)),
        ]
        .into_iter()
        .filter_map(|(key, within, shape)| (!within).then(|| (key, shape.to_string())))
        .collect()
    }
}

impl RestartPolicy {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::OnFailure => "on-failure",
            Self::Always => "always",
        }
    }

    pub(super) fn named(text: &str) -> Result<Self, String> {
        match text {
            "never" => Ok(Self::Never),
            "on-failure" => Ok(Self::OnFailure),
            "always" => Ok(Self::Always),
            _ => Err(format!("{} is not a policy: `never`, `on-failure` or `always`", quote(text))),
        }
    }
}

impl ReloadMode {
    /// The name in a file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::StopFirst => "stop-first",
            Self::Overlap => "overlap",
        }
    }

    pub(super) fn named(text: &str) -> Result<Self, String> {
        match text {
            "stop-first" => Ok(Self::StopFirst),
            "overlap" => Ok(Self::Overlap),
            _ => Err(format!("{} is not a way to reload: `stop-first` or `overlap`", quote(text))),
        }
    }
}
