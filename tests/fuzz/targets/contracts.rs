//! Descriptions of contracts from components, and payloads that are judged by them.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz_cases::contracts(data));
