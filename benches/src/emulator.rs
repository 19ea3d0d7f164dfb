//! Devices with other processors, emulated by the user mode of qemu.

use std::{ffi::OsStr, ops::Range, path::PathBuf, process::Command};

use anyhow::{Context, Result};
use weir_host::component::{AddressClass, CompileTarget};

/// Where in qemu's process the emulated one begins. Nothing of qemu is there, nor in what follows for both widths.
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

    /// Starts a program of the device.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(["-B", &format!("{FIRST:#x}")]);
        if !self.is_32_bit {
            command.args(["-R", &format!("{BITS_39:#x}")]);
        }
        command.arg(program);
        command
    }

    /// Where the emulated process is in qemu's.
    pub(crate) fn addresses(&self) -> Range<u64> {
        FIRST..FIRST + if self.is_32_bit { BITS_32 } else { BITS_39 }
    }

    /// What stands in the record.
    pub(crate) fn name(&self) -> String {
        format!("for `{}`, emulated", self.triple)
    }
}
