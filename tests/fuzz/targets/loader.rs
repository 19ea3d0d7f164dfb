//! Bytes as the file of an extension.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz_cases::loader(data));
