//! The SDKs for extensions in Python, TypeScript and Go: their own tests, a new project of each, and the conformance
//! suite with a guest in each language.

use std::{path::Path, process::Command};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::{
    conformance, first_extension,
    run::{root, run},
    setup::{self, GO, NODE, Need, PYTHON},
};

const PYTHON_TOOLS: [&str; 2] = ["mypy==2.4.1", "pytest==9.2.0"];

/// The files and folders whose types are checked.
const PYTHON_CHECKED: [&str; 3] =
    ["guest-sdk/python/src/weir", "guest-sdk/python/tests", "tests/conformance/python/app.py"];

/// What the tests in TypeScript need.
const TYPESCRIPT_FILES: [&str; 4] = ["package.json", "tsconfig.json", "src", "test"];

pub(crate) fn python() -> Result<Vec<String>> {
    let directory = begin(&PYTHON)?;
    let programs = directory.path().join("bin");
    let python = || {
        let mut command = Command::new(programs.join("python"));
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command
    };
    let sdk = root()?.join("guest-sdk/python");
    run(Command::new("python3").args(["-m", "venv"]).arg(directory.path()))?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    run(python().args(install).args(PYTHON_TOOLS).arg(&sdk))?;
    run(python().args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).current_dir(&sdk))?;
    let types = ["-m", "mypy", "--strict", "--cache-dir=/dev/null"];
    run(python().args(types).args(PYTHON_CHECKED).env("MYPYPATH", sdk.join("src")).current_dir(root()?))?;
    conforms("python")
}

pub(crate) fn typescript() -> Result<Vec<String>> {
    let directory = begin(&NODE)?;
    let sdk = root()?.join("guest-sdk/typescript");
    let files = TYPESCRIPT_FILES.map(|file| sdk.join(file));
    run(Command::new("cp").arg("-R").args(files).arg(directory.path()))?;
    let install = ["install", "--no-audit", "--no-fund", "--silent"];
    npm(&install, directory.path())?;
    npm(&["test", "--silent"], directory.path())?;
    // A new project depends on the packed SDK.
    npm(&install, &sdk)?;
    npm(&["pack", "--silent"], &sdk)?;
    conforms("typescript")
}

pub(crate) fn go() -> Result<Vec<String>> {
    begin(&GO)?;
    let sdk = root()?.join("guest-sdk/go");
    for arguments in [["vet", ".", "./weirtest"], ["test", ".", "./weirtest"]] {
        run(Command::new("go").args(arguments).current_dir(&sdk))?;
    }
    conforms("go")
}

fn begin(need: &'static Need) -> Result<TempDir> {
    setup::require(&[need])?;
    tempfile::tempdir().context("cannot make a directory")
}

fn conforms(language: &str) -> Result<Vec<String>> {
    first_extension::in_language(language)?;
    conformance::test_long(language)?;
    Ok(Vec::new())
}

fn npm(arguments: &[&str], directory: &Path) -> Result<()> {
    run(Command::new("npm").args(arguments).current_dir(directory))
}
