//! How a failure is printed, and exit codes as `weir` has them.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use weir_names::harmless;
use weir_nats::config::LoadError;

/// Bytes of the longest message.
const MESSAGE_MAX: usize = 64 * 1024;

pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    let chain = format!("{error:#}");
    // Faults of a file are shown with their lines, which are safe already.
    let has_lines = matches!(error.downcast_ref(), Some(LoadError::Config(_)));
    let text = if has_lines { chain } else { harmless(chain, MESSAGE_MAX) };
    let _nobody_reads = writeln!(io::stderr(), "error: {text}");
    ExitCode::FAILURE
}

/// Prints a line.
pub(crate) fn say(line: &str) {
    let _nobody_reads = writeln!(io::stdout(), "{}", harmless(line, MESSAGE_MAX));
}
