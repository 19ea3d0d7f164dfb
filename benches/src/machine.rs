//! The machine of the figures, and devices with other processors that stand for it, emulated by the user mode of qemu.

use std::{ffi::OsStr, fmt, fs, ops::Range, path::PathBuf, process::Command, thread};

use anyhow::{Context, Result};
use procfs_core::{CpuInfo, FromRead, LoadAverage, process::Stat};
use weir_host::component::{AddressClass, CompileTarget};

/// A quiet machine's load average is below this.
const QUIET: f32 = 0.5;

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
    load: f32,
    /// The priority of this process, from 19 to -20.
    nice: i64,
}

impl Machine {
    pub(crate) fn read() -> Result<Self> {
        let processors = CpuInfo::from_file("/proc/cpuinfo")?;
        Ok(Self {
            // Not every architecture names its processors there.
            processor: processors.model_name(0).unwrap_or(std::env::consts::ARCH).to_owned(),
            cores: thread::available_parallelism()?.get(),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned(),
            rustc: said(Command::new("rustc").arg("--version"))?,
            wasmtime: locked("wasmtime").context("`Cargo.lock` does not name wasmtime")?,
            commit: said(Command::new("git").args(["describe", "--always", "--dirty", "--abbrev=12"]))?,
            load: LoadAverage::from_file("/proc/loadavg")?.one,
            nice: Stat::from_file("/proc/self/stat")?.nice,
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

/// The version of a package in `Cargo.lock`.
fn locked(package: &str) -> Option<&'static str> {
    let lock = include_str!("../../Cargo.lock");
    let (_, rest) = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    rest.split('"').next()
}

fn said(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run `{program}`"))?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// The address in qemu's process where the emulated one begins. Nothing of qemu lies there, or in as many addresses
/// behind it as an emulated process can have.
const FIRST: u64 = 0x1000_0000_0000;

/// Addresses of an emulated process of 32 bits.
const BITS_32: u64 = 1 << 32;

/// Addresses of an emulated process of 64 bits: 39 bits of them, as some kernels for ARM give.
const BITS_39: u64 = 1 << 39;

/// What stands for a device's processor.
#[derive(Debug)]
pub(crate) struct Emulator {
    /// The device, as in `aarch64-unknown-linux-gnu`.
    triple: String,
    pub(crate) target: CompileTarget,
    program: PathBuf,
    arguments: Vec<String>,
    is_32_bit: bool,
}

impl Emulator {
    /// `command` is qemu with its arguments, without the emulated program.
    pub(crate) fn new(triple: &str, command: &str) -> Result<Self> {
        let mut words = command.split_whitespace().map(str::to_owned);
        let program = words.next().context("the emulator has no name")?.into();
        let target = CompileTarget::new(Some(triple), Some(AddressClass::Small))?;
        let is_32_bit = target.triple() == "pulley32";
        Ok(Self { triple: triple.to_owned(), target, program, arguments: words.collect(), is_32_bit })
    }

    /// The command that runs a program of the device.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(["-B", &format!("{FIRST:#x}")]);
        if !self.is_32_bit {
            command.args(["-R", &format!("{BITS_39:#x}")]);
        }
        command.arg(program);
        command
    }

    /// The addresses in qemu's process that the emulated one has.
    pub(crate) fn addresses(&self) -> Range<u64> {
        FIRST..FIRST + if self.is_32_bit { BITS_32 } else { BITS_39 }
    }

    /// What the record calls the emulator.
    pub(crate) fn name(&self) -> String {
        format!("for `{}`, emulated", self.triple)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_described_in_one_line() {
        let machine = Machine::read().unwrap().to_string();
        assert!(machine.contains(" cores, Linux ") && !machine.contains('\n'), "{machine}");
        assert!(locked("wasmtime").unwrap().starts_with(|c: char| c.is_ascii_digit()));
    }
}
