//! The one place that configures wasmtime.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use wasmtime::{Config, Engine, OperatorCost, WasmBacktraceDetails, component::Linker};

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
        let engine = Engine::new(&config(stack))?;
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
    Engine::new(&config(Stack::of(&Limits::default())))
}

/// What every engine of Weir has in common, but for the stack. All else here is part of an artifact's
/// compatibility.
fn config(stack: Stack) -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .operator_cost(operator_cost())
        .max_wasm_stack(stack.guest)
        // Overrunning what the host has of it would abort the process.
        .async_stack_size(stack.guest.saturating_add(stack.host))
        // Else a variable of the environment decides, and artifacts of one Main fail in another.
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .concurrency_support(false)
        // What no extension needs is surface that no extension gets.
        .wasm_threads(false)
        .wasm_memory64(false)
        // With these, growth could fail that the limiter was never asked for, and be taken back there.
        .wasm_custom_page_sizes(false)
        .wasm_gc(false)
        .wasm_function_references(false)
        .wasm_exceptions(false)
        .wasm_tail_call(false)
        .wasm_relaxed_simd(false);
    config
}

/// Fuel for each instruction: one unit, but for those for which compiled code calls the host.
fn operator_cost() -> OperatorCost {
    const CALL: u8 = 200;
    let mut cost = OperatorCost::new();
    cost.MemoryGrow = CALL;
    cost.MemoryInit = CALL;
    cost.DataDrop = CALL;
    cost.TableGrow = CALL;
    cost.TableFill = CALL;
    cost.TableCopy = CALL;
    cost.TableInit = CALL;
    cost.ElemDrop = CALL;
    cost
}
