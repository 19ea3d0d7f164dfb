//! Shows and tests Weir on a fresh machine with rustup: `cargo xtask demo` and `cargo xtask test`.

#![expect(clippy::print_stdout, reason = "the demo prints for its user")]

mod bench;
mod browser;
mod capi;
mod conformance;
mod demo;
mod deny;
mod dist;
mod files;
mod first_extension;
mod full;
mod full_contracts;
mod full_embedders;
mod full_exports;
mod full_http;
mod full_programs;
mod full_prometheus;
mod full_sdks;
mod full_shipping;
mod guests;
mod hooks;
mod instructions;
mod pgo;
mod projects;
mod release;
mod run;
mod setup;
mod test;
mod tools;

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
        /// Show a fleet instead: two Mains, two bridges and a NATS server, by the commands of `docs/fleet.md`.
        #[arg(long)]
        fleet: bool,
    },
    /// Build the C library, and install it with its headers, for pkg-config and CMake.
    Capi(capi::Arguments),
    /// Build `weir` for a target as it is given to others: a tarball, a Debian package, an SBOM, below `target/dist`.
    Dist(dist::Arguments),
    /// Check what would be published: `docs/releasing.md`.
    Release(release::Arguments),
    /// Measure Weir beside native code that does the same, as `docs/benchmarks.md` describes.
    Bench(bench::Arguments),
    /// Count the instructions of Weir's hot path with valgrind. Fails if a case takes over 5 % more than is kept.
    Instructions(instructions::Arguments),
    /// Make the profile, in `target/pgo`, that what is shipped and measured is compiled with. Takes three quarters of an hour.
    Pgo,
    /// Keep the advisories about our dependencies in `advisories.txt`, from `WEIR_ADVISORY_DB` or the network.
    Advisories,
    /// Build the guest of `tests/conformance/NAME`, and test what Weir can do from that language.
    Conformance {
        /// The folder in `tests/conformance/`: `c`, `go`, `python`, `rust`, `typescript`.
        #[arg(long, value_name = "NAME")]
        lang: String,
        /// Measure it, too, and keep the result in `docs/languages.md`.
        #[arg(long)]
        record: bool,
        /// Run only the points with this in their name.
        #[arg(long, value_name = "NAME", conflicts_with = "record")]
        only: Option<String>,
    },
    /// Check formatting and lints, and run the tests, as CI does. Installs what it needs if it may.
    Test {
        /// Run only the steps with this in their name.
        #[arg(long, value_name = "NAME")]
        only: Option<String>,
        /// Run this group of longer tests instead. Without a name, list the groups.
        #[arg(long, value_name = "GROUP", num_args = 0..=1, conflicts_with = "only")]
        full: Option<Option<String>>,
    },
}

fn main() -> Result<()> {
    match Arguments::parse().task {
        Task::Plugins => guests::plugins().map(drop),
        Task::Demo { check, fleet: true } => demo::fleet::fleet(check),
        Task::Demo { check, fleet: false } => demo::demo(check),
        Task::Capi(arguments) => capi::capi(&arguments),
        Task::Dist(arguments) => dist::dist(&arguments),
        Task::Release(arguments) => release::release(&arguments),
        Task::Bench(arguments) => bench::bench(&arguments),
        Task::Instructions(arguments) => instructions::instructions(&arguments),
        Task::Pgo => pgo::make(),
        Task::Advisories => deny::update(),
        Task::Conformance { lang, record, only } => conformance::test(&lang, record, only.as_deref()),
        Task::Test { full: Some(Some(group)), .. } => full::run(&group),
        Task::Test { full: Some(None), .. } => {
            full::list();
            Ok(())
        }
        Task::Test { only, full: None } => test::test(only.as_deref()),
    }
}
