//! The kernel's data on another process: `/proc/PID`, as in proc(5).

use std::{
    collections::BTreeMap,
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Process(u32);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Thread {
    pub(crate) name: String,
    /// Processor time in user and system mode, in hundredths of a second.
    pub(crate) ticks: u32,
    /// Voluntary and involuntary context switches.
    pub(crate) switches: u32,
}

/// The memory of a process, in KiB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Memory {
    pub(crate) address_space: f64,
    pub(crate) resident: f64,
    /// Resident pages of files, shared or not.
    pub(crate) of_files: f64,
    /// Unshared pages, unchanged from a file.
    pub(crate) private_clean: f64,
    /// Unshared pages without a file.
    pub(crate) private_dirty: f64,
    pub(crate) shared: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mapping {
    /// Its first byte, and the one after its last.
    pub(crate) addresses: Range<u64>,
    /// As in `rw-p`.
    pub(crate) permissions: String,
    /// The file, or the kernel's name for the mapping; else empty.
    pub(crate) name: String,
    /// Unshared KiB.
    pub(crate) private: f64,
}

impl Process {
    pub(crate) fn new(number: u32) -> Self {
        Self(number)
    }

    pub(crate) fn threads(self) -> Result<BTreeMap<u32, Thread>> {
        let mut threads = BTreeMap::new();
        for task in fs::read_dir(self.path("task")).context("cannot read the threads of a process")? {
            let path = task?.path();
            let number =
                path.file_name().and_then(|name| name.to_str()?.parse().ok()).context("not a thread")?;
            // It can have ended by now.
            if let Some(thread) = thread(&path) {
                threads.insert(number, thread);
            }
        }
        Ok(threads)
    }

    pub(crate) fn memory(self) -> Result<Memory> {
        let (status, rollup) = (self.read("status")?, self.read("smaps_rollup")?);
        let of =
            |text: &str, key| kibibytes(text, key).with_context(|| format!("the kernel says no `{key}`"));
        Ok(Memory {
            address_space: of(&status, "VmSize")?,
            resident: of(&status, "VmRSS")?,
            of_files: of(&status, "RssFile")? + of(&status, "RssShmem")?,
            private_clean: of(&rollup, "Private_Clean")?,
            private_dirty: of(&rollup, "Private_Dirty")?,
            shared: of(&rollup, "Shared_Clean")? + of(&rollup, "Shared_Dirty")?,
        })
    }

    pub(crate) fn mappings(self) -> Result<Vec<Mapping>> {
        mappings(&self.read("smaps")?).context("cannot read the mappings of a process")
    }

    fn read(self, file: &str) -> Result<String> {
        let path = self.path(file);
        fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))
    }

    fn path(self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{file}", self.0))
    }
}

impl Memory {
    pub(crate) fn private(&self) -> f64 {
        self.private_clean + self.private_dirty
    }
}

fn thread(path: &Path) -> Option<Thread> {
    let [status, stat] = ["status", "stat"].map(|file| fs::read_to_string(path.join(file)).ok());
    parse_thread(&status?, &stat?)
}

fn parse_thread(status: &str, stat: &str) -> Option<Thread> {
    let count = |key| value(status, key)?.parse::<u32>().ok();
    // After the name, which is in brackets and can hold anything, `utime` and `stime` are the 12th and 13th.
    let mut ticks = stat.rsplit_once(')')?.1.split_whitespace().skip(11).map(str::parse::<u32>);
    Some(Thread {
        name: value(status, "Name")?.to_owned(),
        ticks: ticks.next()?.ok()? + ticks.next()?.ok()?,
        switches: count("voluntary_ctxt_switches")? + count("nonvoluntary_ctxt_switches")?,
    })
}

/// Each starts with addresses, permissions, offset, device, inode and name, followed by lines of values.
fn mappings(smaps: &str) -> Option<Vec<Mapping>> {
    let mut mappings: Vec<Mapping> = Vec::new();
    for line in smaps.lines() {
        let mut fields = line.split_whitespace();
        let first = fields.next()?;
        if let Some(key) = first.strip_suffix(':') {
            let mapping = mappings.last_mut()?;
            if matches!(key, "Private_Clean" | "Private_Dirty") {
                mapping.private += fields.next()?.parse::<f64>().ok()?;
            }
        } else {
            let address = |text| u64::from_str_radix(text, 16).ok();
            let (start, end) = first.split_once('-')?;
            mappings.push(Mapping {
                addresses: address(start)?..address(end)?,
                permissions: fields.next()?.to_owned(),
                name: fields.nth(3).unwrap_or_default().to_owned(),
                private: 0.0,
            });
        }
    }
    Some(mappings)
}

fn kibibytes(text: &str, key: &str) -> Option<f64> {
    value(text, key)?.strip_suffix("kB")?.trim().parse().ok()
}

fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_sees_its_own_threads_and_memory() {
        let this = Process::new(std::process::id());
        let before = this.threads().unwrap();
        assert!(before.values().any(|thread| thread.switches > 0), "{before:?}");
        let memory = this.memory().unwrap();
        assert!(memory.private() <= memory.resident && memory.resident < memory.address_space, "{memory:?}");
        let mappings = this.mappings().unwrap();
        let private: f64 = mappings.iter().map(|mapping| mapping.private).sum();
        assert!(mappings.iter().any(|mapping| mapping.name == "[stack]") && private > 0.0, "{mappings:?}");
    }

    #[test]
    fn a_threads_name_can_hold_anything() {
        let status = "Name:\ta) b\nvoluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t4\n";
        let stat = "1 (a) b) S 2 3 4 5 6 7 8 9 10 11 20 30 14 15";
        let thread = Thread { name: "a) b".to_owned(), ticks: 50, switches: 7 };
        assert_eq!(parse_thread(status, stat), Some(thread));
    }

    #[test]
    fn private_pages_of_a_mapping_are_clean_or_dirty() {
        let smaps = "7f0000-7f1000 rw-p 00000000 00:01 7  /memfd:a (deleted)\nSize:   4 kB\nPrivate_Clean: 4 kB\n\
                     Private_Dirty:  8 kB\nVmFlags: rd wr\n7f1000-7f2000 ---p 00000000 00:00 0 \nSize: 4 kB\n";
        let [first, second] =
            [(0x7f_0000..0x7f_1000, "rw-p", "/memfd:a", 12.0), (0x7f_1000..0x7f_2000, "---p", "", 0.0)].map(
                |(addresses, permissions, name, private)| Mapping {
                    addresses,
                    permissions: permissions.to_owned(),
                    name: name.to_owned(),
                    private,
                },
            );
        assert_eq!(mappings(smaps), Some(vec![first, second]));
    }
}
