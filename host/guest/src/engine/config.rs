//! The one place that configures wasmtime.
//!
//! Knows nothing else of Weir: tools that compile elsewhere, or check what this configuration does, include this file
//! as it is.

use wasmtime::{Config, OperatorCost, WasmBacktraceDetails};

/// The configuration of every engine of Weir, with the bytes of a guest's stack and of host functions on top of it. All
/// the rest is part of an artifact's compatibility, except what traces leave out.
pub(super) fn config(guest_stack: usize, host_stack: usize) -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .operator_cost(operator_cost())
        .max_wasm_stack(guest_stack)
        // A host function that overruns its part aborts the process.
        .async_stack_size(guest_stack.saturating_add(host_stack))
        // Else an environment variable decides, and artifacts of one Main fail in another.
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        // A trace names functions only. Line numbers and debugger data would take an eighth of an artifact, and of its
        // memory in Main.
        .generate_address_map(false)
        .native_unwind_info(false)
        .concurrency_support(false)
        // Features that no extension needs would only be attack surface.
        .wasm_threads(false)
        .wasm_memory64(false)
        // With these, a growth could fail and be undone in a limiter that was never asked.
        .wasm_custom_page_sizes(false)
        .wasm_gc(false)
        .wasm_function_references(false)
        .wasm_exceptions(false)
        .wasm_tail_call(false)
        .wasm_relaxed_simd(false);
    config
}

/// Fuel for each instruction: one unit, and more where compiled code calls the host.
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
