//! Builds extensions and hooks, and puts their files side by side.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::run::{cargo, output, root, run, target_dir};

pub(crate) const TARGET: &str = "wasm32-wasip2";

/// The packages of `plugins/`, and the programs of each.
pub(crate) const PLUGINS: [(&str, &[&str]); 6] = [
    ("device-info", &["device-info"]),
    ("storage", &["storage"]),
    ("settings", &["settings"]),
    ("telemetry", &["telemetry"]),
    ("echo", &["echo", "echo-raw"]),
    ("courier", &["courier"]),
];

/// The package of `hooks.d/`, and its hooks.
const HOOKS: (&str, [&str; 5]) = (
    "example-hooks",
    ["10-create-root-dir", "20-touch-file", "30-echo-hello", "40-count-files", "50-check-node"],
);

/// Adds the guests' target to the current toolchain.
pub(crate) fn add_target() -> Result<()> {
    add_target_of(TARGET)
}

/// Adds a target to the current toolchain if rustup manages it.
pub(crate) fn add_target_of(target: &str) -> Result<()> {
    let rustup = |arguments: &[&str]| -> Result<Command> {
        let mut command = Command::new("rustup");
        // The workspace's toolchain file decides the toolchain.
        command.args(arguments).current_dir(root()?);
        Ok(command)
    };
    let installed = output(&mut rustup(&["target", "list", "--installed"])?)
        .with_context(|| format!("`rustup` is needed to add the target `{target}`"))?;
    if installed.lines().any(|line| line == target) {
        return Ok(());
    }
    run(&mut rustup(&["target", "add", target])?)
}

/// Builds every plugin into `target/plugins`, and the example hooks into `hooks.d`.
pub(crate) fn plugins() -> Result<PathBuf> {
    add_target()?;
    let (hooks_package, hooks) = HOOKS;
    let mut build = cargo(["build", "--bins", "--target", TARGET, "--profile", "guest"])?;
    for package in PLUGINS.iter().map(|(package, _)| package).chain([&hooks_package]) {
        build.args(["--package", package]);
    }
    run(&mut build)?;
    let gathered = target_dir()?.join("plugins");
    fs::create_dir_all(&gathered).with_context(|| format!("cannot make `{}`", gathered.display()))?;
    for name in PLUGINS.iter().flat_map(|(_, programs)| *programs) {
        copy(name, &gathered)?;
    }
    let hooks_dir = root()?.join("hooks.d");
    for name in hooks {
        copy(name, &hooks_dir)?;
    }
    Ok(gathered)
}

/// Builds a guest of the tests.
pub(crate) fn test_guest(name: &str) -> Result<PathBuf> {
    add_target()?;
    let build =
        ["build", "--target", TARGET, "--profile", "guest", "--package", "test-guests", "--bin", name];
    run(&mut cargo(build)?)?;
    Ok(target_dir()?.join(TARGET).join("guest").join(format!("{name}.wasm")))
}

fn copy(name: &str, to: &Path) -> Result<()> {
    let file = format!("{name}.wasm");
    let built = target_dir()?.join(TARGET).join("guest").join(&file);
    fs::copy(&built, to.join(&file)).with_context(|| format!("cannot copy `{}`", built.display()))?;
    Ok(())
}
