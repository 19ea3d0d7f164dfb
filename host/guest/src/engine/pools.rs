//! Pools from which guests have their instances: memories, tables and stacks that are mapped once.

use wasmtime::{Config, Enabled, InstanceAllocationStrategy, PoolingAllocationConfig};
use weir_config::Limits;

use crate::memory::size;

/// What one guest may have of a pool. One that needs more runs without pools.
const MEMORIES: u32 = 4;
const TABLES: u32 = 16;
const INSTANCES: u32 = 128;

/// Bytes of a memory, and of a table, whose pages stay with its place, set back to what they were at first: to
/// give them back and get them anew takes longer.
const KEPT: usize = 256 << 10;

/// The same with pools for so many guests at once.
pub(super) fn with_pools(mut config: Config, at_once: u32) -> Config {
    let mut pools = PoolingAllocationConfig::new();
    pools
        .total_component_instances(at_once)
        .total_stacks(at_once)
        .total_memories(at_once * MEMORIES)
        .total_tables(at_once * TABLES)
        .total_core_instances(at_once * INSTANCES)
        .max_memories_per_component(MEMORIES)
        .max_memories_per_module(MEMORIES)
        .max_tables_per_component(TABLES)
        .max_tables_per_module(TABLES)
        .max_core_instances_per_component(INSTANCES)
        .table_elements(size(Limits::max().fixed().table_elements));
    // Since Linux 6.7 the kernel says which pages were written to. Without that, all that is kept of a place
    // would be set back each time, which takes longer than new pages.
    if PoolingAllocationConfig::is_pagemap_scan_available() {
        pools.pagemap_scan(Enabled::Yes).linear_memory_keep_resident(KEPT).table_keep_resident(KEPT);
    }
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pools));
    config
}
