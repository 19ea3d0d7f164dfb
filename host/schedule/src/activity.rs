//! The activations of one extension: numbered, each with its beginning.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use weir_metrics::moment;

/// Which activation of an extension is under way, and since when.
#[derive(Debug)]
pub struct Activity {
    number: AtomicU64,
    /// As a [`moment`].
    started: AtomicU64,
}

impl Activity {
    /// For an extension that has not run yet.
    #[expect(clippy::new_without_default, reason = "it counts from now on")]
    pub fn new() -> Self {
        Self { number: AtomicU64::new(0), started: AtomicU64::new(moment(Instant::now())) }
    }

    /// The number of the current activation.
    #[inline]
    pub fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    /// When the current activation began, as a [`moment`].
    #[inline]
    pub fn began_at(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }

    /// Time since the current activation began.
    #[inline]
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(moment(Instant::now()).saturating_sub(self.began_at()))
    }

    /// The next activation begins at this [`moment`].
    #[inline]
    pub fn begin(&self, now: u64) {
        self.started.store(now, Ordering::Relaxed);
        // Only this function writes it.
        self.number.store(self.number().wrapping_add(1), Ordering::Relaxed);
    }
}
