//! The counts of a peer.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of a peer so far.
#[derive(Debug, Default)]
pub struct PeerStats {
    /// Messages that it received.
    pub received: AtomicU64,
    /// Requests and events that it sent.
    pub sent: AtomicU64,
    /// Answers that came too late.
    pub late: AtomicU64,
    /// Requests to it that were answered before they reached it, because they did not fit.
    pub refused: AtomicU64,
    /// Messages for it that found no room.
    pub shed: AtomicU64,
    /// Bytes of the largest payload that it sent or received.
    pub largest: AtomicU64,
}

impl PeerStats {
    pub(super) fn count_received(&self) {
        // Only one thread reads an inbox, so no other adds at the same time.
        self.received.store(self.received.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}
