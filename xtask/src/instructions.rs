//! Instructions of Weir's hot path: counted, and compared with the kept numbers.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;
use clap::Args;

use crate::{
    guests, pgo,
    run::{cargo, root, run, target_dir},
};

/// What to count, and whether to keep it.
#[derive(Debug, Default, Args)]
pub(crate) struct Arguments {
    /// Keep the new numbers in `benches/instructions.json`.
    #[arg(long)]
    bless: bool,
    /// Count what is shipped: compiled with the profile that `cargo xtask pgo` made.
    #[arg(long, conflicts_with = "bless")]
    with_profile: bool,
}

/// Counts a release build. Keeps the new numbers, or fails if one grew.
pub(crate) fn instructions(Arguments { bless, with_profile }: &Arguments) -> Result<()> {
    if !pgo::IS_HERE {
        println!("instructions are counted on {} only", pgo::TARGET);
        return Ok(());
    }
    if *with_profile {
        pgo::made()?;
    }
    let guests = extensions()?;
    let build = if *with_profile { pgo::build()? } else { pgo::build_plainly()? };
    let mut count = counter(build)?;
    count.arg("count").arg("--guests").arg(guests);
    count.arg("--kept").arg(root()?.join("benches/instructions.json"));
    count.arg("--profiles").arg(target_dir()?.join("instructions"));
    if *bless {
        count.arg("--bless");
    }
    run(&mut count)
}

/// Does what is counted many times, with a program that writes what it did to files of this name.
pub(crate) fn train(files: &Path) -> Result<()> {
    /// A quarter of all that the benchmarks do, about.
    const OPERATIONS: &str = "2000000";

    let guests = extensions()?;
    let mut work = counter(pgo::build_counting()?)?;
    run(work.args(["work-all", OPERATIONS, "--guests"]).arg(guests).env("LLVM_PROFILE_FILE", files))
}

/// Builds the program that counts.
fn counter((mut build, dir): (Command, PathBuf)) -> Result<Command> {
    run(build.args(["--bin", "weir-count"]))?;
    let mut counter = Command::new(dir.join("weir-count"));
    // With these set, every error would take a backtrace.
    counter.env_remove("RUST_BACKTRACE").env_remove("RUST_LIB_BACKTRACE");
    Ok(counter)
}

/// Builds the extensions, and returns their directory.
fn extensions() -> Result<PathBuf> {
    guests::add_target()?;
    let mut build = cargo(["build", "--bins", "--profile", "guest", "--target", guests::TARGET])?;
    run(build.args(["--package", "echo", "--package", "bench-guests"]))?;
    Ok(target_dir()?.join(guests::TARGET).join("guest"))
}
