//! The kernel's data on another process: `/proc/PID`, as in proc(5).

use std::{
    collections::BTreeMap,
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

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
    pub(crate) memory: Memory,
}

impl Process {
    /// Of an emulator, these addresses are the emulated process. None: all are.
    pub(crate) fn new(number: u32, addresses: Option<Range<u64>>) -> Self {
        Self { number, addresses: addresses.unwrap_or(0..u64::MAX) }
    }

    pub(crate) fn threads(&self) -> Result<BTreeMap<u32, Thread>> {
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

    pub(crate) fn memory(&self) -> Result<Memory> {
        Ok(Memory::of(&self.mappings()?))
    }

    pub(crate) fn mappings(&self) -> Result<Vec<Mapping>> {
        let mut mappings = mappings(&self.read("smaps")?).context("cannot read the mappings of a process")?;
        mappings.retain(|mapping| self.addresses.contains(&mapping.addresses.start));
        Ok(mappings)
    }

    fn read(&self, file: &str) -> Result<String> {
        let path = self.path(file);
        fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))
    }

    fn path(&self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{file}", self.number))
    }
}

impl Memory {
    pub(crate) fn private(&self) -> f64 {
        self.private_clean + self.private_dirty
    }

    pub(crate) fn of(mappings: &[Mapping]) -> Self {
        mappings.iter().fold(Self::default(), |all, mapping| all.and(&mapping.memory))
    }

    fn and(self, other: &Self) -> Self {
        Self {
            address_space: self.address_space + other.address_space,
            resident: self.resident + other.resident,
            of_files: self.of_files + other.of_files,
            private_clean: self.private_clean + other.private_clean,
            private_dirty: self.private_dirty + other.private_dirty,
            shared: self.shared + other.shared,
        }
    }

    /// Adds a line of smaps.
    fn note(&mut self, key: &str, kibibytes: f64) {
        match key {
            "Size" => self.address_space += kibibytes,
            "Rss" => {
                self.resident += kibibytes;
                self.of_files += kibibytes;
            }
            "Anonymous" => self.of_files -= kibibytes,
            "Private_Clean" => self.private_clean += kibibytes,
            "Private_Dirty" => self.private_dirty += kibibytes,
            "Shared_Clean" | "Shared_Dirty" => self.shared += kibibytes,
            _ => {}
        }
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
            // Flags are words.
            if let Some(kibibytes) = fields.next().and_then(|number| number.parse().ok()) {
                mappings.last_mut()?.memory.note(key, kibibytes);
            }
        } else {
            let address = |text| u64::from_str_radix(text, 16).ok();
            let (start, end) = first.split_once('-')?;
            mappings.push(Mapping {
                addresses: address(start)?..address(end)?,
                permissions: fields.next()?.to_owned(),
                name: fields.nth(3).unwrap_or_default().to_owned(),
                memory: Memory::default(),
            });
        }
    }
    Some(mappings)
}

fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_sees_its_own_threads_and_memory() {
        let this = Process::new(std::process::id(), None);
        let before = this.threads().unwrap();
        assert!(before.values().any(|thread| thread.switches > 0), "{before:?}");
        let memory = this.memory().unwrap();
        assert!(memory.private() <= memory.resident && memory.resident < memory.address_space, "{memory:?}");
        let mappings = this.mappings().unwrap();
        let private: f64 = mappings.iter().map(|mapping| mapping.memory.private()).sum();
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
    fn the_part_at_some_addresses_has_the_mappings_there() {
        let whole = Process::new(std::process::id(), None);
        let stack = whole.mappings().unwrap().into_iter().find(|mapping| mapping.name == "[stack]").unwrap();
        let part = Process::new(std::process::id(), Some(stack.addresses.clone()));
        let names: Vec<_> = part.mappings().unwrap().into_iter().map(|mapping| mapping.name).collect();
        assert_eq!(names, ["[stack]"]);
        assert!(part.memory().unwrap().resident < whole.memory().unwrap().resident);
    }

    #[test]
    fn memory_is_told_by_what_stands_behind_it() {
        let smaps = "7f0000-7f1000 rw-p 00000000 00:01 7  /memfd:a (deleted)\nSize: 40 kB\nRss: 16 kB\n\
                     Shared_Clean: 4 kB\nShared_Dirty: 0 kB\nPrivate_Clean: 4 kB\nPrivate_Dirty:  8 kB\n\
                     Anonymous: 6 kB\nVmFlags: rd wr\n7f1000-7f2000 ---p 00000000 00:00 0 \nSize: 4 kB\n";
        let mapping = |addresses, permissions: &str, name: &str, memory| Mapping {
            addresses,
            permissions: permissions.to_owned(),
            name: name.to_owned(),
            memory,
        };
        let of_file = Memory {
            address_space: 40.0,
            resident: 16.0,
            of_files: 10.0,
            private_clean: 4.0,
            private_dirty: 8.0,
            shared: 4.0,
        };
        let reserved = Memory { address_space: 4.0, ..Memory::default() };
        let expected = vec![
            mapping(0x7f_0000..0x7f_1000, "rw-p", "/memfd:a", of_file),
            mapping(0x7f_1000..0x7f_2000, "---p", "", reserved),
        ];
        assert_eq!(mappings(smaps), Some(expected));
        assert_eq!((of_file.private(), of_file.and(&reserved).address_space), (12.0, 44.0));
    }
}
