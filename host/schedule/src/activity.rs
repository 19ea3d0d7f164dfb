//! The activations of one extension: each has a number, and the time at which it began. And the time of work since the
//! last delivery.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use weir_metrics::moment;

/// Which activation of an extension is under way, and since when.
#[derive(Debug)]
pub struct Activity {
    number: AtomicU64,
    /// When the current activation began, as a [`moment`].
    started: AtomicU64,
    /// Nanoseconds that the extension has worked since messages were last delivered to it.
    worked: AtomicU64,
    /// How many these messages were. 0 before the first.
    messages: AtomicU64,
    /// Whether it has waited for something since that was last asked.
    has_waited: AtomicBool,
}

impl Activity {
    /// Makes the activity of an extension that has not run yet.
    #[expect(clippy::new_without_default, reason = "it counts from now on")]
    pub fn new() -> Self {
        let started = AtomicU64::new(moment(Instant::now()));
        let (number, worked, messages) = Default::default();
        Self { number, started, worked, messages, has_waited: AtomicBool::new(false) }
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

    /// Notes that messages are delivered to the extension, so that its time of work counts from now.
    #[inline]
    pub fn deliver(&self, messages: u64) {
        self.worked.store(0, Ordering::Relaxed);
        self.messages.store(messages, Ordering::Relaxed);
    }

    /// Notes that the extension waits for something, and did not only use up its slice.
    #[inline]
    pub(crate) fn wait(&self) {
        self.has_waited.store(true, Ordering::Relaxed);
    }

    /// Whether the extension has waited for something since [`take_wait`](Self::take_wait).
    #[inline]
    pub fn waits(&self) -> bool {
        self.has_waited.load(Ordering::Relaxed)
    }

    /// Returns whether the extension has waited for something since the last call.
    #[inline]
    pub fn take_wait(&self) -> bool {
        // Plain accesses are enough, because all this is on one thread.
        let has_waited = self.waits();
        if has_waited {
            self.has_waited.store(false, Ordering::Relaxed);
        }
        has_waited
    }

    /// Adds nanoseconds of work.
    #[inline]
    pub(crate) fn work(&self, nanoseconds: u64) {
        // Plain stores are enough, because all this is on one thread.
        let before = self.worked.load(Ordering::Relaxed);
        self.worked.store(before.saturating_add(nanoseconds), Ordering::Relaxed);
    }

    /// Returns how long the extension has worked for each of the messages delivered last, if that is longer than
    /// `allowed`.
    pub fn works_longer(&self, allowed: Duration) -> Option<Duration> {
        let worked =
            self.worked.load(Ordering::Relaxed).checked_div(self.messages.load(Ordering::Relaxed))?;
        Some(Duration::from_nanos(worked)).filter(|worked| *worked > allowed)
    }

    /// Begins the next activation at this [`moment`].
    #[inline]
    pub fn begin(&self, now: u64) {
        self.started.store(now, Ordering::Relaxed);
        // A plain store is enough, because only this function writes the number.
        self.number.store(self.number().wrapping_add(1), Ordering::Relaxed);
    }
}
