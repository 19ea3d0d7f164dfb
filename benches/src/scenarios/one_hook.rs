//! A directory with one hook, run by a plain thread.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use weir_host::{
    Main,
    blocking::wait,
    config::CpuShare,
    hooks::{HookCall, HookDir, HookDirConfig, HookReport, HookRun},
};

use super::{Scale, device::wait_until, embedder::builder};
use crate::guests::{Guests, MUCH_FUEL};

/// Age from which Weir keeps a loaded file: a younger one could change without a trace.
pub(super) const SETTLED: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct OneHook {
    hooks: HookDir,
    made: Instant,
    /// Dropped last: it runs the hook.
    _main: Main,
    _dir: TempDir,
}

impl OneHook {
    /// Makes a directory whose hook is the built program of this name, held by slices only.
    pub(super) fn start(guests: &Guests, name: &str) -> Result<Self> {
        let dir = tempfile::tempdir().context("cannot make a directory")?;
        guests.copy_hook(name, dir.path())?;
        let main = wait(builder(Vec::new()).start())?;
        let mut config = HookDirConfig::new(dir.path());
        config.limits.cpu_share = CpuShare::WHOLE;
        config.limits.fuel_to_start = MUCH_FUEL;
        Ok(Self { hooks: main.hooks().open(config)?, made: Instant::now(), _main: main, _dir: dir })
    }

    /// Waits until no run loads the file again: compiling and reading from disk are not part of a run.
    pub(super) fn settle(&self, scale: Scale, call: HookCall) -> Result<()> {
        self.run(call.clone())?;
        wait_until(self.made + scale.pick(SETTLED, SETTLED, Duration::ZERO));
        self.run(call).map(drop)
    }

    /// Runs the hook, which must succeed. Returns the time of the whole run, and the hook's part.
    pub(super) fn run(&self, call: HookCall) -> Result<(Duration, HookRun)> {
        let start = Instant::now();
        let report = self.hooks.run_blocking(call)?;
        let time = start.elapsed();
        ensure!(report.is_success(), "the hook did not end well: {report:?}");
        let HookReport { mut runs, .. } = report;
        let run = runs.pop().context("there was no hook")?;
        ensure!(runs.is_empty(), "there was more than one hook");
        Ok((time, run))
    }
}
