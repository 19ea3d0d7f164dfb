//! The `weir` command as its user has it: built, started, called, stopped.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::run::{Process, cargo, output, pause, run, target_dir};

/// Time for Main to answer after its start. It compiles its extensions meanwhile.
const UP_WITHIN: Duration = Duration::from_secs(120);

const DOWN_WITHIN: Duration = Duration::from_secs(30);

/// Builds a program, to be named, as the tests of the workspace have it: with all that the pages name. With the smallest
/// of these tests: else features that only tests need are left out, and wasmtime is built a second time. That test looks
/// for the verbs and tables of the pages in what this leaves in `target/debug`.
pub(crate) const AS_TESTED: [&str; 4] = ["build", "--workspace", "--test", "manual"];

/// Builds the command as the tests of the workspace have it, and returns its path.
pub(crate) fn build() -> Result<PathBuf> {
    build_with(&AS_TESTED, &["--bin", "weir"])
}

/// As [`build`], with the bridge.
pub(crate) fn build_with_bridge() -> Result<[PathBuf; 2]> {
    let weir = build_with(&AS_TESTED, &["--bin", "weir", "--bin", "weir-nats"])?;
    Ok([weir.clone(), weir.with_file_name("weir-nats")])
}

fn build_with(build: &[&str], selection: &[&str]) -> Result<PathBuf> {
    run(cargo(build)?.args(selection))?;
    Ok(target_dir()?.join("debug/weir"))
}

/// A Main in its own process, killed on drop.
#[derive(Debug)]
pub(crate) struct RunningWeir {
    weir: PathBuf,
    socket: PathBuf,
    process: Process,
}

impl RunningWeir {
    /// Starts `weir run` and waits until it answers.
    pub(crate) fn start(weir: &Path, config: &Path) -> Result<Self> {
        let socket = target_dir()?.join("demo/weir.sock");
        let child = Command::new(weir)
            .arg("run")
            .arg(config)
            .arg("--socket")
            .arg(&socket)
            .env("CACHE_DIRECTORY", target_dir()?.join("demo/cache"))
            .spawn()
            .with_context(|| format!("cannot start `{}`", weir.display()))?;
        let mut main = Self { weir: weir.to_owned(), socket, process: Process(child) };
        let deadline = Instant::now() + UP_WITHIN;
        while !main.is_up() {
            if let Some(status) = main.process.0.try_wait()? {
                bail!("Main ended before it answered: {status}");
            }
            ensure!(Instant::now() < deadline, "Main does not answer within {UP_WITHIN:?}");
            pause(Duration::from_millis(50));
        }
        Ok(main)
    }

    /// Whether it answers, and every extension has started or failed.
    fn is_up(&self) -> bool {
        let Ok(extensions) = self.run(&["ps", "--json"]) else { return false };
        !["\"loaded\"", "\"starting\""].iter().any(|state| extensions.contains(state))
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    pub(crate) fn process(&self) -> u32 {
        self.process.0.id()
    }

    /// Runs a `weir` command against it and returns the output.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<String> {
        output(&mut self.command(arguments))
    }

    pub(crate) fn call(&self, contract: &str, operation: &str, arguments: &Value) -> Result<Value> {
        let answer = self.run(&["call", contract, operation, &arguments.to_string()])?;
        serde_json::from_str(&answer).with_context(|| format!("`{contract}` answered no JSON: {answer}"))
    }

    pub(crate) fn shut_down(&mut self) -> Result<()> {
        self.run(&["shutdown"])?;
        let deadline = Instant::now() + DOWN_WITHIN;
        loop {
            if let Some(status) = self.process.0.try_wait()? {
                ensure!(status.success(), "Main ended with {status}");
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "Main does not end within {DOWN_WITHIN:?}");
            pause(Duration::from_millis(50));
        }
    }

    pub(crate) fn wait(&mut self) -> Result<()> {
        let status = self.process.0.wait()?;
        ensure!(status.success(), "Main ended with {status}");
        Ok(())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.weir);
        command.args(arguments).env("WEIR_SOCKET", &self.socket);
        command
    }
}
