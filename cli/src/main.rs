//! `weir`: runs extensions, and talks to the Main that runs them.
//!
//! One module per command. Commands for a running Main use only its control socket. `run`, `check`, `hooks`,
//! `inspect`, `compile`, `symbolise`, `keygen`, `peers token` and `limits --file` use the library itself.

mod args;
mod check;
mod client;
mod compile;
mod configuration;
mod control;
mod exit;
mod hooks;
mod inspect;
mod limits;
mod locate;
mod logging;
mod logs;
mod messages;
mod model;
mod output;
mod payload;
mod peers;
mod plan;
mod progress;
mod run;
mod symbolise;
mod tables;
mod traffic;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::args::{Args, Command, HooksCommand};

fn main() -> ExitCode {
    if compile::is_helper() {
        return weir_host::component::compile_helper();
    }
    let code = match Args::parse().into_command().and_then(dispatch) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::report(&error),
    };
    logging::flush();
    code
}

fn dispatch(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Check(args) => check::check(&args),
        Command::Ps(args) => client::block_on(control::ps(args)),
        Command::Status(args) => client::block_on(control::status(args)),
        Command::History(args) => client::block_on(control::history(args)),
        Command::Limits(args) => client::block_on(limits::limits(args)),
        Command::Logs(args) => client::block_on(logs::logs(args)),
        Command::Call(args) => client::block_on(messages::call(args)),
        Command::Publish(args) => client::block_on(messages::publish(args)),
        Command::Tail(args) => client::block_on(messages::tail(args)),
        Command::Topics(args) => client::block_on(traffic::topics(args)),
        Command::Queues(args) => client::block_on(traffic::queues(args)),
        Command::Peers(args) => peers::peers(args),
        Command::Hooks(HooksCommand::Run(args)) => hooks::run(&args),
        Command::Start(args) => client::block_on(control::start(args)),
        Command::Stop(args) => client::block_on(control::stop(args)),
        Command::Restart(args) => client::block_on(control::restart(args)),
        Command::Reload(args) => client::block_on(control::reload(args)),
        Command::Plan(args) => client::block_on(plan::plan(args)),
        Command::Shutdown(args) => client::block_on(control::shutdown(args)),
        Command::Inspect(args) => inspect::inspect(&args),
        Command::Compile(args) => compile::compile(&args),
        Command::Symbolise(args) => symbolise::symbolise(&args),
        Command::Keygen(args) => compile::keygen(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "weir", &mut script);
            output::write(&script)
        }
    }
}
