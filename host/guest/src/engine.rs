//! The engines.

mod config;
mod pools;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use wasmtime::{Config, Engine};
use weir_config::{Limits, Traces};

use super::memory::size;

/// The engines that compile and run guests.
#[derive(Clone)]
pub struct Runtime {
    by_kind: Arc<Mutex<HashMap<EngineKind, Engines>>>,
    /// How many guests at once have instances from pools. None: all have them on demand.
    pooled: Option<u32>,
}

/// The engines of one kind, the best first.
type Engines = Arc<[Engine]>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EngineKind {
    /// Bytes of a guest's stack.
    guest_stack: usize,
    /// Bytes of stack for host functions, on top of that.
    host_stack: usize,
    traces: Traces,
}

impl EngineKind {
    pub(super) fn of(limits: &Limits, traces: Traces) -> Self {
        Self { guest_stack: size(limits.stack), host_stack: size(limits.fixed().host_stack), traces }
    }

    pub(super) fn config(self) -> Config {
        let mut config = config::config(self.guest_stack, self.host_stack);
        config.generate_address_map(self.traces == Traces::Lines);
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
    /// Fails if this machine cannot run WebAssembly.
    pub fn new() -> wasmtime::Result<Self> {
        let runtime = Self { by_kind: Arc::default(), pooled: None };
        runtime.engines(EngineKind::default())?;
        Ok(runtime)
    }

    /// With pools for so many guests at once. Its engines are made when something is loaded for them.
    pub(super) fn pooled(at_once: u32) -> Self {
        Self { by_kind: Arc::default(), pooled: Some(at_once) }
    }

    /// The engines of a kind. One with pools instantiates in half the time. One without is for guests too large for the
    /// pools, and for processes that may not reserve the address space.
    pub(super) fn engines(&self, kind: EngineKind) -> wasmtime::Result<Engines> {
        let mut by_kind = self.by_kind.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engines) = by_kind.get(&kind) {
            return Ok(engines.clone());
        }
        let pooled = self.pooled.map(|at_once| Engine::new(&pools::with_pools(kind.config(), at_once)));
        let on_demand = Engine::new(&kind.config())?;
        let engines: Engines = pooled.into_iter().flatten().chain([on_demand]).collect();
        by_kind.insert(kind, engines.clone());
        Ok(engines)
    }
}

/// An engine like that of extensions, for measuring.
#[cfg(feature = "compiler")]
pub(super) fn engine() -> wasmtime::Result<Engine> {
    Engine::new(&EngineKind::default().config())
}
