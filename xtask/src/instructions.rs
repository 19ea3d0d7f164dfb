//! Instructions of Weir's hot path: counted, and compared with the kept numbers.

use std::{env::consts::ARCH, process::Command};

use anyhow::Result;

use crate::{
    guests,
    run::{cargo, root, run, target_dir},
};

/// The kept numbers are for this architecture.
const COUNTED_ON: &str = "x86_64";

/// Counts the release build. Keeps the new numbers, or fails if one grew.
pub(crate) fn instructions(bless: bool) -> Result<()> {
    if ARCH != COUNTED_ON {
        println!("instructions are counted on {COUNTED_ON} only, and this is {ARCH}");
        return Ok(());
    }
    guests::add_target()?;
    run(&mut cargo([
        "build",
        "--bins",
        "--profile",
        "guest",
        "--target",
        guests::TARGET,
        "--package",
        "echo",
        "--package",
        "bench-guests",
    ])?)?;
    run(&mut cargo(["build", "--release", "--package", "weir-bench", "--bin", "weir-count"])?)?;
    let target = target_dir()?;
    let mut count = Command::new(target.join("release/weir-count"));
    count.arg("count").arg("--guests").arg(target.join(guests::TARGET).join("guest"));
    count.arg("--kept").arg(root()?.join("benches/instructions.json"));
    count.arg("--profiles").arg(target.join("instructions"));
    if bless {
        count.arg("--bless");
    }
    // With these set, every error would take a backtrace.
    run(count.env_remove("RUST_BACKTRACE").env_remove("RUST_LIB_BACKTRACE"))
}
