//! An idle Main costs nothing.

use std::{collections::BTreeMap, fs, thread, time::Duration};

use anyhow::{Context, Result, ensure};

/// Time after the last call until all is over: the last deadline, the last save of an extension, the threads of
/// the blocking pool, which wait 10 s for more work, and the gateway's look for old tickets, after 30 s.
const SETTLING: Duration = Duration::from_secs(32);

const WATCHED: Duration = Duration::from_secs(10);

/// Waits until the process is idle and then watches it: no thread may wake up, or use a tick of the
/// processor.
#[expect(clippy::disallowed_methods, reason = "that nothing happens has no event to wait for")]
pub(super) fn check(process: u32) -> Result<()> {
    thread::sleep(SETTLING);
    let before = threads(process)?;
    thread::sleep(WATCHED);
    let after = threads(process)?;
    ensure!(before == after, "idle for {WATCHED:?}, and threads have run: {before:?}, then {after:?}");
    println!("\nIdle for {WATCHED:?}, {} threads made no context switch and used no tick.", after.len());
    Ok(())
}

/// For each thread: name, voluntary context switches, and ticks in user and system mode. Involuntary switches
/// are the doing of other processes.
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
