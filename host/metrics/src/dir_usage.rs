//! What is in a directory whose size is bounded, and what was written to it.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::gauge::Gauge;

/// What is in a granted directory whose size is bounded, with all directories in it.
#[derive(Debug, Default)]
pub struct DirUsage {
    /// Bytes, of each file as many as its blocks of 4 KiB have.
    pub bytes: Gauge,
    /// Files, directories and symlinks.
    pub files: Gauge,
    written: AtomicU64,
}

impl DirUsage {
    /// Bytes that guests have written since Main started, also those that others have replaced since.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Adds bytes that a guest has written.
    pub fn add_written(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }
}
