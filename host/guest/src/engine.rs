//! The engines.

mod config;
mod pools;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use wasmtime::{Config, Engine};
use weir_config::Limits;

use super::memory::size;

/// The engines that compile and run guests: one for each size of stack, since that belongs to the engine.
#[derive(Clone)]
pub struct Runtime {
    by_stack: Arc<Mutex<HashMap<Stack, Engines>>>,
    /// So many guests have their instances from pools at once. None: all have them on demand.
    pooled: Option<u32>,
}

/// Those for one size of stack, the best first.
type Engines = Arc<[Engine]>;

/// Bytes of stack of a guest, and of host functions on top of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stack {
    guest: usize,
    host: usize,
}

impl Stack {
    pub(super) fn of(limits: &Limits) -> Self {
        Self { guest: size(limits.stack), host: size(limits.fixed().host_stack) }
    }

    pub(super) fn config(self) -> Config {
        config::config(self.guest, self.host)
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
        let runtime = Self { by_stack: Arc::default(), pooled: None };
        runtime.engines(Stack::of(&Limits::default()))?;
        Ok(runtime)
    }

    /// One with pools for so many guests at once, whose engines are made when something is loaded for them.
    pub(super) fn pooled(at_once: u32) -> Self {
        Self { by_stack: Arc::default(), pooled: Some(at_once) }
    }

    /// The engines for that stack: one with pools, from which a guest has what it needs in half the time; and one
    /// without, for what does not fit the pools, and for processes that may not reserve the addresses for them.
    pub(super) fn engines(&self, stack: Stack) -> wasmtime::Result<Engines> {
        let mut by_stack = self.by_stack.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engines) = by_stack.get(&stack) {
            return Ok(engines.clone());
        }
        let pooled = self.pooled.map(|at_once| Engine::new(&pools::with_pools(stack.config(), at_once)));
        let on_demand = Engine::new(&stack.config())?;
        let engines: Engines = pooled.into_iter().flatten().chain([on_demand]).collect();
        by_stack.insert(stack, engines.clone());
        Ok(engines)
    }
}

/// An engine in which code runs as that of extensions does, for whoever measures it.
#[cfg(feature = "compiler")]
pub(super) fn engine() -> wasmtime::Result<Engine> {
    Engine::new(&Stack::of(&Limits::default()).config())
}
