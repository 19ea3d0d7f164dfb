//! Programs that use generated clients. Each says `ready` when it has done what it does before Main is killed.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};

use super::Access;

const WITHIN: Duration = Duration::from_secs(120);

/// A program with a name for messages.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) command: Command,
}

impl Program {
    pub(super) fn start(&mut self, access: &Access) -> Result<Running> {
        access.give(&mut self.command);
        let mut child = self
            .command
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start the {}", self.name))?;
        let output = child.stdout.take().context("no output")?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                eprintln!("{line}");
                // Nobody reads the lines of a program that has failed.
                let _unread = sender.send(line);
            }
        });
        Ok(Running { name: self.name, child, lines })
    }
}

/// A program that runs, killed on drop.
#[derive(Debug)]
pub(super) struct Running {
    name: &'static str,
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    pub(super) fn wait_until_ready(&mut self) -> Result<()> {
        let until = Instant::now() + WITHIN;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            if line.with_context(|| format!("the {} failed before Main was killed", self.name))? == "ready" {
                return Ok(());
            }
        }
    }

    /// Waits for its end: it closes its output then.
    pub(super) fn wait_until_done(mut self) -> Result<()> {
        let until = Instant::now() + WITHIN;
        while self.lines.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok() {}
        ensure!(Instant::now() < until, "the {} does not end after Main was killed", self.name);
        let status = self.child.wait()?;
        ensure!(status.success(), "the {} failed after Main was killed: {status}", self.name);
        eprintln!("the {} went on, and ended well", self.name);
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails if it has ended, which is the aim.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}
