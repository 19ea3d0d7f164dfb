//! Packages of components, as directories and as tars.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz_cases::packages(data));
