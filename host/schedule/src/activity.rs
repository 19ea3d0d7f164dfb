//! The activations of one extension: each has a number, and the time at which it began.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use weir_metrics::moment;

/// Which activation of an extension is under way, and since when.
#[derive(Debug)]
pub struct Activity {
    number: AtomicU64,
    /// When the current activation began, as a [`moment`].
    started: AtomicU64,
}

impl Activity {
    /// Makes the activity of an extension that has not run yet.
    #[expect(clippy::new_without_default, reason = "it counts from now on")]
    pub fn new() -> Self {
        Self { number: AtomicU64::new(0), started: AtomicU64::new(moment(Instant::now())) }
    }

    /// Returns the number of the current activation.
    #[inline]
    pub fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    /// Returns when the current activation began, as a [`moment`].
    #[inline]
    pub fn began_at(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }

    /// Returns the time since the current activation began.
    #[inline]
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(moment(Instant::now()).saturating_sub(self.began_at()))
    }

    /// Begins the next activation at this [`moment`].
    #[inline]
    pub fn begin(&self, now: u64) {
        self.started.store(now, Ordering::Relaxed);
        // A plain store is enough, because only this function writes the number.
        self.number.store(self.number().wrapping_add(1), Ordering::Relaxed);
    }
}
