//! Shows and tests Weir on a fresh machine with rustup: `cargo xtask demo` and `cargo xtask test`.

#![expect(clippy::print_stdout, reason = "the demo prints for its user")]

mod bench;
mod browser;
mod demo;
mod deny;
mod first_extension;
mod foreign_guests;
mod full;
mod full_contracts;
mod full_prometheus;
mod guests;
mod hooks;
mod instructions;
mod run;
mod setup;
mod spec_tests;
mod test;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Builds, shows and tests Weir.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Build the extensions of `plugins/` into `target/plugins`, and the hooks of `hooks.d/` beside their sources.
    Plugins,
    /// Build Main and its extensions, start them, and make a few calls across them.
    Demo {
        /// Compare the answers with this machine's own, see that Main does nothing when idle, and end.
        #[arg(long)]
        check: bool,
    },
    /// Measure Weir beside native code that does the same, as `docs/benchmarks.md` describes.
    Bench(bench::Arguments),
    /// Count the instructions of Weir's hot path with valgrind. Fails if a case takes over 5 % more than
    /// `benches/instructions.json` says.
    Instructions {
        /// Keep the new numbers there.
        #[arg(long)]
        bless: bool,
    },
    /// Check formatting and lints, and run the tests, as CI does. Installs what it needs if it may.
    Test {
        /// Run only the steps with this in their name.
        #[arg(long, value_name = "NAME")]
        only: Option<String>,
        /// Run this group of longer tests instead, and keep its pass in `docs/tested.md`. Without a name,
        /// list the groups.
        #[arg(long, value_name = "GROUP", num_args = 0..=1, conflicts_with = "only")]
        full: Option<Option<String>>,
    },
}

fn main() -> Result<()> {
    match Arguments::parse().task {
        Task::Plugins => guests::plugins().map(drop),
        Task::Demo { check } => demo::demo(check),
        Task::Bench(arguments) => bench::bench(&arguments),
        Task::Instructions { bless } => instructions::instructions(bless),
        Task::Test { full: Some(Some(group)), .. } => full::run(&group),
        Task::Test { full: Some(None), .. } => full::list(),
        Task::Test { only, full: None } => test::test(only.as_deref()),
    }
}
