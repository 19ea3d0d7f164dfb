//! `weir`: runs extensions, and talks to the Main that runs them.
//!
//! One module per command. Commands for a running Main use only its control socket. `run`, `check`, `schema`, `hooks`,
//! `inspect`, `describe FILE`, `check-contract`, `compile`, `symbolise`, `keygen`, `peers token` and `limits --file` use the
//! library itself.

mod args;
#[cfg(feature = "compiler")]
mod author;
mod chance;
mod check;
mod client;
mod compilation;
#[cfg(feature = "compiler")]
mod compile;
mod complete;
mod configuration;
mod contracts;
mod control;
mod exit;
mod hooks;
mod limits;
mod locate;
mod logging;
mod logs;
#[cfg(test)]
#[cfg(all(feature = "compiler", feature = "otlp", feature = "store"))]
mod manual_pages;
mod messages;
mod metrics;
mod model;
#[cfg(feature = "otlp")]
mod otlp;
mod output;
mod payload;
mod peers;
mod plan;
mod progress;
mod run;
mod schema;
#[cfg(feature = "store")]
mod store;
mod tables;
#[cfg(feature = "tools")]
mod tools;
mod trace;
mod traffic;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command, HooksCommand};

fn main() -> ExitCode {
    if let Some(code) = compilation::help() {
        return code;
    }
    complete::answer();
    let code = match Args::parse().into_command().and_then(dispatch) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => exit::report(&error),
    };
    logging::flush();
    code
}

fn dispatch(command: Command) -> anyhow::Result<()> {
    match command {
        #[cfg(feature = "compiler")]
        Command::New(args) => author::new(&args),
        #[cfg(feature = "compiler")]
        Command::Build(args) => client::block_on(author::build(args)),
        #[cfg(feature = "compiler")]
        Command::Dev(args) => client::block_on(author::dev(args)),
        #[cfg(feature = "compiler")]
        Command::Test(args) => client::block_on(author::test(args)),
        Command::Run(args) => run::run(&args),
        Command::Check(args) => check::check(&args),
        Command::Schema => schema::schema(),
        Command::Ps(args) => client::block_on(control::ps(args)),
        #[cfg(feature = "tools")]
        Command::Top(args) => tools::top(args),
        Command::Status(args) => client::block_on(control::status(args)),
        Command::History(args) => client::block_on(control::history(args)),
        Command::Limits(args) => client::block_on(limits::limits(args)),
        Command::Logs(args) => client::block_on(logs::logs(args)),
        #[cfg(feature = "tools")]
        Command::Describe(args) => client::block_on(tools::describe(args)),
        #[cfg(feature = "tools")]
        Command::Generate(args) => client::block_on(tools::generate(args)),
        #[cfg(feature = "tools")]
        Command::CheckContract(args) => tools::check_contract(&args),
        Command::Call(args) => client::block_on(messages::call(args)),
        Command::Publish(args) => client::block_on(messages::publish(args)),
        Command::Tail(args) => client::block_on(messages::tail(args)),
        Command::Topics(args) => client::block_on(traffic::topics(args)),
        Command::Queues(args) => client::block_on(traffic::queues(args)),
        Command::Trace(args) => client::block_on(trace::trace(args)),
        Command::Metrics(args) => client::block_on(metrics::metrics(args)),
        #[cfg(feature = "otlp")]
        Command::Otlp(args) => client::block_on(otlp::otlp(args)),
        Command::Peers(args) => peers::peers(args),
        #[cfg(feature = "store")]
        Command::Store(args) => client::block_on(store::store(args)),
        Command::Hooks(HooksCommand::Run(args)) => hooks::run(&args),
        Command::Start(args) => client::block_on(control::start(args)),
        Command::Stop(args) => client::block_on(control::stop(args)),
        Command::Restart(args) => client::block_on(control::restart(args)),
        Command::Reload(args) => client::block_on(control::reload(args)),
        Command::Plan(args) => client::block_on(plan::plan(args)),
        Command::Shutdown(args) => client::block_on(control::shutdown(args)),
        #[cfg(feature = "tools")]
        Command::Inspect(args) => tools::inspect(&args),
        #[cfg(feature = "compiler")]
        Command::Compile(args) => compile::compile(&args),
        #[cfg(feature = "tools")]
        Command::Symbolise(args) => tools::symbolise(&args),
        #[cfg(feature = "compiler")]
        Command::Keygen(args) => compile::keygen(&args),
        Command::Completions { shell } => output::write(&complete::script(shell)?),
    }
}
