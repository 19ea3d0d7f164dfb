//! The one place that configures wasmtime.

use std::sync::Arc;

use wasmtime::{Config, Engine, WasmBacktraceDetails, component::Linker};

use super::{imports, state::State};

/// Stack of a guest, in bytes.
const GUEST_STACK: usize = 1024 * 1024;

/// Stack that host functions have on top of a guest at its deepest, in bytes. Overrunning it would
/// abort the process, and frames of unoptimised builds are large.
const HOST_STACK: usize = 1024 * 1024;

/// The engine that compiles and runs extensions, with all that a guest may import.
#[derive(Clone)]
pub(crate) struct Runtime {
    linker: Arc<Linker<State>>,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").finish_non_exhaustive()
    }
}

impl Runtime {
    pub(crate) fn new() -> wasmtime::Result<Self> {
        let engine = Engine::new(&config())?;
        let mut linker = Linker::new(&engine);
        imports::add_to_linker(&mut linker)?;
        Ok(Self { linker: Arc::new(linker) })
    }

    pub(super) fn linker(&self) -> &Linker<State> {
        &self.linker
    }
}

/// What every engine of Weir has in common. Anything here is part of an artifact's compatibility.
fn config() -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .max_wasm_stack(GUEST_STACK)
        .async_stack_size(GUEST_STACK + HOST_STACK)
        // Else a variable of the environment decides, and artifacts of one Main fail in another.
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .concurrency_support(false)
        // What no extension needs is surface that no extension gets.
        .wasm_threads(false)
        .wasm_memory64(false)
        .wasm_custom_page_sizes(false)
        .wasm_gc(false)
        .wasm_function_references(false)
        .wasm_exceptions(false)
        .wasm_tail_call(false)
        .wasm_relaxed_simd(false);
    config
}
