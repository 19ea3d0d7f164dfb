//! `device.info@1`: the device and its state.

use serde::{Deserialize, Serialize};
use weir_sdk::{Empty, Shape};

weir_sdk::contract! {
    /// The device and its state.
    pub const CONTRACT = "device.info@1";

    /// The device's memory.
    pub const MEMORY: fn(Empty) -> Memory = "memory", errors {
        "unavailable": "A file of the kernel cannot be read or lacks a figure. The text names it.",
    };
    /// The time since the device started.
    pub const UPTIME: fn(Empty) -> Uptime = "uptime", errors {
        "unavailable": "A file of the kernel cannot be read or lacks a figure. The text names it.",
    };
    /// The load of the device.
    pub const LOAD: fn(Empty) -> Load = "load", errors {
        "unavailable": "A file of the kernel cannot be read or lacks a figure. The text names it.",
    };
    /// The operating system.
    pub const OS: fn(Empty) -> Os = "os", errors {
        "unavailable": "A file of the system cannot be read. The text names it.",
    };
    /// The processor.
    pub const CPU: fn(Empty) -> Cpu = "cpu", errors {
        "unavailable": "A file of the kernel cannot be read or lacks a figure. The text names it.",
    };
}

/// Memory, in KiB, as in `/proc/meminfo`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Shape)]
pub struct Memory {
    /// All memory that the kernel manages.
    pub total_kib: u64,
    /// Unused memory.
    pub free_kib: u64,
    /// Memory that programs can get without swapping.
    pub available_kib: u64,
    /// Memory of buffers.
    pub buffers_kib: u64,
    /// Memory of the page cache.
    pub cached_kib: u64,
    /// All swap space.
    pub swap_total_kib: u64,
    /// Free swap space.
    pub swap_free_kib: u64,
}

/// Time since the device started, as in `/proc/uptime`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Shape)]
pub struct Uptime {
    /// Seconds since the start.
    pub seconds: f64,
    /// Idle seconds of its processors, added up.
    pub idle_seconds: f64,
}

/// Average number of tasks that ran or wanted to run, as in `/proc/loadavg`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Shape)]
pub struct Load {
    /// Over the last minute.
    pub one: f64,
    /// Over the last five minutes.
    pub five: f64,
    /// Over the last fifteen minutes.
    pub fifteen: f64,
}

/// The operating system, as in `/etc/os-release`. Missing values are empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Shape)]
pub struct Os {
    /// For programs, such as `debian`.
    pub id: String,
    /// For people, such as `Debian GNU/Linux`.
    pub name: String,
    /// Its version, such as `12 (bookworm)`, or else its version number.
    pub version: String,
    /// Name and version.
    pub pretty_name: String,
    /// The kernel's release, such as `6.1.0-18-amd64`.
    pub kernel: String,
}

/// The processor, as in `/proc/cpuinfo`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Shape)]
pub struct Cpu {
    /// The model's name.
    pub model: String,
    /// Cores that the kernel uses.
    pub cores: u32,
}
