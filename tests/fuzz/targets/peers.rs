//! Input to the peer socket.

#![no_main]

libfuzzer_sys::fuzz_target!(
    // Rust programs ignore it from the start. This one starts in libFuzzer, and would die of a closed
    // connection.
    // SAFETY: nothing else runs yet, and no handler is installed.
    init: unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) },
    |data: &[u8]| weir_fuzz_cases::peers(data)
);
