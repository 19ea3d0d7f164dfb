//! Signatures of components, as texts of a stranger.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz_cases::signatures(data));
