//! What a guest calls of `weir:iec`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz_cases::channels(data));
