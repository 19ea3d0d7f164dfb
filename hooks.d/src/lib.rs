//! What the example hooks share: their directory and their node.

use std::{env, fmt::Display, path::PathBuf, process::ExitCode};

/// The hooks' directory: `$ROOT_DIR`, else `/data/test-hooks`.
#[must_use]
pub fn root_dir() -> PathBuf {
    env::var_os("ROOT_DIR").map_or_else(|| PathBuf::from("/data/test-hooks"), PathBuf::from)
}

/// The node of this run: `$NODE`.
///
/// # Errors
///
/// If `$NODE` is not set or no text. The error says what to do.
pub fn node() -> Result<String, String> {
    env::var("NODE").map_err(|_| "`NODE` names no node: pass it with `--param NODE=…`".to_owned())
}

/// Turns a result into the exit code of `main`, with the reason of a failure on standard error.
pub fn ended(result: Result<(), impl Display>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}
