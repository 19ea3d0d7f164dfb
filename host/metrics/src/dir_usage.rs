//! Usage of a directory with bounds.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::gauge::Gauge;

/// Usage of a granted directory with bounds, including its subdirectories.
#[derive(Debug, Default)]
pub struct DirUsage {
    /// Bytes, in blocks of 4 KiB for each file.
    pub bytes: Gauge,
    /// Files, directories and symlinks.
    pub files: Gauge,
    written: AtomicU64,
}

impl DirUsage {
    /// Bytes that guests have written since Main started, including overwritten ones.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Adds written bytes.
    pub fn add_written(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }
}
