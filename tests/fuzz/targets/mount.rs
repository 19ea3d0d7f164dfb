//! Heads of requests by HTTP, for extensions that serve them.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz_cases::mount(data));
