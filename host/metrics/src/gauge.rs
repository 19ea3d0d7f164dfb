//! Numbers that go up and down, and amounts per second, each with its peak.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use crate::moment;

/// The current number and its peak.
#[derive(Debug, Default)]
pub struct Gauge {
    now: AtomicU64,
    peak: AtomicU64,
}

impl Gauge {
    /// The current number.
    #[inline]
    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// The peak.
    #[inline]
    pub fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Sets the number to 0 and keeps the peak.
    #[inline]
    pub fn clear(&self) {
        self.now.store(0, Ordering::Relaxed);
    }

    /// Adds to the number.
    #[inline]
    pub fn raise(&self, by: u64) {
        self.set(self.now().saturating_add(by));
    }

    /// Subtracts from the number.
    #[inline]
    pub fn lower(&self, by: u64) {
        self.set(self.now().saturating_sub(by));
    }

    /// Sets the number. Only one thread may write: the number and its peak do not change at once.
    #[inline]
    pub fn set(&self, value: u64) {
        self.now.store(value, Ordering::Relaxed);
        if value > self.peak.load(Ordering::Relaxed) {
            self.peak.store(value, Ordering::Relaxed);
        }
    }
}

/// An amount per second: that of the last full second, and the largest.
#[derive(Debug)]
pub struct PerSecond {
    /// The amount of the second before the latest one, and the peak.
    gauge: Gauge,
    /// Start of the latest second with an amount, as a [`moment`].
    began: AtomicU64,
    /// The amount of that second so far.
    counted: AtomicU64,
}

const SECOND: u64 = 1_000_000_000;

impl PerSecond {
    /// The amount of the last full second. 0 if nothing was added in it.
    pub fn now(&self) -> u64 {
        let passed = moment(Instant::now()).saturating_sub(self.began.load(Ordering::Relaxed));
        match passed / SECOND {
            0 => self.gauge.now(),
            1 => self.counted.load(Ordering::Relaxed),
            _ => 0,
        }
    }

    /// The peak of any second.
    pub fn peak(&self) -> u64 {
        self.gauge.peak().max(self.counted.load(Ordering::Relaxed))
    }

    /// Adds an amount at `now`.
    #[inline]
    pub fn add(&self, now: Instant, amount: u64) {
        self.add_at(moment(now), amount);
    }

    /// Adds an amount at a [`moment`].
    #[inline]
    pub fn add_at(&self, now: u64, amount: u64) {
        let counted = self.counted.load(Ordering::Relaxed);
        let passed = now.saturating_sub(self.began.load(Ordering::Relaxed));
        if passed < SECOND {
            self.counted.store(counted.saturating_add(amount), Ordering::Relaxed);
            return;
        }
        self.gauge.set(counted);
        if passed >= 2 * SECOND {
            // The second before this one had no amount.
            self.gauge.set(0);
        }
        self.began.store(now, Ordering::Relaxed);
        self.counted.store(amount, Ordering::Relaxed);
    }
}

impl Default for PerSecond {
    fn default() -> Self {
        Self {
            gauge: Gauge::default(),
            began: AtomicU64::new(moment(Instant::now())),
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
