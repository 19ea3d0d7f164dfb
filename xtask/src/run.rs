//! Running other programs, and the paths of the workspace.

use std::{
    env,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

pub(crate) fn root() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in no workspace")
}

/// The directory where Cargo keeps what it downloads.
pub(crate) fn cargo_home() -> Result<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")));
    home.context("there is no home directory")
}

/// Cargo's target directory: always this one, because the demo's configuration names it.
pub(crate) fn target_dir() -> Result<PathBuf> {
    Ok(root()?.join("target"))
}

pub(crate) fn cargo<I: AsRef<OsStr>>(arguments: impl IntoIterator<Item = I>) -> Result<Command> {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    set_environment(command.args(arguments).current_dir(root()?))?;
    Ok(command)
}

/// Sets Cargo's variables for Cargo, or for a program that runs it.
pub(crate) fn set_environment(command: &mut Command) -> Result<()> {
    // Everywhere as in CI. An incremental build has more and smaller units: an operation takes up to 4 % more instructions.
    command.env("CARGO_TARGET_DIR", target_dir()?).env("CARGO_INCREMENTAL", "0");
    // Cargo set these for xtask. `ring` and all above it would be built again whenever they differ from the last build.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    Ok(())
}

pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {}", shown(command)))?;
    ensure!(status.success(), "{} failed: {status}", shown(command));
    Ok(())
}

/// Runs a command to its end and returns its output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {}", shown(command)))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} failed: {}\n{errors}", shown(command), output.status);
    String::from_utf8(output.stdout).with_context(|| format!("{} printed no text", shown(command)))
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
    format!("`{}`", words.join(" "))
}

/// A process that is killed on drop.
#[derive(Debug)]
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        // This fails if the process has ended.
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// Looks at another process again and again until `look` finds something. `None` if time is up before.
pub(crate) fn until<T>(
    within: Duration,
    pace: Duration,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> Result<Option<T>> {
    let deadline = Instant::now() + within;
    loop {
        match look()? {
            None if Instant::now() < deadline => pause(pace),
            found => return Ok(found),
        }
    }
}

/// Waits before another look at a process.
#[expect(clippy::disallowed_methods, reason = "another process has no event to wait for")]
pub(crate) fn pause(time: Duration) {
    thread::sleep(time);
}
