//! Building extensions: the target, the profile, and the files side by side.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result};

use crate::run::{cargo, output, root, run, target_dir};

/// What extensions are built for.
pub(crate) const TARGET: &str = "wasm32-wasip2";

/// The extensions of `plugins/`: packages, and the programs that each yields.
const PLUGINS: [(&str, &[&str]); 5] = [
    ("device-info", &["device-info"]),
    ("storage", &["storage"]),
    ("settings", &["settings"]),
    ("telemetry", &["telemetry"]),
    ("echo", &["echo", "echo-raw"]),
];

/// Adds the target to the toolchain in use, where rustup manages it and it is missing.
pub(crate) fn add_target() -> Result<()> {
    let rustup = |arguments: &[&str]| -> Result<Command> {
        let mut command = Command::new("rustup");
        // The toolchain file of the workspace decides which toolchain is meant.
        command.args(arguments).current_dir(root()?);
        Ok(command)
    };
    let installed = output(&mut rustup(&["target", "list", "--installed"])?)
        .context("`rustup` is needed to add the target `wasm32-wasip2`")?;
    if installed.lines().any(|line| line == TARGET) {
        return Ok(());
    }
    run(&mut rustup(&["target", "add", TARGET])?)
}

/// Builds every plugin and gathers the files in `target/plugins`.
pub(crate) fn plugins() -> Result<PathBuf> {
    add_target()?;
    let mut build = cargo(["build", "--target", TARGET, "--profile", "guest"])?;
    for (package, _) in PLUGINS {
        build.args(["--package", package]);
    }
    run(&mut build)?;
    let gathered = target_dir()?.join("plugins");
    fs::create_dir_all(&gathered).with_context(|| format!("cannot make `{}`", gathered.display()))?;
    for name in PLUGINS.iter().flat_map(|(_, programs)| *programs) {
        let file = format!("{name}.wasm");
        let built = target_dir()?.join(TARGET).join("guest").join(&file);
        fs::copy(&built, gathered.join(&file))
            .with_context(|| format!("cannot copy `{}`", built.display()))?;
    }
    Ok(gathered)
}
