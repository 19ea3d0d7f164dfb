//! What a hook takes that does nothing: the price of a sandbox, beside that of a process.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use weir_host::{CpuShare, HookCall, HookDirConfig, blocking};

use super::{NAME, entries::builder, site::copy_hook};
use crate::{
    figure::{Figure, Unit},
    scale::Scale,
    scenarios::{Bench, progress},
    statistics::{median, microseconds},
};

const EMPTY: &str = "empty";

/// A directory with this one hook, and the same program.
#[derive(Debug)]
pub(super) struct Empty {
    hooks: blocking::HookDir,
    program: PathBuf,
    /// Dropped last: it runs the hook.
    _main: blocking::Main,
    _dir: TempDir,
}

/// What a run took, on average of one round.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// From the call to its end.
    whole: Duration,
    /// Of the hook, without the search for it.
    hook: Duration,
}

impl Empty {
    pub(super) fn start(bench: &Bench) -> Result<Self> {
        let dir = tempfile::tempdir().context("cannot make a directory")?;
        copy_hook(&bench.guests, EMPTY, dir.path())?;
        let main = blocking::Main::start(builder())?;
        let mut config = HookDirConfig::new(dir.path());
        config.limits.cpu_share = CpuShare::WHOLE;
        let hooks = main.hooks().open(config)?;
        Ok(Self { hooks, program: bench.guests.native(EMPTY), _main: main, _dir: dir })
    }

    /// The hook and the process in turns.
    pub(super) fn measure(&self, scale: Scale, rounds: usize) -> Result<Vec<Figure>> {
        let (runs, processes) = (scale.pick(5000, 500, 5), scale.pick(500, 50, 5));
        // Compiles.
        run(&self.hooks, 1)?;
        let (mut ran, mut spawned) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            progress(EMPTY, round, rounds);
            ran.push(run(&self.hooks, runs)?);
            spawned.push(microseconds(spawn(&self.program, processes)?));
        }
        let time = |time: fn(&Run) -> Duration| median(ran.iter().map(time).map(microseconds).collect());
        let figure = |metric, value| Figure::new(NAME, EMPTY, metric, Unit::Microseconds, value);
        let spawned = median(spawned);
        Ok(vec![
            figure("time per run", time(|run| run.whole)).beside(spawned),
            figure("time of the hook", time(|run| run.hook)).beside(spawned),
        ])
    }
}

fn run(hooks: &blocking::HookDir, count: u32) -> Result<Run> {
    let (start, mut hook) = (Instant::now(), Duration::ZERO);
    for _ in 0..count {
        let report = hooks.run(HookCall::new())?;
        ensure!(report.is_success() && report.runs.len() == 1, "it did not end well: {report:?}");
        hook += report.runs.iter().map(|run| run.duration).sum::<Duration>();
    }
    Ok(Run { whole: start.elapsed() / count, hook: hook / count })
}

/// Nothing is read from it, which would only make it dearer.
fn spawn(program: &Path, count: u32) -> Result<Duration> {
    let start = Instant::now();
    for _ in 0..count {
        let mut command = Command::new(program);
        command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let status = command.status().with_context(|| format!("cannot run `{}`", program.display()))?;
        ensure!(status.success(), "`{}` ended with {status}", program.display());
    }
    Ok(start.elapsed() / count)
}
