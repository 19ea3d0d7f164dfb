//! Builds extensions and hooks, and puts their files side by side. A program of its own builds those in C and Go:
//! `xtask/foreign-guests`.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{
    demo::weir,
    files,
    run::{cargo, output, root, run, target_dir},
};

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

/// The first release of Go, as in `go1.21`, with `wasip1` and `//go:wasmimport`.
const OLDEST_GO: u32 = 21;

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

/// Whether there is a Go that can build guests.
pub(crate) fn has_go() -> bool {
    let version = output(Command::new("go").args(["env", "GOVERSION"])).unwrap_or_default();
    let minor = version.trim().strip_prefix("go1.").and_then(|rest| rest.split(['.', 'r', 'b', '-']).next());
    minor.and_then(|minor| minor.parse().ok()).is_some_and(|minor: u32| minor >= OLDEST_GO)
}

/// Builds a guest in C or Go (`c-extension`, `c-hook`, `go-hook`) into `out_dir`. Returns the path of the component.
pub(crate) fn build_foreign(guest: &str, out_dir: &Path) -> Result<PathBuf> {
    run(cargo(weir::AS_TESTED)?.args(["--bin", "foreign-guests"]))?;
    let mut program = Command::new(target_dir()?.join("debug/foreign-guests"));
    Ok(PathBuf::from(output(program.arg(guest).arg(out_dir))?.trim_end()))
}

fn copy(name: &str, to: &Path) -> Result<()> {
    let file = format!("{name}.wasm");
    files::copy(&target_dir()?.join(TARGET).join("guest").join(&file), &to.join(&file))
}
