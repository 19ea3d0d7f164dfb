//! What one extension uses of its limits: now, and at most since Main started.
//!
//! The worker thread writes here; everybody else reads, from any thread.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// What one extension uses of its limits, over all its instances.
#[derive(Debug, Default)]
pub struct Usage {
    /// Bytes of linear memory.
    pub memory: Gauge,
    /// Fuel of the message in hand, as of the last call into the host.
    pub fuel_per_message: Gauge,
    /// Fuel before the first message.
    pub fuel_to_start: Gauge,
    /// Nanoseconds for which it ran on the worker thread in a second.
    pub cpu_second: PerSecond,
    /// Requests in hand.
    pub in_hand: Gauge,
    /// Requests sent without waiting, whose replies have not been received.
    pub under_way: Gauge,
    /// Lines logged in a second.
    pub log_rate: PerSecond,
    /// Lines that were over the rate, and are lost.
    pub log_dropped: AtomicU64,
    /// Nanoseconds that the last start took.
    pub ready: Gauge,
    /// Nanoseconds that the last stop took.
    pub stop: Gauge,
    /// Nanoseconds for which it ran on the worker thread, by the clock.
    cpu: AtomicU64,
    /// Nanoseconds for which it could have run and was delayed, being over its share.
    delayed: AtomicU64,
}

impl Usage {
    pub fn cpu(&self) -> Duration {
        Duration::from_nanos(self.cpu.load(Ordering::Relaxed))
    }

    pub fn add_cpu(&self, nanoseconds: u64) {
        let before = self.cpu.load(Ordering::Relaxed);
        self.cpu.store(before.wrapping_add(nanoseconds), Ordering::Relaxed);
    }

    pub fn delayed(&self) -> Duration {
        Duration::from_nanos(self.delayed.load(Ordering::Relaxed))
    }

    pub fn add_delay(&self, nanoseconds: u64) {
        self.delayed.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

/// A number now, and the largest so far.
#[derive(Debug, Default)]
pub struct Gauge {
    now: AtomicU64,
    peak: AtomicU64,
}

impl Gauge {
    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    pub fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Nothing now; the largest so far stays.
    pub fn clear(&self) {
        self.now.store(0, Ordering::Relaxed);
    }

    /// So much more now.
    pub fn raise(&self, by: u64) {
        self.set(self.now().saturating_add(by));
    }

    /// So much less now.
    pub fn lower(&self, by: u64) {
        self.set(self.now().saturating_sub(by));
    }

    /// One thread writes, so that the two need not change at once.
    pub fn set(&self, value: u64) {
        self.now.store(value, Ordering::Relaxed);
        if value > self.peak.load(Ordering::Relaxed) {
            self.peak.store(value, Ordering::Relaxed);
        }
    }
}

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
    pub fn now(&self) -> u64 {
        let passed = self.age(Instant::now()).saturating_sub(self.began.load(Ordering::Relaxed));
        match passed / SECOND {
            0 => self.gauge.now(),
            1 => self.counted.load(Ordering::Relaxed),
            _ => 0,
        }
    }

    pub fn peak(&self) -> u64 {
        self.gauge.peak().max(self.counted.load(Ordering::Relaxed))
    }

    /// Counts what there was at `now`.
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

/// A length of time as limits and their use count it; all that fits, where it is longer than 500 years.
pub fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
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
