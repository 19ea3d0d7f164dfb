//! `weir-nats`: the command. It prints failures and ends with exit codes in the way of the command `weir`.

mod logging;

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use clap::{Parser, Subcommand, ValueHint};
use weir_names::harmless;
use weir_nats::config::{Config, LoadError};

use self::logging::LogFormat;

/// Most bytes of a message that is printed.
const MESSAGE_MAX: usize = 64 * 1024;

const EXIT_CODES: &str = "\
Exit codes:
  0  done          2  wrong arguments
  1  failed";

/// Bridge a Main to the Mains of other machines, over NATS.
#[derive(Debug, Parser)]
#[command(name = "weir-nats", version, after_help = EXIT_CODES, propagate_version = true)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the bridge until SIGTERM or SIGINT.
    Run {
        /// The bridge's file.
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// The form of log lines on stderr.
        #[arg(long, value_enum, default_value_t = LogFormat::Human)]
        log_format: LogFormat,
    },
    /// Check a file, and the files that it names.
    Check {
        /// The bridge's file.
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
}

fn main() -> ExitCode {
    match dispatch(Args::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report(&error),
    }
}

fn dispatch(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Check { file } => {
            let config = Config::load(&file)?;
            weir_nats::check_files(&config)?;
            let valid = format!("`{}` is valid", file.display());
            let _nobody_reads = writeln!(io::stdout(), "{}", harmless(valid, MESSAGE_MAX));
            Ok(())
        }
        Command::Run { file, log_format } => {
            let config = Config::load(&file)?;
            logging::init(log_format)?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(weir_nats::run(config))
        }
    }
}

fn report(error: &anyhow::Error) -> ExitCode {
    let chain = format!("{error:#}");
    // Faults of a file are shown with their lines, which are safe already.
    let has_lines = matches!(error.downcast_ref(), Some(LoadError::Config(_)));
    let text = if has_lines { chain } else { harmless(chain, MESSAGE_MAX) };
    let _nobody_reads = writeln!(io::stderr(), "error: {text}");
    ExitCode::FAILURE
}
