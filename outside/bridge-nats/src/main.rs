//! `weir-nats`: the command.

mod args;
mod exit;
mod logging;

use std::process::ExitCode;

use clap::Parser;
use weir_nats::config::Config;

use self::args::{Args, Command};

fn main() -> ExitCode {
    match dispatch(Args::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::report(&error),
    }
}

fn dispatch(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Check { file } => {
            let config = Config::load(&file)?;
            weir_nats::check_files(&config)?;
            exit::say(&format!("`{}` is valid", file.display()));
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
