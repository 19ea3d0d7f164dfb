//! `weir-registry`: moves packages of extensions between registries and directories.
//!
//! It knows what a registry, a manifest and a blob are, and nothing of what is in a blob. It ends with its one command.

mod args;
mod authorization;
mod commands;
mod credentials;
mod error;
mod files;
mod helper;
mod layout;
mod manifest;
mod reference;
mod registry;
mod transport;
mod trust;
mod url;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anyhow::{Context, Result, bail};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::timeout,
};
use weir_names::harmless;

use self::{args::Args, error::RegistryError};

/// Most bytes of a message that is printed.
const MESSAGE_MAX: usize = 4 * 1024;

fn main() -> ExitCode {
    match run(Args::read()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _nobody_reads =
                writeln!(io::stderr(), "error: {}", harmless(format!("{error:#}"), MESSAGE_MAX));
            ExitCode::from(error.downcast_ref().map_or(1, RegistryError::code))
        }
    }
}

fn run(args: Args) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(until_ended(args));
    // A name that is still being looked up is not waited for.
    runtime.shutdown_background();
    let lines = ended?;
    let written = io::stdout().lock().write_all(lines.as_bytes());
    match written {
        // The reader needed no more.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to stdout"),
    }
}

/// Runs the command until it ends, its time is up, or a signal ends it. What it has begun is gone then.
async fn until_ended(args: Args) -> Result<String> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let time = args.timeout();
    tokio::select! {
        biased;
        _ = interrupt.recv() => bail!("ended by SIGINT"),
        _ = terminate.recv() => bail!("ended by SIGTERM"),
        _ = hangup.recv() => bail!("ended by SIGHUP"),
        ended = timeout(time, args.run()) => ended.map_err(|_| RegistryError::Late(time))?,
    }
}
