//! What the example hooks have in common: where they work, and for whom.

use std::{env, fmt::Display, path::PathBuf, process::ExitCode};

/// The directory in which the hooks work: `$ROOT_DIR`, else `/data/test-hooks`.
#[must_use]
pub fn root_dir() -> PathBuf {
    env::var_os("ROOT_DIR").map_or_else(|| PathBuf::from("/data/test-hooks"), PathBuf::from)
}

/// The node for which the hooks are run: `$NODE`.
///
/// # Errors
///
/// Says what to do if there is none.
pub fn node() -> Result<String, String> {
    env::var("NODE").map_err(|_| "`NODE` names no node: pass it with `--param NODE=…`".to_owned())
}

/// What `main` returns: a failure with its reason on standard error.
pub fn ended(result: Result<(), impl Display>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}
