//! The limits that operators set: the names under which files, variables and `weir limits` know them.
//!
//! There is no other list of them. Values are numbers here, in the unit of their shape.

use std::{ops::RangeInclusive, time::Duration};

use weir_metrics::nanoseconds;

use weir_names::CpuShare;

use super::{KIB, Limits, MIB};
use crate::shape::Shape;

/// Of every timeout: what a request carries counts milliseconds in 32 bits.
pub(crate) const TIMEOUT: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(24 * 60 * 60);

const FUEL: Shape = Shape::Count(1_000..=1_000_000_000_000_000);

/// One limit.
#[derive(Debug)]
pub struct Key {
    /// As in `inbox.messages`: a dot where it stands in a table of its own.
    pub name: &'static str,
    pub shape: Shape,
    /// None: not set, which one of them can be.
    pub get: fn(&Limits) -> Option<u64>,
    pub(super) set: fn(&mut Limits, u64),
}

/// Every limit, in the order in which they are shown.
pub static KEYS: [Key; 17] = [
    Key {
        name: "memory",
        shape: Shape::Size(64 * KIB..=4096 * MIB),
        get: |limits| Some(limits.memory),
        set: |limits, value| limits.memory = value,
    },
    Key {
        name: "stack",
        shape: Shape::Size(64 * KIB..=16 * MIB),
        get: |limits| Some(limits.stack),
        set: |limits, value| limits.stack = value,
    },
    Key {
        name: "fuel-per-message",
        shape: FUEL,
        get: |limits| Some(limits.fuel_per_message),
        set: |limits, value| limits.fuel_per_message = value,
    },
    Key {
        name: "fuel-to-start",
        shape: FUEL,
        get: |limits| Some(limits.fuel_to_start),
        set: |limits, value| limits.fuel_to_start = value,
    },
    Key {
        name: "cpu-share",
        shape: Shape::Share(CpuShare::MIN.basis_points()..=CpuShare::WHOLE.basis_points()),
        get: |limits| Some(limits.cpu_share.basis_points()),
        set: |limits, value| limits.cpu_share = CpuShare::from_basis_points(value),
    },
    Key {
        name: "message-size",
        shape: Shape::Size(KIB..=64 * MIB),
        get: |limits| Some(limits.message_size),
        set: |limits, value| limits.message_size = value,
    },
    Key {
        name: "inbox.messages",
        shape: Shape::Count(1..=1_000_000),
        get: |limits| Some(limits.inbox_messages.into()),
        set: |limits, value| limits.inbox_messages = small(value),
    },
    Key {
        name: "inbox.bytes",
        shape: Shape::Size(KIB..=1024 * MIB),
        get: |limits| Some(limits.inbox_bytes),
        set: |limits, value| limits.inbox_bytes = value,
    },
    Key {
        name: "in-flight",
        shape: Shape::Count(1..=65_536),
        get: |limits| Some(limits.in_flight.into()),
        set: |limits, value| limits.in_flight = small(value),
    },
    Key {
        name: "log-rate",
        shape: Shape::Count(1..=100_000),
        get: |limits| Some(limits.log_rate.into()),
        set: |limits, value| limits.log_rate = small(value),
    },
    Key {
        name: "ready-timeout",
        shape: Shape::Time(TIMEOUT),
        get: |limits| Some(nanoseconds(limits.ready_timeout)),
        set: |limits, value| limits.ready_timeout = Duration::from_nanos(value),
    },
    Key {
        name: "request-timeout",
        shape: Shape::Time(TIMEOUT),
        get: |limits| limits.request_timeout.map(nanoseconds),
        set: |limits, value| limits.request_timeout = Some(Duration::from_nanos(value)),
    },
    Key {
        name: "stop-timeout",
        shape: Shape::Time(TIMEOUT),
        get: |limits| Some(nanoseconds(limits.stop_timeout)),
        set: |limits, value| limits.stop_timeout = Duration::from_nanos(value),
    },
    Key {
        name: "file-size",
        shape: Shape::Size(KIB..=1024 * MIB),
        get: |limits| Some(limits.file_size),
        set: |limits, value| limits.file_size = value,
    },
    Key {
        name: "code-size",
        shape: Shape::Size(64 * KIB..=4096 * MIB),
        get: |limits| Some(limits.code_size),
        set: |limits, value| limits.code_size = value,
    },
    Key {
        name: "compile-memory",
        shape: Shape::Size(64 * MIB..=1024 * 1024 * MIB),
        get: |limits| Some(limits.compile_memory),
        set: |limits, value| limits.compile_memory = value,
    },
    Key {
        name: "compile-timeout",
        shape: Shape::Time(TIMEOUT),
        get: |limits| Some(nanoseconds(limits.compile_timeout)),
        set: |limits, value| limits.compile_timeout = Duration::from_nanos(value),
    },
];

/// A value that its range keeps small.
fn small(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
