//! The settings of wasmtime that all engines of Weir share.
//!
//! Knows nothing else of Weir: a benchmark and the tests with the specification's scripts include this file as it is.

use wasmtime::{Collector, Config, OperatorCost, WasmBacktraceDetails};

/// Returns the settings of all engines of Weir, with these bytes of stack for a guest, and for host functions on top of
/// it. An artifact runs only under the settings that it was compiled with, except for stacks and traces.
pub(super) fn config(guest_stack: usize, host_stack: usize) -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .operator_cost(operator_cost())
        .max_wasm_stack(guest_stack)
        // If host functions overran their part of the stack, the process would abort.
        .async_stack_size(guest_stack.saturating_add(host_stack))
        // Otherwise an environment variable decides, and artifacts of one Main fail in another.
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        // A trace names functions only, unless the caller turns the address map on. The tables for instructions and
        // debuggers would take an eighth of an artifact, on disk and in Main's memory.
        .generate_address_map(false)
        .native_unwind_info(false)
        .concurrency_support(false)
        // Nothing is collected until a feature with objects is turned on.
        .collector(Collector::Null)
        // Features that no extension needs are turned off, to expose less of wasmtime.
        .wasm_threads(false)
        .wasm_memory64(false)
        // With other page sizes, the limiter could be told of failed growth that it was never asked for.
        .wasm_custom_page_sizes(false)
        .wasm_gc(false)
        .wasm_function_references(false)
        .wasm_exceptions(false)
        .wasm_tail_call(false)
        .wasm_relaxed_simd(false);
    config
}

/// Returns the fuel for each instruction: one unit for most, none for a few that do nothing by themselves, and more for
/// instructions for which compiled code calls the host.
pub(super) fn operator_cost() -> OperatorCost {
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
