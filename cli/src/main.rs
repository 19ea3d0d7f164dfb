//! `weir`: runs extensions, and talks to the Main that runs them.
//!
//! The verbs are in `verbs`. Beside them is what several of them share.

mod args;
mod client;
mod complete;
#[cfg(feature = "tools")]
mod contracts;
mod exit;
mod features;
mod logging;
#[cfg(test)]
#[cfg(all(feature = "compiler", feature = "otlp", feature = "store"))]
mod manual_pages;
mod output;
mod payload;
mod tables;
mod verbs;

use std::process::ExitCode;

use crate::{args::Args, verbs::Verb};

fn main() -> ExitCode {
    if let Some(code) = features::compile_helper() {
        return code;
    }
    complete::answer();
    let code = match Args::verb().and_then(Verb::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::report(&error),
    };
    logging::flush();
    code
}
