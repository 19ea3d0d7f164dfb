//! The benchmarks: built, with the extensions that they run, and started.

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

/// The program that measures, and its extensions.
fn program(profile: &str) -> Result<Command> {
    guests::add_target()?;
    let mut build = cargo(["build", "--bins", "--target", guests::TARGET, "--profile", "guest"])?;
    run(build.args(["--package", "bench-guests", "--package", "echo"]))?;
    let target = target_dir()?;
    let mut program = Command::new(target.join(profile).join("weir-bench"));
    program.arg("--guests").arg(target.join(guests::TARGET).join("guest"));
    Ok(program)
}
