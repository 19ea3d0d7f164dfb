//! The machine of the figures.

use std::{fmt, fs, process::Command, thread};

use anyhow::{Context, Result};

/// A quiet machine's load average is below this.
const QUIET: f64 = 0.5;

/// The state of the machine before a run, and the versions of the software.
#[derive(Debug)]
pub(crate) struct Machine {
    processor: String,
    cores: usize,
    kernel: String,
    rustc: String,
    wasmtime: &'static str,
    commit: String,
    /// Average number of running processes in the minute before.
    load: f64,
    /// The priority of this process, from 19 to -20.
    nice: String,
}

impl Machine {
    pub(crate) fn read() -> Result<Self> {
        let file = |path: &str| fs::read_to_string(path).with_context(|| format!("cannot read `{path}`"));
        let processors = file("/proc/cpuinfo")?;
        let processor = processors.lines().find_map(|line| line.strip_prefix("model name"));
        Ok(Self {
            // Not every architecture names its processors there.
            processor: processor
                .map_or(std::env::consts::ARCH, |name| name.trim_start_matches(['\t', ' ', ':']))
                .to_owned(),
            cores: thread::available_parallelism()?.get(),
            kernel: file("/proc/sys/kernel/osrelease")?.trim().to_owned(),
            rustc: said(Command::new("rustc").arg("--version"))?,
            wasmtime: locked("wasmtime").context("`Cargo.lock` does not name wasmtime")?,
            commit: said(Command::new("git").args(["describe", "--always", "--dirty", "--abbrev=12"]))?,
            load: load(&file("/proc/loadavg")?).context("`/proc/loadavg` has no average")?,
            nice: nice(&file("/proc/self/stat")?).context("`/proc/self/stat` has no priority")?.to_owned(),
        })
    }

    /// The other load that would distort the figures, if any.
    pub(crate) fn disturbance(&self) -> Option<String> {
        (self.load >= QUIET).then(|| {
            format!("the machine is not quiet: its load average is {}, and not below {QUIET}", self.load)
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { processor, cores, kernel, rustc, wasmtime, commit, load, nice } = self;
        write!(
            f,
            "{processor}, {cores} cores, Linux {kernel}, load average {load} before, nice {nice}; {rustc}, wasmtime {wasmtime}, \
             Weir at {commit}"
        )
    }
}

fn locked(package: &str) -> Option<&'static str> {
    let lock = include_str!("../../Cargo.lock");
    let (_, rest) = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    rest.split('"').next()
}

/// The average over a minute, the first field of proc_loadavg(5).
fn load(averages: &str) -> Option<f64> {
    averages.split(' ').next()?.parse().ok()
}

/// The 19th field of proc_pid_stat(5). The second, a name in brackets, may hold spaces.
fn nice(stat: &str) -> Option<&str> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(16)
}

fn said(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run `{program}`"))?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_described_in_one_line() {
        let machine = Machine::read().unwrap().to_string();
        assert!(machine.contains(" cores, Linux ") && !machine.contains('\n'), "{machine}");
        assert_eq!(load("0.08 0.03 0.05 1/467 9\n"), Some(0.08));
        assert_eq!(nice("1 (a b) S 2 3 4 5 6 7 8 9 10 11 12 13 14 15 20 -5 1 0"), Some("-5"));
        assert!(locked("wasmtime").unwrap().starts_with(|c: char| c.is_ascii_digit()));
    }
}
