//! A number that goes up and down, and its peak.

use std::sync::atomic::{AtomicU64, Ordering};

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
