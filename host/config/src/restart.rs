//! The configuration of restarts and reloads.
//!
//! Owns the values and the rules between them. Knows nothing of clocks: the supervisor counts.

use std::{ops::RangeInclusive, time::Duration};

use super::{
    key::{Contradiction, Table, faults},
    kind::{number, word},
    shape::Shape,
};
use crate::{keys, words};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) const BACKOFF: RangeInclusive<Duration> = Duration::from_millis(1)..=DAY;

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
    /// It never restarts.
    Never,
    /// It restarts after failures.
    #[default]
    OnFailure,
    /// It restarts after all ends. An end without a failure counts as a failure.
    Always,
}

/// The order of start and stop in a reload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReloadMode {
    /// The old instance drains and stops, then the new one starts. There is never more than one.
    #[default]
    StopFirst,
    /// The old instance drains once the new one is ready. For a while, there are two.
    Overlap,
}

/// When an extension is ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadyWhen {
    /// When it first looks for messages, or says that it is. A program that imports nothing of `weir:iec` can do neither:
    /// it is as with [`AtStart`](Self::AtStart).
    #[default]
    Receives,
    /// Once it waits for anything: it may have no messages.
    AtStart,
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

    /// The longest delay after failure `number` (from 1): min(`backoff` · 2^(number - 1), `max-backoff`).
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
                // All further delays are this long.
                return sum.saturating_add((longest / 2).saturating_mul(self.failures - failure));
            }
            sum = sum.saturating_add(longest / 2);
        }
        sum
    }

    /// Why quarantine never comes. `None` if it can come, if the extension never restarts, or if values are faulty.
    pub(super) fn without_quarantine(&self) -> Option<String> {
        let sum = self.least_delays();
        if self.policy == RestartPolicy::Never || !faults(self, "").is_empty() || sum < self.window {
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
}

impl Table for RestartConfig {
    keys! {
        RestartConfig;
        /// After which ends it is started again. A reload to a policy that would not have done so ends a delay under
        /// way.
        "policy" policy = word();
        /// The longest delay of the first restart.
        "backoff" backoff = number(Shape::Time(BACKOFF));
        /// The longest delay of any restart, also of one under way at a reload. Not less than `backoff`.
        "max-backoff" max_backoff = number(Shape::Time(BACKOFF));
        /// So many failures within `window` quarantine it.
        "failures" failures = number(Shape::Count(1..=1000));
        /// How long a failure counts.
        "window" window = number(Shape::Time(WINDOW));
    }

    fn contradictions(&self) -> Vec<Contradiction> {
        let contradiction = || Contradiction {
            keys: ["max-backoff", "backoff"],
            message: format!(
                "`max-backoff` is {} and `backoff` {}: the longest delay cannot be shorter than the first",
                humantime::format_duration(self.max_backoff),
                humantime::format_duration(self.backoff)
            ),
        };
        (self.max_backoff < self.backoff).then(contradiction).into_iter().collect()
    }
}

words!(RestartPolicy, "a policy: ": "never" = Never, "on-failure" = OnFailure, "always" = Always);
words!(ReadyWhen, "a moment: ": "receives" = Receives, "at-start" = AtStart);
words!(ReloadMode, "a way to reload: ": "stop-first" = StopFirst, "overlap" = Overlap);
