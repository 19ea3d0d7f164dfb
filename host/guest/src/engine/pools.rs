//! Pools of instances for guests: memories, tables and stacks that stay mapped.

use wasmtime::{Config, Enabled, InstanceAllocationStrategy, PoolingAllocationConfig};
use weir_config::Limits;

use crate::memory::size;

/// What one guest may take from a pool. A larger guest runs without pools.
const MEMORIES: u32 = 4;
const TABLES: u32 = 16;
const INSTANCES: u32 = 128;

/// Bytes of a memory, and of a table, that stay mapped and are reset: returning pages and getting new ones takes
/// longer.
const KEPT: usize = 256 << 10;

/// Adds pools for so many guests at once.
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
    // Since Linux 6.7 the kernel tells which pages were written. Without that, all kept pages would be reset each time,
    // which takes longer than new pages.
    if PoolingAllocationConfig::is_pagemap_scan_available() {
        pools.pagemap_scan(Enabled::Yes).linear_memory_keep_resident(KEPT).table_keep_resident(KEPT);
    }
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pools));
    config
}
