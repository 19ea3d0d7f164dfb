//! The one place that configures wasmtime.
//!
//! Knows nothing else of Weir: what compiles elsewhere, or checks what this configuration makes of
//! WebAssembly, takes this file as it is.

use wasmtime::{Config, OperatorCost, WasmBacktraceDetails};

/// What every engine of Weir has in common, but for the bytes of stack of a guest, and of host functions on
/// top of it. All else here is part of an artifact's compatibility, but for what is left out of traces.
pub(super) fn config(guest_stack: usize, host_stack: usize) -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .operator_cost(operator_cost())
        .max_wasm_stack(guest_stack)
        // Overrunning what the host has of it would abort the process.
        .async_stack_size(guest_stack.saturating_add(host_stack))
        // Else a variable of the environment decides, and artifacts of one Main fail in another.
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        // A trace names functions. What else could be told of an instruction, or to a debugger, is an eighth of an
        // artifact, and of what Main holds of it.
        .generate_address_map(false)
        .native_unwind_info(false)
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
    cost.RefFunc = CALL;
    cost
}
