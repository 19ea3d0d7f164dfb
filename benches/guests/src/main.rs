//! An extension that does one thing for as long as it is let: which, its `config` says under `kind`.

use std::process::ExitCode;

#[cfg(target_family = "wasm")]
mod hostile;
#[cfg(target_family = "wasm")]
mod messages;
#[cfg(target_family = "wasm")]
mod quiet;

#[cfg(target_family = "wasm")]
fn main() -> ExitCode {
    use weir_sdk::raw::{config, lifecycle};

    let kind = config::get("kind").ok().flatten().unwrap_or_default();
    let outcome = match messages::run(&kind).or_else(|| quiet::run(&kind)) {
        Some(outcome) => outcome,
        None => hostile::run(&kind),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            lifecycle::error(&reason);
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(target_family = "wasm"))]
fn main() -> ExitCode {
    ExitCode::FAILURE
}
