//! The caps on a guest's memory, which is the sum of its linear memories, and on its tables.

use std::sync::Arc;

use wasmtime::ResourceLimiter;
use weir_config::{FixedLimits, LimitHit, LimitKey, LimitName, Limits};
use weir_metrics::Usage;

/// Counts a guest's memory and tables, and refuses growth at the cap.
#[derive(Debug)]
pub(super) struct MemoryLimiter {
    /// The most bytes of all memories together.
    max_bytes: u64,
    /// The bytes of all memories together.
    bytes: u64,
    fixed: &'static FixedLimits,
    usage: Arc<Usage>,
    /// The bytes of the growth under way, kept because `memory_grow_failed` names no size.
    growing: u64,
    /// The elements of all tables together.
    table_elements: u64,
    /// The last growth that was refused since the guest started or last received a message.
    pub(super) refused: Option<LimitHit>,
}

impl MemoryLimiter {
    /// Makes a limiter for one instance. The instance's memory is added to `usage`, where another instance may count
    /// too.
    pub(super) fn new(limits: &Limits, usage: Arc<Usage>) -> Self {
        Self {
            max_bytes: limits.memory,
            bytes: 0,
            fixed: limits.fixed(),
            usage,
            growing: 0,
            table_elements: 0,
            refused: None,
        }
    }

    /// The bytes of all memories and tables together.
    pub(super) fn held(&self) -> u64 {
        self.bytes.saturating_add(self.table_elements.saturating_mul(8))
    }

    fn refuse(&mut self, limit: impl Into<LimitName>, used: u64, allowed: u64) {
        self.refused = Some(LimitHit::new(limit, used, allowed));
    }
}

impl Drop for MemoryLimiter {
    fn drop(&mut self) {
        self.usage.memory.lower(self.bytes);
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
        let total = self.bytes.saturating_add(more);
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        if total > self.max_bytes {
            self.refuse(LimitKey::MEMORY, total, self.max_bytes);
            return Ok(false);
        }
        self.growing = more;
        self.bytes = total;
        self.usage.memory.raise(more);
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        let less = std::mem::take(&mut self.growing);
        self.bytes = self.bytes.saturating_sub(less);
        self.usage.memory.lower(less);
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let more = (desired as u64).saturating_sub(current as u64);
        let total = self.table_elements.saturating_add(more);
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        if total > self.fixed.table_elements {
            self.refuse(LimitName::TABLE_ELEMENTS, total, self.fixed.table_elements);
            return Ok(false);
        }
        self.table_elements = total;
        Ok(true)
    }

    fn instances(&self) -> usize {
        size(self.fixed.instances)
    }

    fn tables(&self) -> usize {
        size(self.fixed.tables)
    }

    fn memories(&self) -> usize {
        size(self.fixed.memories)
    }
}

/// Returns the number as a `usize`, or the largest `usize` if it does not fit.
pub(super) fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
