//! What one extension uses of its limits: now, and at most since Main started.
//!
//! The worker thread writes here; everybody else reads, from any thread.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// What one extension uses of its limits, over all its instances.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    /// Bytes of linear memory.
    pub(crate) memory: Gauge,
    /// Fuel of the message in hand, as of the last call into the host.
    pub(crate) fuel_per_message: Gauge,
    /// Fuel before the first message.
    pub(crate) fuel_to_start: Gauge,
    /// Share of the worker thread in a second, in hundredths of a percent.
    pub(crate) cpu_share: ShareGauge,
    /// Requests in hand.
    pub(crate) in_hand: Gauge,
    /// Requests sent without waiting, whose replies have not been received.
    pub(crate) under_way: Gauge,
    /// Lines logged in a second.
    pub(crate) log_rate: Gauge,
    /// Lines that were over the rate, and are lost.
    pub(crate) log_dropped: AtomicU64,
    /// Nanoseconds that the last start took.
    pub(crate) ready: Gauge,
    /// Nanoseconds that the last stop took.
    pub(crate) stop: Gauge,
    /// Nanoseconds of processor time.
    cpu: AtomicU64,
    /// Nanoseconds for which it could have run and was delayed, being over its share.
    delayed: AtomicU64,
}

impl Usage {
    pub(crate) fn cpu(&self) -> Duration {
        Duration::from_nanos(self.cpu.load(Ordering::Relaxed))
    }

    pub(crate) fn add_cpu(&self, nanoseconds: u64) {
        self.cpu.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    pub(crate) fn delayed(&self) -> Duration {
        Duration::from_nanos(self.delayed.load(Ordering::Relaxed))
    }

    pub(crate) fn add_delay(&self, nanoseconds: u64) {
        self.delayed.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

/// A number now, and the largest so far.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    now: AtomicU64,
    peak: AtomicU64,
}

impl Gauge {
    pub(crate) fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// One thread writes, so that the two need not change at once.
    pub(crate) fn set(&self, value: u64) {
        self.now.store(value, Ordering::Relaxed);
        if value > self.peak.load(Ordering::Relaxed) {
            self.peak.store(value, Ordering::Relaxed);
        }
    }
}

/// A share of time, over the last second in which there was any.
#[derive(Debug)]
pub(crate) struct ShareGauge {
    gauge: Gauge,
    created: Instant,
    /// When the second under way began, and what was used in it, in nanoseconds.
    began: AtomicU64,
    used: AtomicU64,
}

/// Over which a share is measured.
const SECOND: u64 = 1_000_000_000;

impl ShareGauge {
    /// In hundredths of a percent.
    pub(crate) fn now(&self) -> u64 {
        let idle = self.nanoseconds(Instant::now()).saturating_sub(self.began.load(Ordering::Relaxed));
        if idle > 2 * SECOND { 0 } else { self.gauge.now() }
    }

    /// In hundredths of a percent.
    pub(crate) fn peak(&self) -> u64 {
        self.gauge.peak()
    }

    /// Counts work that ended at `now`.
    pub(crate) fn spend(&self, now: Instant, nanoseconds: u64) {
        let now = self.nanoseconds(now);
        let used = self.used.load(Ordering::Relaxed).saturating_add(nanoseconds);
        let passed = now.saturating_sub(self.began.load(Ordering::Relaxed));
        if passed < SECOND {
            self.used.store(used, Ordering::Relaxed);
        } else {
            self.gauge.set(used.saturating_mul(10_000) / passed);
            self.began.store(now, Ordering::Relaxed);
            self.used.store(0, Ordering::Relaxed);
        }
    }

    fn nanoseconds(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.created).as_nanos()).unwrap_or(u64::MAX)
    }
}

impl Default for ShareGauge {
    fn default() -> Self {
        Self {
            gauge: Gauge::default(),
            created: Instant::now(),
            began: AtomicU64::new(0),
            used: AtomicU64::new(0),
        }
    }
}
