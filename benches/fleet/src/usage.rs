//! What a process takes, by the kernel's account.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};

/// Processor time of this process.
pub(crate) fn own() -> Duration {
    // This clock does not fail and is never negative.
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap_or_default()
}

/// Processor time of a process, of the threads that it has now.
pub(crate) fn processor(process: u32) -> Result<Duration> {
    let mut nanoseconds = 0;
    for thread in threads(process)? {
        let text = fs::read_to_string(thread.join("schedstat")).context("cannot read `schedstat`")?;
        nanoseconds += text.split(' ').next().context("an empty `schedstat`")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// How often its threads have waited and woken.
pub(crate) fn wakeups(process: u32) -> Result<f64> {
    let mut switches = 0.0;
    for thread in threads(process)? {
        let status = fs::read_to_string(thread.join("status")).context("cannot read `status`")?;
        switches += value(&status, "voluntary_ctxt_switches:")?;
    }
    Ok(switches)
}

/// Private memory, in KiB.
pub(crate) fn private(process: u32) -> Result<f64> {
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup"))?;
    Ok(value(&rollup, "Private_Clean:")? + value(&rollup, "Private_Dirty:")?)
}

fn threads(process: u32) -> Result<Vec<PathBuf>> {
    let folder = format!("/proc/{process}/task");
    let entries = fs::read_dir(Path::new(&folder)).with_context(|| format!("cannot read `{folder}`"))?;
    Ok(entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?)
}

fn value(text: &str, key: &str) -> Result<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.with_context(|| format!("the kernel says no `{key}`"))?.parse()?)
}
