//! Instructions of Weir's hot path: counted, and compared with the kept numbers.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use clap::Args;

use crate::{
    demo, files, guests, pgo,
    run::{cargo, output, root, run, target_dir},
};

/// What to count, and whether to keep it.
#[derive(Debug, Default, Args)]
pub(crate) struct Arguments {
    /// Keep the new numbers.
    #[arg(long)]
    bless: bool,
    /// Count what the workspace's tests are built of, and compare with `benches/instructions-as-tested.json`.
    #[arg(long)]
    as_tested: bool,
    /// Count what is shipped: compiled with the profile that `cargo xtask pgo` made.
    #[arg(long, conflicts_with_all = ["bless", "as_tested"])]
    with_profile: bool,
}

/// Counts what the tests have built, so that nothing is built twice.
pub(crate) fn check_as_tested() -> Result<()> {
    instructions(&Arguments { as_tested: true, ..Arguments::default() })
}

/// Counts a release build, or as the arguments say. Keeps the new numbers with `bless`, and otherwise fails if one grew too
/// much or is new. Does nothing on machines of another target.
pub(crate) fn instructions(Arguments { bless, as_tested, with_profile }: &Arguments) -> Result<()> {
    if !pgo::IS_HERE {
        println!("instructions are counted on {} only", pgo::TARGET);
        return Ok(());
    }
    if *with_profile {
        pgo::made()?;
    }
    let artifacts = artifacts()?;
    let build = match (as_tested, with_profile) {
        (true, _) => (cargo(demo::weir::AS_TESTED)?, target_dir()?.join("debug")),
        (_, true) => pgo::build()?,
        _ => build_alone()?,
    };
    let mut count = counter(build)?;
    count.arg("count").arg("--artifacts").arg(artifacts);
    let kept = if *as_tested { "benches/instructions-as-tested.json" } else { "benches/instructions.json" };
    count.arg("--kept").arg(root()?.join(kept));
    count.arg("--profiles").arg(target_dir()?.join("instructions"));
    if *bless {
        count.arg("--bless");
    }
    run(&mut count)
}

/// Does what is counted many times, with a program that writes what it did to files of this name.
pub(crate) fn train(files: &Path) -> Result<()> {
    /// How often each case is done: all cases do about a quarter of what the benchmarks do.
    const OPERATIONS: &str = "2000000";

    let artifacts = artifacts()?;
    let mut work = counter(pgo::build_counting()?)?;
    run(work.args(["work-all", OPERATIONS, "--artifacts"]).arg(artifacts).env("LLVM_PROFILE_FILE", files))
}

/// Builds the program that counts.
fn counter((mut build, dir): (Command, PathBuf)) -> Result<Command> {
    run(build.args(["--bin", "weir-count"]))?;
    let mut counter = Command::new(dir.join("weir-count"));
    // With these variables set, every error would take a backtrace.
    counter.env_remove("RUST_BACKTRACE").env_remove("RUST_LIB_BACKTRACE");
    Ok(counter)
}

/// A build by Cargo of the program that counts, and its directory. It has no features that only other programs need:
/// above all, no compiler.
fn build_alone() -> Result<(Command, PathBuf)> {
    Ok((cargo(["build", "--release", "--package", "weir-count"])?, target_dir()?.join("release")))
}

/// Builds the extensions, compiles and signs them. Returns the directory of the artifacts.
fn artifacts() -> Result<PathBuf> {
    guests::add_target()?;
    let mut build = cargo(["build", "--bins", "--profile", "guest", "--target", guests::TARGET])?;
    run(build.args(["--package", "echo", "--package", "bench-guests"]))?;
    let guests = target_dir()?.join(guests::TARGET).join("guest");
    let weir = demo::weir::build()?;
    let artifacts = target_dir()?.join("instructions/artifacts");
    // `weir keygen` never writes over a key.
    files::clear(&artifacts)?;
    files::make_directory(&artifacts)?;
    let key = artifacts.join("key.pem");
    let line = output(Command::new(&weir).arg("keygen").arg(&key))?;
    let trusted = line.split('"').nth(1).context("`weir keygen` printed no key")?;
    files::write(&artifacts.join("key"), trusted)?;
    for (component, artifact) in [("echo-raw.wasm", "echo.cwasm"), ("bench-guest.wasm", "caller.cwasm")] {
        let mut compile = Command::new(&weir);
        compile.arg("compile").arg(guests.join(component)).arg("--key").arg(&key);
        run(compile.arg("--output").arg(artifacts.join(artifact)))?;
    }
    Ok(artifacts)
}
