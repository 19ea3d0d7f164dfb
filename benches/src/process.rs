//! What the kernel says of processes (`/proc/PID`, as in proc(5)), and of the processor time of this one.

use std::{collections::BTreeMap, fs, ops::Range, time::Duration};

use anyhow::{Context, Result};
use procfs_core::{
    FromRead,
    process::{MemoryMap, MemoryMaps, Stat, Status},
};
use rustix::time::{ClockId, clock_gettime};

/// Ticks of a second, on every processor that Weir runs on.
pub(crate) const TICKS: f64 = 100.0;

/// A process, or the part of it at some addresses.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    number: u32,
    addresses: Range<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Thread {
    pub(crate) name: String,
    /// Processor time in user and system mode, in hundredths of a second.
    pub(crate) ticks: u32,
    /// Voluntary and involuntary context switches.
    pub(crate) switches: u32,
}

/// The memory of a process, or of a part of it, in KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Memory {
    pub(crate) address_space: f64,
    pub(crate) resident: f64,
    /// Resident pages of files, shared or not.
    pub(crate) of_files: f64,
    /// Unshared pages, unchanged from a file.
    pub(crate) private_clean: f64,
    /// Unshared pages that were written.
    pub(crate) private_dirty: f64,
    pub(crate) shared: f64,
}

impl Process {
    /// A process, or of an emulator's process the emulated one, which has these addresses.
    pub(crate) fn new(number: u32, addresses: Option<Range<u64>>) -> Self {
        Self { number, addresses: addresses.unwrap_or(0..u64::MAX) }
    }

    pub(crate) fn threads(&self) -> Result<BTreeMap<u32, Thread>> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.number));
        let threads = tasks.context("cannot read the threads of a process")?.map(|task| {
            let path = task?.path();
            let [status, stat] = ["status", "stat"].map(|file| path.join(file));
            let (Ok(status), Ok(stat)) = (Status::from_file(status), Stat::from_file(stat)) else {
                // The thread has ended by now.
                return Ok(None);
            };
            let switches = status.voluntary_ctxt_switches.zip(status.nonvoluntary_ctxt_switches);
            let (waits, preemptions) = switches.context("a thread has no context switches")?;
            let thread = Thread {
                name: status.name,
                ticks: u32::try_from(stat.utime + stat.stime)?,
                switches: u32::try_from(waits + preemptions)?,
            };
            Ok(Some((u32::try_from(stat.pid)?, thread)))
        });
        threads.filter_map(Result::transpose).collect()
    }

    /// Processor time so far, of its own and in the kernel: to the tick.
    pub(crate) fn used(&self) -> Result<Duration> {
        let stat = Stat::from_file(format!("/proc/{}/stat", self.number));
        let times = times(&stat.context("cannot read the processor time of a process")?);
        Ok(Duration::from_secs_f64(times.iter().sum()))
    }

    pub(crate) fn memory(&self) -> Result<Memory> {
        Ok(Memory::of(&self.mappings()?))
    }

    pub(crate) fn mappings(&self) -> Result<Vec<MemoryMap>> {
        let mappings = MemoryMaps::from_file(format!("/proc/{}/smaps", self.number));
        let mut mappings = mappings.context("cannot read the mappings of a process")?.0;
        mappings.retain(|mapping| self.addresses.contains(&mapping.address.0));
        Ok(mappings)
    }
}

impl Memory {
    pub(crate) fn private(&self) -> f64 {
        self.private_clean + self.private_dirty
    }

    pub(crate) fn of<'a>(mappings: impl IntoIterator<Item = &'a MemoryMap>) -> Self {
        let mut all = Self::default();
        for mapping in mappings {
            let of = |key| mapping.extension.map.get(key).map_or(0.0, |bytes| *bytes as f64 / 1024.0);
            all.address_space += of("Size");
            all.resident += of("Rss");
            all.of_files += of("Rss") - of("Anonymous");
            all.private_clean += of("Private_Clean");
            all.private_dirty += of("Private_Dirty");
            all.shared += of("Shared_Clean") + of("Shared_Dirty");
        }
        all
    }
}

/// Processor time of the calling thread: to the nanosecond, where `/proc` counts ticks.
pub(crate) fn of_this_thread() -> Duration {
    // This clock does not fail and is never negative.
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// Processor time of this process so far, to the nanosecond.
pub(crate) fn of_all_threads() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap_or_default()
}

/// Seconds of the processor that this process has spent, of its own and in the kernel: to the tick.
pub(crate) fn user_and_system() -> Result<[f64; 2]> {
    Ok(times(&Stat::from_file("/proc/self/stat")?))
}

fn times(stat: &Stat) -> [f64; 2] {
    [stat.utime, stat.stime].map(|ticks| ticks as f64 / TICKS)
}

/// Resident memory of this process, in MiB.
pub(crate) fn resident() -> Result<f64> {
    let status = Status::from_file("/proc/self/status")?;
    Ok(status.vmrss.context("`/proc/self/status` has no `VmRSS`")? as f64 / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use procfs_core::process::MMapPath;

    #[test]
    fn a_process_sees_its_own_threads_and_memory() {
        let this = Process::new(std::process::id(), None);
        let before = this.threads().unwrap();
        assert!(before.values().any(|thread| thread.switches > 0), "{before:?}");
        let memory = this.memory().unwrap();
        assert!(memory.private() <= memory.resident && memory.resident < memory.address_space, "{memory:?}");
        assert!(memory.private() > 0.0, "{memory:?}");
        assert!(resident().unwrap() > 1.0 && user_and_system().is_ok());
    }

    #[test]
    fn the_time_of_a_process_is_its_own_and_the_kernels() {
        let stat = "1 (a b) c) S 2 3 4 5 6 7 8 9 10 11 250 50 14 15 20 0 1 0 22 23 24 25 26 27 28 29 30 31 32 33 34 35 \
                    36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52\n";
        assert_eq!(times(&Stat::from_read(stat.as_bytes()).unwrap()), [2.5, 0.5]);
    }

    #[test]
    fn the_part_at_some_addresses_has_the_mappings_there() {
        let whole = Process::new(std::process::id(), None);
        let mut mappings = whole.mappings().unwrap().into_iter();
        let (first, end) = mappings.find(|mapping| mapping.pathname == MMapPath::Stack).unwrap().address;
        let part = Process::new(std::process::id(), Some(first..end));
        assert_eq!(part.mappings().unwrap().len(), 1);
        assert!(part.memory().unwrap().resident < whole.memory().unwrap().resident);
    }

    #[test]
    fn memory_is_told_by_what_stands_behind_it() {
        let smaps = "7f0000-7f1000 rw-p 00000000 00:01 7  /memfd:a (deleted)\nSize: 40 kB\nRss: 16 kB\n\
                     Shared_Clean: 4 kB\nShared_Dirty: 0 kB\nPrivate_Clean: 4 kB\nPrivate_Dirty:  8 kB\n\
                     Anonymous: 6 kB\nVmFlags: rd wr\n7f1000-7f2000 ---p 00000000 00:00 0 \nSize: 4 kB\n";
        let memory = Memory::of(&MemoryMaps::from_read(smaps.as_bytes()).unwrap().0);
        let expected = Memory {
            address_space: 44.0,
            resident: 16.0,
            of_files: 10.0,
            private_clean: 4.0,
            private_dirty: 8.0,
            shared: 4.0,
        };
        assert_eq!((memory, memory.private()), (expected, 12.0));
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
