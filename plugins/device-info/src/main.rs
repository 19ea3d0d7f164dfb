//! Says what the device is and how it is doing: the contract `device.info@1`.
//!
//! Reads the files of the kernel and of the operating system each time it is asked, and keeps nothing.
//! The operator grants, for reading only, `/proc` and the directory where `os-release` is: `/etc` or,
//! where that one is a link out of `/etc`, `/usr/lib`, whose file is then the one.

use std::{path::PathBuf, process::ExitCode};

use weir_contracts::device_info::{self, Cpu, Load, Memory, Os, Uptime};
use weir_sdk::{Context, Dir, Empty, Extension};

use self::read::{ReadError, parse, read};

mod os_release;
mod proc;
mod read;

weir_sdk::manifest! {
    id: "device-info",
    fulfills: &[device_info::CONTRACT],
    dirs: &[Dir::read_only("/proc"), Dir::read_only("/etc"), Dir::read_only("/usr/lib")],
}

fn main() -> ExitCode {
    extension("/").run()
}

fn extension(root: impl Into<PathBuf>) -> Extension<DeviceInfo> {
    Extension::new(MANIFEST, DeviceInfo { root: root.into() })
        .on(device_info::MEMORY, async |device: &DeviceInfo, _: &Context, _: Empty| Ok(device.memory()?))
        .on(device_info::UPTIME, async |device: &DeviceInfo, _: &Context, _: Empty| Ok(device.uptime()?))
        .on(device_info::LOAD, async |device: &DeviceInfo, _: &Context, _: Empty| Ok(device.load()?))
        .on(device_info::OS, async |device: &DeviceInfo, _: &Context, _: Empty| Ok(device.os()?))
        .on(device_info::CPU, async |device: &DeviceInfo, _: &Context, _: Empty| Ok(device.cpu()?))
}

struct DeviceInfo {
    /// Under which `proc`, `etc` and `usr/lib` are.
    root: PathBuf,
}

impl DeviceInfo {
    fn memory(&self) -> Result<Memory, ReadError> {
        parse(&self.root.join("proc/meminfo"), proc::memory)
    }

    fn uptime(&self) -> Result<Uptime, ReadError> {
        parse(&self.root.join("proc/uptime"), proc::uptime)
    }

    fn load(&self) -> Result<Load, ReadError> {
        parse(&self.root.join("proc/loadavg"), proc::load)
    }

    fn cpu(&self) -> Result<Cpu, ReadError> {
        parse(&self.root.join("proc/cpuinfo"), proc::cpu)
    }

    fn os(&self) -> Result<Os, ReadError> {
        let kernel = read(&self.root.join("proc/sys/kernel/osrelease"))?;
        // As os-release(5) has it, except that it also falls back when the first file is there and out
        // of reach: it often is a link into the directory of the second.
        let release = read(&self.root.join("etc/os-release"))
            .or_else(|_| read(&self.root.join("usr/lib/os-release")))?;
        Ok(os_release::os(&release, kernel.trim()))
    }
}

#[cfg(test)]
mod tests;
