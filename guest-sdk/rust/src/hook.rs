//! Support for hooks: programs that Main runs one after the other, each to completion. Main reads their exit codes.
//!
//! A hook is an ordinary `main.rs`. Its parameters are environment variables, and it uses nothing of
//! [`Extension`](crate::Extension). This module adds what `std` lacks.

/// Ends the hook with this exit code, after all printed output is written.
///
/// By default, 0 is success, 1 to 31 are errors, 32 to 63 are warnings (the next hook runs), and 64 and up
/// are reserved and count as errors. The operator can set other ranges.
///
/// [`std::process::exit`] is not enough: a component tells its host only whether the code was 0, so every
/// other code arrives as 1. Natively this is `std::process::exit`. No destructors run.
///
/// ```no_run
/// let files = std::fs::read_dir("/data").map_or(0, |entries| entries.count());
/// if files > 1000 {
///     eprintln!("there are {files} files in `/data`");
///     weir_sdk::hook::exit(33);
/// }
/// ```
pub fn exit(code: u8) -> ! {
    #[cfg(target_family = "wasm")]
    {
        use std::io::{self, Write};

        // If the reader of the output is gone, the code still matters.
        let _unwritten = (io::stdout().flush(), io::stderr().flush());
        wasip2::cli::exit::exit_with_code(code);
        // Never reached: the host ends the hook.
        std::process::abort()
    }
    #[cfg(not(target_family = "wasm"))]
    std::process::exit(code.into())
}
