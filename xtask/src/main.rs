//! Everything that a fresh machine with rustup needs to see Weir work: `cargo xtask demo`, and to
//! prove it: `cargo xtask test`.

#![expect(clippy::print_stdout, reason = "the demo talks to whoever runs it")]

mod bench;
mod demo;
mod deny;
mod first_extension;
mod foreign_guests;
mod full;
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
        /// Compare the answers with what this machine says itself, see that Main does nothing when idle,
        /// and end.
        #[arg(long)]
        check: bool,
    },
    /// Measure, beside native code doing the same: `docs/benchmarks.md` says what.
    Bench(bench::Arguments),
    /// Count the instructions of Weir's hot path with valgrind, and fail if some case takes over 5 % more than
    /// `benches/instructions.json` says.
    Instructions {
        /// Keep the new numbers there.
        #[arg(long)]
        bless: bool,
    },
    /// Format, lints, and tests: what CI runs. Installs what it needs where it may.
    Test {
        /// Run only the steps whose name contains this.
        #[arg(long, value_name = "NAME")]
        only: Option<String>,
        /// Run this group of longer tests instead, and keep its pass in `docs/tested.md`; without a name, list
        /// the groups.
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
