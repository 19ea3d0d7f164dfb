//! The activations of one extension: numbered, each with its beginning.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use weir_metrics::nanoseconds;

/// Which activation of an extension is under way, and since when.
#[derive(Debug)]
pub struct Activity {
    number: AtomicU64,
    created: Instant,
    started: AtomicU64,
}

impl Activity {
    /// For an extension that has not run yet.
    #[expect(clippy::new_without_default, reason = "it counts from now on")]
    pub fn new() -> Self {
        Self { number: AtomicU64::new(0), created: Instant::now(), started: AtomicU64::new(0) }
    }

    /// The number of the current activation.
    #[inline]
    pub fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    /// When the current activation began.
    #[inline]
    pub fn began(&self) -> Instant {
        self.created + Duration::from_nanos(self.started.load(Ordering::Relaxed))
    }

    /// Time since the current activation began.
    #[inline]
    pub fn elapsed(&self) -> Duration {
        self.began().elapsed()
    }

    /// The next activation begins at `now`.
    #[inline]
    pub fn begin(&self, now: Instant) {
        self.started.store(nanoseconds(now.saturating_duration_since(self.created)), Ordering::Relaxed);
        // Only this function writes it.
        self.number.store(self.number().wrapping_add(1), Ordering::Relaxed);
    }
}
