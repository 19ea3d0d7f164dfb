//! What the command line accepts.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum, ValueHint};

const EXIT_CODES: &str = "\
Exit codes:
  0  done          2  wrong arguments
  1  failed";

/// Bridge a Main to the Mains of other machines, over NATS.
#[derive(Debug, Parser)]
#[command(name = "weir-nats", version, after_help = EXIT_CODES, propagate_version = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
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

/// The form of log lines.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Human,
    /// One object in JSON a line.
    Json,
}
