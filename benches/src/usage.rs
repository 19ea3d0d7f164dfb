//! Processor time and memory of this process.

use std::{fs, time::Duration};

use anyhow::{Context, Result};
use rustix::{
    param::clock_ticks_per_second,
    time::{ClockId, clock_gettime},
};

/// Processor time of the calling thread: to the nanosecond, where `/proc` counts ticks.
pub(crate) fn of_this_thread() -> Duration {
    // This clock does not fail and is never negative.
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

pub(crate) fn of_all_threads() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap_or_default()
}

/// Processor time of this process, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Times {
    pub(crate) user: f64,
    pub(crate) system: f64,
}

/// To the tick, a hundredth of a second.
pub(crate) fn of_this_process() -> Result<Times> {
    let stat = fs::read_to_string("/proc/self/stat").context("cannot read `/proc/self/stat`")?;
    times(&stat, f64::from(u32::try_from(clock_ticks_per_second())?))
        .context("`/proc/self/stat` has no times")
}

/// The 14th and the 15th field of proc_pid_stat(5). The second, a name in brackets, may hold spaces.
fn times(stat: &str, ticks_per_second: f64) -> Option<Times> {
    let mut ticks = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut seconds = || Some(f64::from(ticks.next()?.parse::<u32>().ok()?) / ticks_per_second);
    Some(Times { user: seconds()?, system: seconds()? })
}

/// Resident memory of this process, in MiB.
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
    fn the_time_of_a_process_is_its_own_and_the_kernel_s() {
        let stat = "1 (a b) c) S 2 3 4 5 6 7 8 9 10 11 250 50 14 15 20 0 1 0";
        assert_eq!(times(stat, 100.0), Some(Times { user: 2.5, system: 0.5 }));
        assert!(of_this_process().is_ok());
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
