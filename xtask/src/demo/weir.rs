//! The `weir` command as its user has it: built, started, called, watched while idle, stopped.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::run::{Process, cargo, output, pause, run, target_dir, until};

/// Time for Main to answer after its start. It compiles its extensions meanwhile.
const UP_WITHIN: Duration = Duration::from_secs(120);

const DOWN_WITHIN: Duration = Duration::from_secs(30);

const PACE: Duration = Duration::from_millis(50);

/// Time after the last call until all is over: the last deadline, the last save of an extension, the threads of
/// the blocking pool, which wait 10 s for more work, and the gateway's look for old tickets, after 30 s.
const SETTLING: Duration = Duration::from_secs(32);

const WATCHED: Duration = Duration::from_secs(10);

/// Cargo's arguments for programs as the tests of the workspace have them; callers add their names. The smallest test
/// is built, too: without one, Cargo leaves out features that tests need, and builds wasmtime a second time.
pub(crate) const AS_TESTED: [&str; 4] = ["build", "--workspace", "--test", "manual"];

/// Builds the command as the tests of the workspace have it, and returns its path.
pub(crate) fn build() -> Result<PathBuf> {
    build_with(&AS_TESTED, &["--bin", "weir"])
}

/// Builds the command as [`build`] does, and the bridge to NATS. Returns both paths.
pub(crate) fn build_with_bridge() -> Result<[PathBuf; 2]> {
    let weir = build_with(&AS_TESTED, &["--bin", "weir", "--bin", "weir-nats"])?;
    Ok([weir.clone(), weir.with_file_name("weir-nats")])
}

/// Builds these programs in that way, and returns the path of the command.
pub(crate) fn build_with(build: &[&str], selection: &[&str]) -> Result<PathBuf> {
    run(cargo(build)?.args(selection))?;
    Ok(target_dir()?.join("debug/weir"))
}

/// A new token of a peer, and its hash for Main's file.
pub(crate) fn token(weir: &Path, peer: &str) -> Result<(String, String)> {
    let made = output(Command::new(weir).args(["peers", "token", peer, "--json"]))?;
    let made: Value = serde_json::from_str(&made).context("`weir peers token` printed no JSON")?;
    let text = |member: &str| made.get(member).and_then(Value::as_str).map(str::to_owned);
    text("token").zip(text("hash")).context("`weir peers token` gave no token, or no hash")
}

/// A Main in its own process, killed on drop.
#[derive(Debug)]
pub(crate) struct RunningWeir {
    weir: PathBuf,
    socket: PathBuf,
    process: Process,
}

impl RunningWeir {
    /// Starts `weir run`, and waits until it answers and every extension has started or failed.
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
        let up = until(UP_WITHIN, PACE, || {
            if main.is_up() {
                return Ok(Some(()));
            }
            let ended = main.process.0.try_wait()?;
            ended.map_or(Ok(None), |status| bail!("Main ended before it answered: {status}"))
        })?;
        up.with_context(|| format!("Main does not answer within {UP_WITHIN:?}"))?;
        Ok(main)
    }

    /// Whether Main answers, and every extension has started or failed.
    fn is_up(&self) -> bool {
        let Ok(extensions) = self.run(&["ps", "--json"]) else { return false };
        !["\"loaded\"", "\"starting\""].iter().any(|state| extensions.contains(state))
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Runs a `weir` command against this Main, and returns its output.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<String> {
        output(&mut self.command(arguments))
    }

    pub(crate) fn call(&self, contract: &str, operation: &str, arguments: &Value) -> Result<Value> {
        let answer = self.run(&["call", contract, operation, &arguments.to_string()])?;
        serde_json::from_str(&answer).with_context(|| format!("`{contract}` answered no JSON: {answer}"))
    }

    pub(crate) fn shut_down(&mut self) -> Result<()> {
        self.run(&["shutdown"])?;
        let ended = until(DOWN_WITHIN, PACE, || Ok(self.process.0.try_wait()?))?;
        let status = ended.with_context(|| format!("Main does not end within {DOWN_WITHIN:?}"))?;
        ensure!(status.success(), "Main ended with {status}");
        Ok(())
    }

    pub(crate) fn wait(&mut self) -> Result<()> {
        let status = self.process.0.wait()?;
        ensure!(status.success(), "Main ended with {status}");
        Ok(())
    }

    /// Waits until Main is idle, and then watches it: no thread may wake up, or use a tick of the processor.
    pub(super) fn check_idle(&self) -> Result<()> {
        pause(SETTLING);
        let before = threads(self.process.0.id())?;
        pause(WATCHED);
        let after = threads(self.process.0.id())?;
        ensure!(before == after, "idle for {WATCHED:?}, and threads have run: {before:?}, then {after:?}");
        println!("\nIdle for {WATCHED:?}, {} threads made no context switch and used no tick.", after.len());
        Ok(())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.weir);
        command.args(arguments).env("WEIR_SOCKET", &self.socket);
        command
    }
}

/// The name, voluntary context switches, and ticks in user and system mode of each thread. Involuntary switches are
/// left out, since they are the doing of other processes.
fn threads(process: u32) -> Result<BTreeMap<u32, Vec<String>>> {
    let tasks = format!("/proc/{process}/task");
    let mut threads = BTreeMap::new();
    for task in fs::read_dir(&tasks).with_context(|| format!("cannot read `{tasks}`"))? {
        let path = task?.path();
        let status = fs::read_to_string(path.join("status"))?;
        let stat = fs::read_to_string(path.join("stat"))?;
        let kept = status.lines().filter(|line| line.starts_with("Name") || line.starts_with("voluntary"));
        // Fields after the name, which is in parentheses and can hold anything: utime and stime are the 12th
        // and 13th.
        let (_, fields) = stat.rsplit_once(") ").context("a `stat` without a name")?;
        let ticks = fields.split(' ').skip(11).take(2);
        let number = path.file_name().and_then(|name| name.to_str()?.parse().ok()).context("not a thread")?;
        threads.insert(number, kept.chain(ticks).map(str::to_owned).collect());
    }
    Ok(threads)
}
