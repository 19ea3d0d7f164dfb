//! An extension's use of its limits: now, and the peak since Main started.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;

use crate::gauge::{Gauge, PerSecond};

/// An extension's use of its limits, over all its instances.
#[derive(Debug, Default)]
pub struct Usage {
    /// Bytes of linear memory.
    pub memory: Gauge,
    /// Fuel of the message in hand, at the last call into the host.
    pub fuel_per_message: Gauge,
    /// Fuel before the first message.
    pub fuel_to_start: Gauge,
    /// Nanoseconds on the worker thread in a second.
    pub cpu_second: PerSecond,
    /// Requests in hand.
    pub in_hand: Gauge,
    /// Asynchronous requests without a received reply.
    pub under_way: Gauge,
    /// Requests by HTTP under way.
    pub http: Gauge,
    /// Requests by HTTP begun in a second.
    pub http_rate: PerSecond,
    /// Bytes of answers by HTTP in a second.
    pub http_bytes_in: PerSecond,
    /// Bytes of requests by HTTP in a second.
    pub http_bytes_out: PerSecond,
    /// Requests by HTTP that no grant allows, or beyond the limits.
    pub http_refused: AtomicU64,
    /// Requests by HTTP that took longer than `http.total-timeout`, and were ended.
    pub http_timed_out: AtomicU64,
    /// Answers to requests by HTTP that it serves, by the first digit of their status, from 2 to 5.
    pub http_answers: [AtomicU64; 4],
    /// Lines logged in a second.
    pub log_rate: PerSecond,
    /// Lines lost because of the rate limit.
    pub log_dropped: AtomicU64,
    /// Nanoseconds of the last start.
    pub ready: Gauge,
    /// Nanoseconds of the last stop.
    pub stop: Gauge,
    /// Directories with bounds, by their host paths.
    dirs: Mutex<HashMap<PathBuf, Arc<DirUsage>>>,
    /// Nanoseconds on the worker thread, by the clock.
    cpu: AtomicU64,
    /// Nanoseconds of delay because of the CPU share.
    delayed: AtomicU64,
}

impl Usage {
    /// Time on the worker thread.
    #[inline]
    pub fn cpu(&self) -> Duration {
        Duration::from_nanos(self.cpu.load(Ordering::Relaxed))
    }

    /// Adds time on the worker thread.
    #[inline]
    pub fn add_cpu(&self, nanoseconds: u64) {
        let before = self.cpu.load(Ordering::Relaxed);
        self.cpu.store(before.wrapping_add(nanoseconds), Ordering::Relaxed);
    }

    /// Time of delay because of the CPU share.
    #[inline]
    pub fn delayed(&self) -> Duration {
        Duration::from_nanos(self.delayed.load(Ordering::Relaxed))
    }

    /// Adds time of delay.
    #[inline]
    pub fn add_delay(&self, nanoseconds: u64) {
        self.delayed.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// The usage of a directory with bounds, if it is measured.
    pub fn dir(&self, host: &Path) -> Option<Arc<DirUsage>> {
        self.dirs.lock().get(host).cloned()
    }

    /// Sets the usage of a directory.
    pub fn set_dir(&self, host: &Path, usage: Arc<DirUsage>) {
        self.dirs.lock().insert(host.to_owned(), usage);
    }
}

/// Usage of a granted directory with bounds, including its subdirectories.
#[derive(Debug, Default)]
pub struct DirUsage {
    /// Bytes, in blocks of 4 KiB for each file, directory and symlink.
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
