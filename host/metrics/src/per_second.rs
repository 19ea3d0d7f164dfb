//! How much there was of something in a second.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use crate::{gauge::Gauge, nanoseconds};

/// How much there was of something in a second: the last in which there was any, and the most.
#[derive(Debug)]
pub struct PerSecond {
    gauge: Gauge,
    created: Instant,
    /// When the second under way began, in nanoseconds, and what there was in it.
    began: AtomicU64,
    counted: AtomicU64,
}

const SECOND: u64 = 1_000_000_000;

impl PerSecond {
    /// How much there was in the last whole second, or in the one under way.
    pub fn now(&self) -> u64 {
        let passed = self.age(Instant::now()).saturating_sub(self.began.load(Ordering::Relaxed));
        match passed / SECOND {
            0 => self.gauge.now(),
            1 => self.counted.load(Ordering::Relaxed),
            _ => 0,
        }
    }

    /// The most that there was in a second.
    pub fn peak(&self) -> u64 {
        self.gauge.peak().max(self.counted.load(Ordering::Relaxed))
    }

    /// Counts what there was at `now`.
    #[inline]
    pub fn add(&self, now: Instant, amount: u64) {
        let now = self.age(now);
        let counted = self.counted.load(Ordering::Relaxed);
        let passed = now.saturating_sub(self.began.load(Ordering::Relaxed));
        if passed < SECOND {
            self.counted.store(counted.saturating_add(amount), Ordering::Relaxed);
            return;
        }
        self.gauge.set(counted);
        if passed >= 2 * SECOND {
            // Between the two there was a second without any.
            self.gauge.set(0);
        }
        self.began.store(now, Ordering::Relaxed);
        self.counted.store(amount, Ordering::Relaxed);
    }

    /// In nanoseconds.
    fn age(&self, now: Instant) -> u64 {
        nanoseconds(now.saturating_duration_since(self.created))
    }
}

impl Default for PerSecond {
    fn default() -> Self {
        Self {
            gauge: Gauge::default(),
            created: Instant::now(),
            began: AtomicU64::new(0),
            counted: AtomicU64::new(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_burst_before_a_rest_is_the_peak_and_is_over() {
        let (counter, start) = (PerSecond::default(), Instant::now());
        counter.add(start + Duration::from_millis(900), 900);
        assert_eq!(counter.peak(), 900);
        counter.add(start + Duration::from_secs(100), 1);
        counter.add(start + Duration::from_millis(100_500), 1);
        assert_eq!((counter.gauge.now(), counter.peak()), (0, 900));
        counter.add(start + Duration::from_millis(101_100), 7);
        assert_eq!((counter.gauge.now(), counter.peak()), (2, 900));
    }
}
