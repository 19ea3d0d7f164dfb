//! What runs the hooks: Weir's entries, each with its own Main, and processes.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use weir_host::{
    Main,
    blocking::wait,
    hooks::{HookCall, HookDir, HookReport},
};

use super::{HOOKS, node, site::Site};
use crate::scenarios::embedder::{Embedder, builder, on_the_worker};

/// Weir's blocking entry, in a plain loop on the calling thread.
#[derive(Debug)]
pub(super) struct Blocking {
    hooks: HookDir,
    /// Dropped last: it runs the hooks.
    _main: Main,
}

impl Blocking {
    pub(super) fn start(site: &Site) -> Result<Self> {
        let main = wait(builder(Vec::new()).start())?;
        Ok(Self { hooks: main.hooks().open(site.config()?)?, _main: main })
    }

    pub(super) fn round(&self, nodes: u32) -> Result<Duration> {
        let start = Instant::now();
        for number in 0..nodes {
            let node = node(number);
            check(&self.hooks.run_blocking(call(&node))?, &node)?;
        }
        Ok(start.elapsed())
    }
}

/// Weir's async entry, in a loop: in a task of another runtime, or of Main's own.
#[derive(Debug)]
pub(super) struct Async {
    hooks: HookDir,
    embedder: Embedder,
}

impl Async {
    pub(super) fn start(site: &Site) -> Result<Self> {
        let (service, later) = on_the_worker(|hooks: HookDir, numbers| async move {
            let [nodes] = *numbers else { bail!("one number is needed") };
            round(&hooks, nodes).await
        })?;
        let embedder = Embedder::start(builder(Vec::new()).serve(service))?;
        let hooks = embedder.main().hooks().open(site.config()?)?;
        later.get_or_init(|| hooks.clone());
        Ok(Self { hooks, embedder })
    }

    pub(super) fn round_in_a_task(&self, nodes: u32) -> Result<Duration> {
        self.embedder.run(round(&self.hooks, nodes))
    }

    pub(super) fn round_on_the_worker(&self, nodes: u32) -> Result<Duration> {
        self.embedder.timed(&[nodes])
    }
}

async fn round(hooks: &HookDir, nodes: u32) -> Result<Duration> {
    let start = Instant::now();
    for number in 0..nodes {
        let node = node(number);
        check(&hooks.run(call(&node)).await?, &node)?;
    }
    Ok(start.elapsed())
}

/// The hooks as processes. Each starts only if the one before succeeded.
#[derive(Debug)]
pub(super) struct Processes {
    hooks: [PathBuf; 3],
    files: PathBuf,
}

impl Processes {
    pub(super) fn new(hooks: [PathBuf; 3], files: PathBuf) -> Self {
        Self { hooks, files }
    }

    pub(super) fn round(&self, nodes: u32) -> Result<Duration> {
        let start = Instant::now();
        for number in 0..nodes {
            let node = node(number);
            ensure_hello(&self.run(&node)?, &node)?;
        }
        Ok(start.elapsed())
    }

    fn run(&self, node: &str) -> Result<Vec<u8>> {
        let mut last = Vec::new();
        for hook in &self.hooks {
            let output = self.hook(hook, node)?;
            ensure!(output.status.success(), "`{}` of `{node}`: {output:?}", hook.display());
            last = output.stdout;
        }
        Ok(last)
    }

    fn hook(&self, hook: &Path, node: &str) -> Result<Output> {
        let mut command = Command::new(hook);
        command.env_clear().env("ROOT_DIR", &self.files).env("NODE", node).stdin(Stdio::null());
        command.output().with_context(|| format!("cannot run `{}`", hook.display()))
    }
}

fn call(node: &str) -> HookCall {
    HookCall::new().param("NODE", node)
}

fn check(report: &HookReport, node: &str) -> Result<()> {
    let all = report.is_success() && report.runs.len() == HOOKS.len();
    ensure!(all, "the hooks of `{node}` did not end well: {report:?}");
    ensure_hello(report.runs.last().map_or(b"", |last| &last.stdout), node)
}

fn ensure_hello(stdout: &[u8], node: &str) -> Result<()> {
    let said = String::from_utf8_lossy(stdout);
    ensure!(said.trim_end() == format!("hello {node}"), "`{node}` was told {said:?}");
    Ok(())
}
