//! The component model's test scripts, run by a workspace of its own: `spec-tests`.

use std::process::Command;

use anyhow::Result;

use crate::run::{cargo, run};

/// Checks the crate as the workspace is checked, and runs the scripts.
pub(crate) fn check() -> Result<()> {
    run(in_crate(&["fmt"])?.arg("--check"))?;
    run(in_crate(&["clippy", "--all-targets"])?.args(["--", "--deny", "warnings"]))?;
    run(in_crate(&["test", "--quiet"])?.args(["--", "--quiet"]))
}

fn in_crate(arguments: &[&str]) -> Result<Command> {
    let mut cargo = cargo(arguments)?;
    cargo.args(["--manifest-path", "spec-tests/Cargo.toml"]);
    Ok(cargo)
}
