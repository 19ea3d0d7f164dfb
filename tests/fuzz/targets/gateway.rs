//! Texts of apps and payloads of extensions.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz_cases::gateway(data));
