//! Describes the device and its state: the contract `device.info@1`.
//!
//! It reads the files of the kernel and of the operating system for each request, and keeps nothing. The
//! operator grants, read-only, `/proc` and the directory of `os-release`: `/etc`, or `/usr/lib` if the file
//! in `/etc` is a link there.

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
    /// The directory of `proc`, `etc` and `usr/lib`.
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
        // os-release(5) reads the second file only if the first is missing. Here it is also read if the first is out of
        // reach, which is often a link into the directory of the second.
        let release = read(&self.root.join("etc/os-release"))
            .or_else(|_| read(&self.root.join("usr/lib/os-release")))?;
        Ok(os_release::os(&release, kernel.trim()))
    }
}

#[cfg(test)]
mod tests;
