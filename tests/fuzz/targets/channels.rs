//! Calls of `weir:iec` by a guest.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz_cases::channels(data));
