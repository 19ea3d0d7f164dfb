//! The benchmarks: built, with the extensions and hooks that they run, and started.

use std::{path::PathBuf, process::Command};

use anyhow::Result;
use clap::Args;

use crate::{
    guests,
    run::{cargo, root, run, target_dir},
};

/// What is measured and where the figures go.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Measure for regressions, and not for the record.
    #[arg(long)]
    quick: bool,
    /// Run only this scenario; can be given more than once.
    #[arg(long, value_name = "SCENARIO")]
    only: Vec<String>,
    /// Write the figures here, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the figures into `docs/benchmarks.md`, too.
    #[arg(long)]
    docs: bool,
}

/// Measures.
pub(crate) fn bench(arguments: &Arguments) -> Result<()> {
    run(&mut cargo(["build", "--release", "--package", "weir-bench"])?)?;
    let mut measure = program("release")?;
    measure.args(["--scale", if arguments.quick { "quick" } else { "full" }]);
    for scenario in &arguments.only {
        measure.args(["--only", scenario]);
    }
    if let Some(file) = &arguments.json {
        measure.arg("--json").arg(file);
    }
    if arguments.docs {
        measure.arg("--docs").arg(root()?.join("docs/benchmarks.md"));
    }
    run(&mut measure)
}

/// Runs every scenario for a moment, to see that it works. Times are not judged.
pub(crate) fn check() -> Result<()> {
    // With the features of what is built already.
    run(&mut cargo(["build", "--package", "weir-bench", "--package", "weir", "--bin", "weir-bench"])?)?;
    let json = tempfile::tempdir()?;
    run(program("debug")?.args(["--scale", "smoke", "--json"]).arg(json.path().join("figures.json")))
}

/// The program that measures, with its extensions and hooks.
fn program(profile: &str) -> Result<Command> {
    guests::add_target()?;
    let build = |for_weir: &[&str]| {
        let packages = ["--package", "bench-guests", "--package", "example-hooks"];
        run(cargo(["build", "--bins", "--profile", "guest"])?.args(packages).args(for_weir))
    };
    build(&["--target", guests::TARGET, "--package", "echo"])?;
    // What hooks are compared with: processes of the same source, built in the same way.
    build(&[])?;
    let target = target_dir()?;
    let mut program = Command::new(target.join(profile).join("weir-bench"));
    program.arg("--guests").arg(target.join(guests::TARGET).join("guest"));
    program.arg("--native").arg(target.join("guest"));
    // With these set every error takes a backtrace, which is in the shell of who develops and not where hooks run.
    program.env_remove("RUST_BACKTRACE").env_remove("RUST_LIB_BACKTRACE");
    Ok(program)
}
