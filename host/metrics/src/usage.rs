//! What one extension uses of its limits: now, and at most since Main started.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{dir_usage::DirUsage, gauge::Gauge, per_second::PerSecond};

/// What one extension uses of its limits, over all its instances.
#[derive(Debug, Default)]
pub struct Usage {
    /// Bytes of linear memory.
    pub memory: Gauge,
    /// Fuel of the message in hand, as of the last call into the host.
    pub fuel_per_message: Gauge,
    /// Fuel before the first message.
    pub fuel_to_start: Gauge,
    /// Nanoseconds for which it ran on the worker thread in a second.
    pub cpu_second: PerSecond,
    /// Requests in hand.
    pub in_hand: Gauge,
    /// Requests sent without waiting, whose replies have not been received.
    pub under_way: Gauge,
    /// Lines logged in a second.
    pub log_rate: PerSecond,
    /// Lines that were over the rate, and are lost.
    pub log_dropped: AtomicU64,
    /// Nanoseconds that the last start took.
    pub ready: Gauge,
    /// Nanoseconds that the last stop took.
    pub stop: Gauge,
    /// Of directories whose size is bounded, by their paths on the host.
    dirs: Mutex<HashMap<PathBuf, Arc<DirUsage>>>,
    /// Nanoseconds for which it ran on the worker thread, by the clock.
    cpu: AtomicU64,
    /// Nanoseconds for which it could have run and was delayed, being over its share.
    delayed: AtomicU64,
}

impl Usage {
    /// Time for which it ran on the worker thread.
    #[inline]
    pub fn cpu(&self) -> Duration {
        Duration::from_nanos(self.cpu.load(Ordering::Relaxed))
    }

    /// Adds time for which it ran.
    #[inline]
    pub fn add_cpu(&self, nanoseconds: u64) {
        let before = self.cpu.load(Ordering::Relaxed);
        self.cpu.store(before.wrapping_add(nanoseconds), Ordering::Relaxed);
    }

    /// Time for which it could have run and was delayed.
    #[inline]
    pub fn delayed(&self) -> Duration {
        Duration::from_nanos(self.delayed.load(Ordering::Relaxed))
    }

    /// Adds time for which it was delayed.
    #[inline]
    pub fn add_delay(&self, nanoseconds: u64) {
        self.delayed.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    /// Of a directory whose size is bounded, if it has been counted.
    pub fn dir(&self, host: &Path) -> Option<Arc<DirUsage>> {
        self.dirs.lock().unwrap_or_else(PoisonError::into_inner).get(host).cloned()
    }

    /// Notes where that of a directory is counted.
    pub fn set_dir(&self, host: &Path, usage: Arc<DirUsage>) {
        self.dirs.lock().unwrap_or_else(PoisonError::into_inner).insert(host.to_owned(), usage);
    }
}
