//! What this process takes of its machine.

use std::{fs, time::Duration};

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};

/// Processor time of the thread that asks, since it began: to the nanosecond, where `/proc` counts ticks.
pub(crate) fn of_this_thread() -> Duration {
    // That clock does not fail and is never negative.
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// Mebibytes of this process that are in memory.
pub(crate) fn resident() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status").context("cannot read `/proc/self/status`")?;
    mebibytes(&status).context("`/proc/self/status` has no `VmRSS`")
}

fn mebibytes(status: &str) -> Option<f64> {
    let size = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u32 = size.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(f64::from(kibibytes) / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_resident_is_read_in_mebibytes() {
        assert_eq!(mebibytes("VmHWM:\t    4096 kB\nVmRSS:\t    1536 kB\n"), Some(1.5));
        assert!(resident().unwrap() > 1.0);
    }

    #[test]
    fn a_thread_counts_its_own_time_alone() {
        let busy = || {
            let before = of_this_thread();
            while of_this_thread() < before + Duration::from_millis(5) {}
        };
        let before = of_this_thread();
        std::thread::spawn(busy).join().unwrap();
        assert!(of_this_thread() < before + Duration::from_millis(5));
    }
}
