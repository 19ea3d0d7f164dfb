//! The same hooks as processes: the next only if the one before succeeded.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use super::{node, site::ensure_hello};

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
