//! What one extension uses of its limits: now, and at most since Main started.
//!
//! The worker thread writes here; everybody else reads, from any thread.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
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
    pub(crate) cpu_share: Gauge,
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
