//! The engines, and what a guest may import in them.

mod config;
mod pools;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use wasmtime::{Config, Engine, component::Linker};

use super::{memory::size, sandbox::Guest};
use crate::config::Limits;

/// The engines that compile and run extensions, with all that a guest may import: one for each size
/// of stack, since that belongs to the engine.
pub(crate) struct Runtime<G: 'static> {
    by_stack: Arc<Mutex<HashMap<Stack, Linkers<G>>>>,
    /// So many guests have their instances from pools at once. None: all have them on demand.
    pooled: Option<u32>,
}

/// What a guest may import, in each engine for one size of stack; the best engine first.
pub(super) type Linkers<G> = Arc<[Linker<G>]>;

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

impl<G> Clone for Runtime<G> {
    fn clone(&self) -> Self {
        Self { by_stack: self.by_stack.clone(), pooled: self.pooled }
    }
}

impl<G> std::fmt::Debug for Runtime<G> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").finish_non_exhaustive()
    }
}

impl<G: Guest> Runtime<G> {
    /// Fails if this machine cannot run WebAssembly.
    pub(crate) fn new() -> wasmtime::Result<Self> {
        let runtime = Self { by_stack: Arc::default(), pooled: None };
        runtime.linkers(Stack::of(&Limits::default()))?;
        Ok(runtime)
    }

    /// One with pools for so many guests at once, whose engines are made when something is loaded for them.
    pub(super) fn pooled(at_once: u32) -> Self {
        Self { by_stack: Arc::default(), pooled: Some(at_once) }
    }

    /// The engines for that stack, and what a guest may import in them.
    pub(super) fn linkers(&self, stack: Stack) -> wasmtime::Result<Linkers<G>> {
        let mut by_stack = self.by_stack.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(linkers) = by_stack.get(&stack) {
            return Ok(linkers.clone());
        }
        let linker = |engine| {
            let mut linker = Linker::new(&engine);
            G::add_to_linker(&mut linker).map(|()| linker)
        };
        let linkers: Linkers<G> = self.engines(stack)?.into_iter().map(linker).collect::<Result<_, _>>()?;
        by_stack.insert(stack, linkers.clone());
        Ok(linkers)
    }

    /// One with pools, from which a guest has what it needs in half the time; and one without, for what does
    /// not fit the pools, and for processes that may not reserve the addresses for them.
    fn engines(&self, stack: Stack) -> wasmtime::Result<Vec<Engine>> {
        let pooled = self.pooled.map(|at_once| Engine::new(&pools::with_pools(stack.config(), at_once)));
        let on_demand = Engine::new(&stack.config())?;
        Ok(pooled.into_iter().flatten().chain([on_demand]).collect())
    }
}

/// An engine in which code runs as that of extensions does, for whoever measures it.
#[cfg(feature = "compiler")]
pub(super) fn engine() -> wasmtime::Result<Engine> {
    Engine::new(&Stack::of(&Limits::default()).config())
}
