//! What becomes of an extension that ends, and how a new version takes its place: as configured.
//!
//! Owns the values and what must hold between them. Knows nothing of clocks: the supervisor counts.

use std::{ops::RangeInclusive, time::Duration};

use super::{error::quote, shape::Shape};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Of `backoff` and of `max-backoff`.
pub(super) const BACKOFF: RangeInclusive<Duration> = Duration::from_millis(1)..=DAY;

pub(super) const FAILURES: RangeInclusive<u32> = 1..=1000;

pub(super) const WINDOW: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(7 * DAY.as_secs());

/// When an extension that has ended is started again, and when no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestartConfig {
    /// After which ends it is started again.
    pub policy: RestartPolicy,
    /// The longest that the first restart is delayed; each further one up to twice as long as the one
    /// before: 1 ms to 1 day, at first 100 ms. The delay is drawn evenly from half of that to all of it.
    pub backoff: Duration,
    /// The longest that any restart is delayed: 1 ms to 1 day and not less than `backoff`, at first
    /// 1 minute.
    pub max_backoff: Duration,
    /// As many failures within `window` are the last: the extension is quarantined. 1 to 1,000, at
    /// first 5.
    pub failures: u32,
    /// How long a failure counts: 1 ms to 7 days, at first 1 minute.
    pub window: Duration,
}

/// After which ends an extension is started again. Never after one that somebody asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestartPolicy {
    /// After none.
    Never,
    /// After a failure.
    #[default]
    OnFailure,
    /// Also after an end without a failure, which then counts as one does.
    Always,
}

/// In which order a reload starts the new instance of an extension and stops the old one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReloadMode {
    /// The old one drains and stops, then the new one starts: there is never more than one.
    #[default]
    StopFirst,
    /// The old one drains when the new one is ready: for a while there are two.
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
    /// The delay of the restart after the failure of that number within `window`, from 1: `draw`, 0 to 1, of the way
    /// from half of the longest to all of it, so that extensions that failed together do not start together.
    ///
    /// This is "equal jitter" of Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture
    /// Blog, 2015.
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

    /// What the delays between `failures` failures take at least. Where that is all of `window`, so many
    /// are never within it.
    fn least_delays(&self) -> Duration {
        let mut sum = Duration::ZERO;
        for failure in 1..self.failures {
            let longest = self.longest_delay(failure);
            if longest == self.max_backoff {
                // So it is from here on.
                return sum.saturating_add((longest / 2).saturating_mul(self.failures - failure));
            }
            sum = sum.saturating_add(longest / 2);
        }
        sum
    }

    /// Why quarantine never comes, of values within their ranges.
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

    /// What is wrong between the delays.
    pub(super) fn contradiction(&self) -> Option<String> {
        (self.max_backoff < self.backoff).then(|| {
            format!(
                "`max-backoff` is {} and `backoff` {}: the longest delay cannot be shorter than the first",
                humantime::format_duration(self.max_backoff),
                humantime::format_duration(self.backoff)
            )
        })
    }

    /// Every value that is out of its range: the key and what it must be.
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
    /// As a file has it.
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
    /// As a file has it.
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
