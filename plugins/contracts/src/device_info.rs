//! `device.info@1`: what the device is and how it is doing.

use serde::{Deserialize, Serialize};
use weir_sdk::{Contract, Empty, Operation};

/// The contract.
pub const CONTRACT: Contract = Contract::new("device.info@1");

/// How much memory there is.
pub const MEMORY: Operation<Empty, Memory> = CONTRACT.operation("memory");
/// How long the device has been up.
pub const UPTIME: Operation<Empty, Uptime> = CONTRACT.operation("uptime");
/// How busy it is.
pub const LOAD: Operation<Empty, Load> = CONTRACT.operation("load");
/// Which operating system it runs.
pub const OS: Operation<Empty, Os> = CONTRACT.operation("os");
/// Which processor it has.
pub const CPU: Operation<Empty, Cpu> = CONTRACT.operation("cpu");

/// Memory, in KiB, as in `/proc/meminfo`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// All of it that the kernel manages.
    pub total_kib: u64,
    /// What nothing uses.
    pub free_kib: u64,
    /// What programs can have without swapping.
    pub available_kib: u64,
    /// What buffers take.
    pub buffers_kib: u64,
    /// What the page cache takes.
    pub cached_kib: u64,
    /// All swap space.
    pub swap_total_kib: u64,
    /// Swap space that is free.
    pub swap_free_kib: u64,
}

/// Time since the device started, as in `/proc/uptime`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Uptime {
    /// Seconds since then.
    pub seconds: f64,
    /// Seconds that its processors were idle, added up.
    pub idle_seconds: f64,
}

/// How many tasks ran or wanted to run, on average, as in `/proc/loadavg`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Over the last minute.
    pub one: f64,
    /// Over the last five minutes.
    pub five: f64,
    /// Over the last fifteen minutes.
    pub fifteen: f64,
}

/// The operating system, as in `/etc/os-release`; what that leaves out is empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Os {
    /// For programs, such as `debian`.
    pub id: String,
    /// For people, such as `Debian GNU/Linux`.
    pub name: String,
    /// Its version, such as `12 (bookworm)`; if it only has a number, that.
    pub version: String,
    /// Name and version.
    pub pretty_name: String,
    /// The kernel's release, such as `6.1.0-18-amd64`.
    pub kernel: String,
}

/// The processor, as in `/proc/cpuinfo`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// What it calls itself.
    pub model: String,
    /// How many cores the kernel uses.
    pub cores: u32,
}
