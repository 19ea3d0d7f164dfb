//! What somebody sends to the control socket.

#![no_main]

libfuzzer_sys::fuzz_target!(
    // Programs that start in Rust ignore it from the start; this one starts in libFuzzer, and would die of a
    // connection that was closed.
    // SAFETY: nothing else runs yet, and no handler is installed.
    init: unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) },
    |data: &[u8]| weir_fuzz_cases::control(data)
);
