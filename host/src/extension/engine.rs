//! The engines, and what a guest may import in them.

mod config;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use wasmtime::{Config, Engine, component::Linker};

use super::{imports, memory::size, state::State};
use crate::config::Limits;

/// The engines that compile and run extensions, with all that a guest may import: one for each size
/// of stack, since that belongs to the engine.
#[derive(Clone, Default)]
pub(crate) struct Runtime {
    by_stack: Arc<Mutex<HashMap<Stack, Arc<Linker<State>>>>>,
}

/// Bytes of stack of a guest, and of host functions on top of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Stack {
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
    pub(crate) fn new() -> wasmtime::Result<Self> {
        let runtime = Self::default();
        runtime.linker(Stack::of(&Limits::default()))?;
        Ok(runtime)
    }

    /// The engine for that stack, and what a guest may import in it.
    pub(super) fn linker(&self, stack: Stack) -> wasmtime::Result<Arc<Linker<State>>> {
        let mut by_stack = self.by_stack.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(linker) = by_stack.get(&stack) {
            return Ok(linker.clone());
        }
        let engine = Engine::new(&stack.config())?;
        let mut linker = Linker::new(&engine);
        imports::add_to_linker(&mut linker)?;
        let linker = Arc::new(linker);
        by_stack.insert(stack, linker.clone());
        Ok(linker)
    }
}

/// An engine in which code runs as that of extensions does, for whoever measures it.
#[cfg(feature = "compiler")]
pub(super) fn engine() -> wasmtime::Result<Engine> {
    Engine::new(&Stack::of(&Limits::default()).config())
}
