//! The wasmtime engines that compile and run guests.

mod config;
mod target;

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use wasmtime::{
    Collector, Config, Enabled, Engine, InstanceAllocationStrategy, OperatorCost, PoolingAllocationConfig,
};
use weir_config::{Feature, Features, INTERPRETED, Limits, Traces};

pub(crate) use self::target::TARGET_SIZE;
pub use self::target::{AddressClass, CompileTarget, CompileTargetError};
use super::memory::size;

/// How much one guest may take from the pools. A larger guest runs without pools.
const MEMORIES: u32 = 4;
const TABLES: u32 = 16;
const INSTANCES: u32 = 128;

/// Bytes of a memory, and of a table, that stay mapped in a pool and are reset. That is faster than returning pages to
/// the kernel and getting new ones.
const KEPT: usize = 256 << 10;

/// The engines that compile and run guests.
#[derive(Clone)]
pub struct Runtime {
    by_kind: Arc<Mutex<HashMap<EngineKind, Engines>>>,
    /// How much address space each memory of a guest reserves.
    class: AddressClass,
    /// How many guests at once have instances from pools. Without this number, all instances are allocated on demand.
    pooled: Option<u32>,
}

/// The engines of one kind: the engine with pools, if there is one, and then the engine without.
type Engines = Arc<[Engine]>;

/// The settings of the operator in which engines differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EngineKind {
    /// Bytes of a guest's stack.
    guest_stack: usize,
    /// Bytes of stack for host functions, on top of the guest's.
    host_stack: usize,
    traces: Traces,
    features: Features,
}

impl EngineKind {
    pub(super) fn of(limits: &Limits, traces: Traces) -> Self {
        Self {
            guest_stack: size(limits.stack),
            host_stack: size(limits.fixed().host_stack),
            traces,
            features: limits.features,
        }
    }

    /// Returns the settings on which compiled code depends.
    pub(crate) fn code(self) -> (Traces, Features) {
        (self.traces, self.features)
    }

    /// Returns the configuration of engines that run guests in this Main.
    pub(super) fn config(self, class: AddressClass) -> wasmtime::Result<Config> {
        let target = CompileTarget::of_main(class);
        let mut config = self.config_in(&target);
        if INTERPRETED {
            config.target(&target.triple())?;
        }
        Ok(config)
    }

    /// Returns the configuration of engines that compile for a target.
    #[cfg(feature = "compiler")]
    pub(super) fn config_for(self, target: &CompileTarget) -> wasmtime::Result<Config> {
        let mut config = self.config_in(target);
        config.target(&target.triple())?;
        Ok(config)
    }

    fn config_in(self, target: &CompileTarget) -> Config {
        let mut config = config::config(self.guest_stack, self.host_stack);
        config.generate_address_map(self.traces == Traces::Lines);
        target.reserve(&mut config);
        self.features.iter().for_each(|feature| turn_on(&mut config, feature));
        if self.features.have_objects() {
            config.collector(Collector::Copying).operator_cost(cost_of_objects());
            target.reserve_for_objects(&mut config);
        }
        config
    }
}

impl Default for EngineKind {
    fn default() -> Self {
        Self::of(&Limits::default(), Traces::default())
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").finish_non_exhaustive()
    }
}

impl Runtime {
    /// Makes the engines of a Main with this class of address space: the engine of the default kind now, others when
    /// they are needed. Fails if this first engine cannot be made, as on a machine that cannot run WebAssembly.
    pub fn new(class: AddressClass) -> wasmtime::Result<Self> {
        // A guest may read the text of an error. With `RUST_BACKTRACE` the text would show Main's own functions and
        // paths, and the worker thread would spend time to look them up for each error.
        wasmtime::error::disable_backtrace();
        let runtime = Self { by_kind: Arc::default(), class, pooled: None };
        runtime.engines(EngineKind::default())?;
        Ok(runtime)
    }

    /// Returns a runtime with pools for this many guests at once, if there is address space for them. Its engines are
    /// made when a program is first loaded for them.
    pub(super) fn in_pools(&self, at_once: u32) -> Self {
        let pooled = (self.class == AddressClass::Large).then_some(at_once);
        Self { by_kind: Arc::default(), class: self.class, pooled }
    }

    pub(super) fn class(&self) -> AddressClass {
        self.class
    }

    /// Returns the engines of a kind. An engine with pools instantiates in half the time, and is left out if it cannot
    /// be made. The engine without pools is for guests too large for the pools, and for processes that may not reserve
    /// the address space.
    pub(super) fn engines(&self, kind: EngineKind) -> wasmtime::Result<Engines> {
        let mut by_kind = self.by_kind.lock();
        if let Some(engines) = by_kind.get(&kind) {
            return Ok(engines.clone());
        }
        let config = kind.config(self.class)?;
        // A heap of objects would take the place of a memory, and wasmtime 48 keeps what it knows of types in pooled heaps.
        let pooled = self.pooled.filter(|_| !kind.features.have_objects());
        let pooled = pooled.and_then(|at_once| Engine::new(&with_pools(config.clone(), at_once)).ok());
        let on_demand = Engine::new(&config)?;
        let engines: Engines = match pooled {
            Some(pooled) => [pooled, on_demand].into(),
            None => [on_demand].into(),
        };
        by_kind.insert(kind, engines.clone());
        Ok(engines)
    }
}

/// Makes an engine like that of extensions, for measuring.
pub(super) fn engine(class: AddressClass) -> wasmtime::Result<Engine> {
    Engine::new(&EngineKind::default().config(class)?)
}

/// Returns the fuel for each instruction where there are exceptions or objects: as for all engines, and more for those that
/// ask the host about types, or make a `throw` look at more handlers.
fn cost_of_objects() -> OperatorCost {
    const TYPE: u8 = 40;
    const HANDLERS: u8 = 100;
    const THROW: u8 = 200;
    let mut cost = config::operator_cost();
    cost.RefTestNonNull = TYPE;
    cost.RefTestNullable = TYPE;
    cost.RefCastNonNull = TYPE;
    cost.RefCastNullable = TYPE;
    cost.BrOnCast = TYPE;
    cost.BrOnCastFail = TYPE;
    // Each element of a segment is a call of the host.
    cost.variable.array_new_elem_per_element = TYPE;
    cost.variable.array_init_elem_per_element = TYPE;
    cost.TryTable = HANDLERS;
    cost.Throw = THROW;
    cost.ThrowRef = THROW;
    cost
}

/// Turns on a part of WebAssembly.
fn turn_on(config: &mut Config, feature: Feature) {
    match feature {
        Feature::Exceptions => config.wasm_exceptions(true),
        Feature::Gc => config.wasm_gc(true).wasm_function_references(true),
        Feature::TailCalls => config.wasm_tail_call(true),
        Feature::RelaxedSimd => config.wasm_relaxed_simd(true),
        Feature::Memory64 => config.wasm_memory64(true),
    };
}

/// Adds pools for this many guests at once: memories, tables and stacks that stay mapped.
fn with_pools(mut config: Config, at_once: u32) -> Config {
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
    // Since Linux 6.7 the kernel can tell which pages were written. Without that, all kept pages would have to be reset
    // each time, which takes longer than to map new pages.
    if PoolingAllocationConfig::is_pagemap_scan_available() {
        pools.pagemap_scan(Enabled::Yes).linear_memory_keep_resident(KEPT).table_keep_resident(KEPT);
    }
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pools));
    config
}
