//! Amounts per second: further ones wait.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The amount of this time may come at once.
const BURST: Duration = Duration::from_secs(1);

/// Allows so much per second.
#[derive(Debug)]
pub(crate) struct Pace {
    per_second: f64,
    /// When everything allowed so far would have come evenly.
    even: Mutex<Instant>,
}

impl Pace {
    pub(crate) fn new(per_second: u64, now: Instant) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a rate need not be exact")]
        let per_second = per_second.max(1) as f64;
        Self { per_second, even: Mutex::new(now) }
    }

    /// Counts an amount; returns how long to wait before more.
    pub(crate) fn take(&self, amount: u64, now: Instant) -> Option<Duration> {
        #[expect(clippy::cast_precision_loss, reason = "a rate need not be exact")]
        let takes = Duration::from_secs_f64(amount as f64 / self.per_second);
        let mut even = self.even.lock();
        *even = (*even).max(now) + takes;
        even.checked_duration_since(now + BURST).filter(|wait| !wait.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_time_no_more_comes_than_allowed_and_a_second_s_worth_at_once() {
        let mut now = Instant::now();
        let (pace, start) = (Pace::new(1000, now), now);
        assert_eq!(pace.take(1000, now), None);
        for _ in 0..100 {
            let wait = pace.take(100, now).unwrap();
            assert!((99..=101).contains(&wait.as_millis()), "{wait:?}");
            now += wait;
        }
        assert!((9.9..10.1).contains(&(now - start).as_secs_f64()));
        assert_eq!(pace.take(1000, now + Duration::from_secs(100)), None);
    }
}
