//! The cap on a guest's memory: the sum over all of its linear memories.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use wasmtime::ResourceLimiter;

/// Elements that all tables of a guest may hold together.
const MAX_TABLE_ELEMENTS: usize = 1 << 20;

/// Counts what a guest has of memory and tables, and says no at the cap.
#[derive(Debug)]
pub(super) struct MemoryLimiter {
    max_bytes: u64,
    bytes: Arc<AtomicU64>,
    /// What the growth now under way adds: `memory_grow_failed` names no size.
    growing: u64,
    table_elements: usize,
}

impl MemoryLimiter {
    /// Caps the sum at `max_bytes` and shows it in `bytes`.
    pub(super) fn new(max_bytes: u64, bytes: Arc<AtomicU64>) -> Self {
        Self { max_bytes, bytes, growing: 0, table_elements: 0 }
    }
}

impl Drop for MemoryLimiter {
    fn drop(&mut self) {
        self.bytes.store(0, Ordering::Relaxed);
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.growing = 0;
        let more = (desired as u64).saturating_sub(current as u64);
        let total = self.bytes.load(Ordering::Relaxed).saturating_add(more);
        if total > self.max_bytes || maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.growing = more;
        self.bytes.store(total, Ordering::Relaxed);
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.bytes.fetch_sub(std::mem::take(&mut self.growing), Ordering::Relaxed);
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let total = self.table_elements.saturating_add(desired.saturating_sub(current));
        if total > MAX_TABLE_ELEMENTS || maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.table_elements = total;
        Ok(true)
    }

    fn instances(&self) -> usize {
        64
    }

    fn tables(&self) -> usize {
        64
    }

    fn memories(&self) -> usize {
        64
    }
}
