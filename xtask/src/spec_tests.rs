//! The component model's test scripts, run by their own workspace: `spec-tests`.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::run::{cargo, output, run};

/// Checks the crate like the workspace, and runs the scripts.
pub(crate) fn check() -> Result<()> {
    run(in_crate(&["fmt"])?.arg("--check"))?;
    run(in_crate(&["clippy", "--all-targets"])?.args(["--", "--deny", "warnings"]))?;
    run(in_crate(&["test", "--quiet"])?.args(["--", "--quiet"]))?;
    let scripts = output(in_crate(&["test", "--quiet"])?.args(["--", "--list"]))?;
    ensure!(
        scripts.lines().any(|line| line.ends_with(": test")),
        "there are no scripts: `WEIR_SPEC_TESTS` can name the folder `test` of a clone of \
         https://github.com/WebAssembly/component-model"
    );
    Ok(())
}

fn in_crate(arguments: &[&str]) -> Result<Command> {
    let mut cargo = cargo(arguments)?;
    cargo.args(["--manifest-path", "tests/spec-tests/Cargo.toml"]);
    Ok(cargo)
}
