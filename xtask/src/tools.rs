//! Programs of crates.io that tasks run, in pinned versions: found, or built once below `target/tools`.

use std::{path::PathBuf, process::Command};

use anyhow::Result;

use crate::run::{cargo, output, run, target_dir};

/// A crate with a program of the same name, which prints its version after `--version`.
pub(crate) fn of_cargo(name: &str, version: &str) -> Result<PathBuf> {
    let tools = target_dir()?.join("tools");
    let built = tools.join("bin").join(name);
    for program in [PathBuf::from(name), built.clone()] {
        let printed = output(Command::new(&program).arg("--version")).unwrap_or_default();
        if printed.split_whitespace().any(|word| word == version) {
            return Ok(program);
        }
    }
    // Unoptimised: it builds much faster, and runs for seconds only.
    let mut install = cargo(["install", name, "--locked", "--debug", "--version"])?;
    install.arg(format!("={version}")).arg("--root").arg(&tools).env("CARGO_PROFILE_DEV_DEBUG", "false");
    // Nothing else can use its artifacts.
    run(install.env_remove("CARGO_TARGET_DIR"))?;
    Ok(built)
}
