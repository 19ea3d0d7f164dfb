//! Modules from wasm-smith.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz_cases::smith(data));
