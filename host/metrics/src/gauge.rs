//! A number that goes up and down, and its largest value.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number now, and the largest so far.
#[derive(Debug, Default)]
pub struct Gauge {
    now: AtomicU64,
    peak: AtomicU64,
}

impl Gauge {
    /// The number now.
    #[inline]
    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    /// The largest so far.
    #[inline]
    pub fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Nothing now; the largest so far stays.
    #[inline]
    pub fn clear(&self) {
        self.now.store(0, Ordering::Relaxed);
    }

    /// So much more now.
    #[inline]
    pub fn raise(&self, by: u64) {
        self.set(self.now().saturating_add(by));
    }

    /// So much less now.
    #[inline]
    pub fn lower(&self, by: u64) {
        self.set(self.now().saturating_sub(by));
    }

    /// One thread writes, so that the two need not change at once.
    #[inline]
    pub fn set(&self, value: u64) {
        self.now.store(value, Ordering::Relaxed);
        if value > self.peak.load(Ordering::Relaxed) {
            self.peak.store(value, Ordering::Relaxed);
        }
    }
}
