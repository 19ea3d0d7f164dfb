//! For hooks: programs that Main runs to completion, one after the other, and whose exit codes it reads.
//!
//! A hook is an ordinary `main.rs`: parameters and surroundings are variables of the environment, and
//! nothing of [`Extension`](crate::Extension) belongs in it. This module has what `std` lacks for one.

/// Ends the hook with this exit code, once all is written that was printed.
///
/// Unless the operator says otherwise, 0 is success, 1 to 31 are errors, 32 to 63 are warnings, after which
/// the next hook runs, and 64 and up are reserved, and errors.
///
/// [`std::process::exit`] is not enough: it tells the host of a component only whether the code was 0, so
/// that each other code arrives as 1. Natively this is `std::process::exit`. As there, no destructors run.
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

        // Who reads what was printed is gone; the code is what still matters.
        let _unwritten = (io::stdout().flush(), io::stderr().flush());
        wasip2::cli::exit::exit_with_code(code);
        // The host does not come back from that.
        std::process::abort()
    }
    #[cfg(not(target_family = "wasm"))]
    std::process::exit(code.into())
}
