//! The names of limits in files, variables and `weir limits`.
//!
//! Each entry holds everything about one limit. Values are numbers in the unit of their shape.

use std::{ops::RangeInclusive, time::Duration};

use weir_metrics::nanoseconds;
use weir_names::CpuShare;

use super::{KIB, LimitUnit, Limits, MIB};
use crate::shape::Shape;

/// Range of every timeout: a request carries milliseconds in 32 bits.
pub const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(24 * 60 * 60);

const FUEL: Shape = Shape::Count(1_000..=1_000_000_000_000_000);

/// A limit that operators set.
#[derive(Clone, Debug)]
pub struct LimitKey {
    /// As in `inbox.messages`, with a dot for a table of its own.
    pub name: &'static str,
    /// The type and range of its value.
    pub shape: Shape,
    /// The unit of its numbers.
    pub unit: LimitUnit,
    /// The measurement of its use.
    pub used: MeasuredUse,
    /// Whether it applies to hooks.
    pub in_hooks: InHooks,
    /// Gets the value. `None`: not set, possible only for `request-timeout`.
    pub get: fn(&Limits) -> Option<u64>,
    pub(super) set: fn(&mut Limits, u64),
}

/// A measurement of an extension's use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasuredUse {
    /// Bytes of its linear memories.
    Memory,
    /// Fuel of the message in hand.
    FuelPerMessage,
    /// Fuel before the first message.
    FuelToStart,
    /// Time on the worker thread in a second.
    CpuInSecond,
    /// The largest message sent or received.
    LargestMessage,
    /// Messages that wait in the inbox.
    InboxMessages,
    /// Bytes that wait in the inbox.
    InboxBytes,
    /// Requests in hand or under way, the larger number.
    Requests,
    /// Requests by HTTP under way.
    HttpRequests,
    /// Requests by HTTP in a second.
    HttpInSecond,
    /// Bytes of answers by HTTP in a second.
    HttpBytesIn,
    /// Bytes of requests by HTTP in a second.
    HttpBytesOut,
    /// Log lines in a second.
    LinesInSecond,
    /// Duration of the last start.
    LastStart,
    /// Duration of the last stop.
    LastStop,
    /// Not measured: stack depth is not counted, requests may have their own timeouts, and limits on loading do not
    /// apply to a running extension.
    Unmeasured,
}

/// Whether a limit applies to hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InHooks {
    /// It bounds each run of a hook.
    Allowed,
    /// It means nothing there. The text says why, and completes a sentence that starts with the key.
    Refused(&'static str),
}

const NO_MESSAGES: InHooks = InHooks::Refused("is for extensions: hooks have no messages");
const NO_TIMEOUTS: InHooks =
    InHooks::Refused("is for extensions: `timeout` of the hooks says how long each may take");

/// All limits, in display order.
pub static LIMIT_KEYS: [LimitKey; 23] = [
    LimitKey::MEMORY,
    LimitKey::STACK,
    LimitKey::FUEL_PER_MESSAGE,
    LimitKey::FUEL_TO_START,
    LimitKey::CPU_SHARE,
    LimitKey::MESSAGE_SIZE,
    LimitKey::INBOX_MESSAGES,
    LimitKey::INBOX_BYTES,
    LimitKey::IN_FLIGHT,
    LimitKey::HTTP_IN_FLIGHT,
    LimitKey::HTTP_RATE,
    LimitKey::HTTP_BYTES_IN,
    LimitKey::HTTP_BYTES_OUT,
    LimitKey::HTTP_HEADER_SIZE,
    LimitKey::HTTP_TIMEOUT,
    LimitKey::LOG_RATE,
    LimitKey::READY_TIMEOUT,
    LimitKey::REQUEST_TIMEOUT,
    LimitKey::STOP_TIMEOUT,
    LimitKey::FILE_SIZE,
    LimitKey::CODE_SIZE,
    LimitKey::COMPILE_MEMORY,
    LimitKey::COMPILE_TIMEOUT,
];

impl LimitKey {
    /// `memory`.
    pub const MEMORY: Self = Self {
        name: "memory",
        shape: Shape::Size(64 * KIB..=4096 * MIB),
        unit: LimitUnit::Bytes,
        used: MeasuredUse::Memory,
        in_hooks: InHooks::Allowed,
        get: |limits| Some(limits.memory),
        set: |limits, value| limits.memory = value,
    };

    /// `stack`.
    pub const STACK: Self = Self {
        name: "stack",
        shape: Shape::Size(64 * KIB..=16 * MIB),
        unit: LimitUnit::Bytes,
        used: MeasuredUse::Unmeasured,
        in_hooks: InHooks::Allowed,
        get: |limits| Some(limits.stack),
        set: |limits, value| limits.stack = value,
    };

    /// `fuel-per-message`.
    pub const FUEL_PER_MESSAGE: Self = Self {
        name: "fuel-per-message",
        shape: FUEL,
        unit: LimitUnit::Fuel,
        used: MeasuredUse::FuelPerMessage,
        in_hooks: InHooks::Refused(
            "is for messages: a run of a hook has `fuel-to-start`, from its start to its end",
        ),
        get: |limits| Some(limits.fuel_per_message),
        set: |limits, value| limits.fuel_per_message = value,
    };

    /// `fuel-to-start`.
    pub const FUEL_TO_START: Self = Self {
        name: "fuel-to-start",
        shape: FUEL,
        unit: LimitUnit::Fuel,
        used: MeasuredUse::FuelToStart,
        in_hooks: InHooks::Allowed,
        get: |limits| Some(limits.fuel_to_start),
        set: |limits, value| limits.fuel_to_start = value,
    };

    /// `cpu-share`.
    pub const CPU_SHARE: Self = Self {
        name: "cpu-share",
        shape: Shape::Share(CpuShare::MIN.basis_points()..=CpuShare::WHOLE.basis_points()),
        unit: LimitUnit::Share,
        used: MeasuredUse::CpuInSecond,
        in_hooks: InHooks::Allowed,
        get: |limits| Some(limits.cpu_share.basis_points()),
        set: |limits, value| limits.cpu_share = CpuShare::from_basis_points(value),
    };

    /// `message-size`.
    pub const MESSAGE_SIZE: Self = Self {
        name: "message-size",
        shape: Shape::Size(KIB..=64 * MIB),
        unit: LimitUnit::Bytes,
        used: MeasuredUse::LargestMessage,
        in_hooks: NO_MESSAGES,
        get: |limits| Some(limits.message_size),
        set: |limits, value| limits.message_size = value,
    };

    /// `inbox.messages`.
    pub const INBOX_MESSAGES: Self = Self {
        name: "inbox.messages",
        shape: Shape::Count(1..=1_000_000),
        unit: LimitUnit::Messages,
        used: MeasuredUse::InboxMessages,
        in_hooks: NO_MESSAGES,
        get: |limits| Some(limits.inbox_messages.into()),
        set: |limits, value| limits.inbox_messages = small(value),
    };

    /// `inbox.bytes`.
    pub const INBOX_BYTES: Self = Self {
        name: "inbox.bytes",
        shape: Shape::Size(KIB..=1024 * MIB),
        unit: LimitUnit::Bytes,
        used: MeasuredUse::InboxBytes,
        in_hooks: NO_MESSAGES,
        get: |limits| Some(limits.inbox_bytes),
        set: |limits, value| limits.inbox_bytes = value,
    };

    /// `in-flight`.
    pub const IN_FLIGHT: Self = Self {
        name: "in-flight",
        shape: Shape::Count(1..=65_536),
        unit: LimitUnit::Requests,
        used: MeasuredUse::Requests,
        in_hooks: NO_MESSAGES,
        get: |limits| Some(limits.in_flight.into()),
        set: |limits, value| limits.in_flight = small(value),
    };

    /// `http.in-flight`.
    pub const HTTP_IN_FLIGHT: Self = Self {
        name: "http.in-flight",
        shape: Shape::Count(1..=1024),
        unit: LimitUnit::Requests,
        used: MeasuredUse::HttpRequests,
        in_hooks: InHooks::Allowed,
        get: |limits| Some(limits.http_in_flight.into()),
        set: |limits, value| limits.http_in_flight = small(value),
    };

    /// `http.rate`.
    pub const HTTP_RATE: Self = Self {
        name: "http.rate",
        shape: Shape::Count(1..=100_000),
        unit: LimitUnit::RequestsPerSecond,
        used: MeasuredUse::HttpInSecond,
        in_hooks: InHooks::Allowed,
        get: |limits| Some(limits.http_rate.into()),
        set: |limits, value| limits.http_rate = small(value),
    };

    /// `http.bytes-in`.
    pub const HTTP_BYTES_IN: Self = Self {
        name: "http.bytes-in",
        shape: Shape::Size(KIB..=16 * 1024 * MIB),
        unit: LimitUnit::Bytes,
        used: MeasuredUse::HttpBytesIn,
        in_hooks: InHooks::Allowed,
        get: |limits| Some(limits.http_bytes_in),
        set: |limits, value| limits.http_bytes_in = value,
    };

    /// `http.bytes-out`.
    pub const HTTP_BYTES_OUT: Self = Self {
        name: "http.bytes-out",
        shape: Shape::Size(KIB..=16 * 1024 * MIB),
        unit: LimitUnit::Bytes,
        used: MeasuredUse::HttpBytesOut,
        in_hooks: InHooks::Allowed,
        get: |limits| Some(limits.http_bytes_out),
        set: |limits, value| limits.http_bytes_out = value,
    };

    /// `http.header-size`.
    pub const HTTP_HEADER_SIZE: Self = Self {
        name: "http.header-size",
        shape: Shape::Size(8 * KIB..=MIB),
        unit: LimitUnit::Bytes,
        used: MeasuredUse::Unmeasured,
        in_hooks: InHooks::Allowed,
        get: |limits| Some(limits.http_header_size),
        set: |limits, value| limits.http_header_size = value,
    };

    /// `http.timeout`.
    pub const HTTP_TIMEOUT: Self = Self {
        name: "http.timeout",
        shape: Shape::Time(TIMEOUT),
        unit: LimitUnit::Seconds,
        used: MeasuredUse::Unmeasured,
        in_hooks: InHooks::Allowed,
        get: |limits| Some(nanoseconds(limits.http_timeout)),
        set: |limits, value| limits.http_timeout = Duration::from_nanos(value),
    };

    /// `log-rate`.
    pub const LOG_RATE: Self = Self {
        name: "log-rate",
        shape: Shape::Count(1..=100_000),
        unit: LimitUnit::LinesPerSecond,
        used: MeasuredUse::LinesInSecond,
        in_hooks: InHooks::Refused("is for extensions: `output` of the hooks says how much each may write"),
        get: |limits| Some(limits.log_rate.into()),
        set: |limits, value| limits.log_rate = small(value),
    };

    /// `ready-timeout`.
    pub const READY_TIMEOUT: Self = Self {
        name: "ready-timeout",
        shape: Shape::Time(TIMEOUT),
        unit: LimitUnit::Seconds,
        used: MeasuredUse::LastStart,
        in_hooks: NO_TIMEOUTS,
        get: |limits| Some(nanoseconds(limits.ready_timeout)),
        set: |limits, value| limits.ready_timeout = Duration::from_nanos(value),
    };

    /// `request-timeout`.
    pub const REQUEST_TIMEOUT: Self = Self {
        name: "request-timeout",
        shape: Shape::Time(TIMEOUT),
        unit: LimitUnit::Seconds,
        used: MeasuredUse::Unmeasured,
        in_hooks: NO_TIMEOUTS,
        get: |limits| limits.request_timeout.map(nanoseconds),
        set: |limits, value| limits.request_timeout = Some(Duration::from_nanos(value)),
    };

    /// `stop-timeout`.
    pub const STOP_TIMEOUT: Self = Self {
        name: "stop-timeout",
        shape: Shape::Time(TIMEOUT),
        unit: LimitUnit::Seconds,
        used: MeasuredUse::LastStop,
        in_hooks: NO_TIMEOUTS,
        get: |limits| Some(nanoseconds(limits.stop_timeout)),
        set: |limits, value| limits.stop_timeout = Duration::from_nanos(value),
    };

    /// `file-size`.
    pub const FILE_SIZE: Self = Self {
        name: "file-size",
        shape: Shape::Size(KIB..=1024 * MIB),
        unit: LimitUnit::Bytes,
        used: MeasuredUse::Unmeasured,
        in_hooks: InHooks::Allowed,
        get: |limits| Some(limits.file_size),
        set: |limits, value| limits.file_size = value,
    };

    /// `code-size`.
    pub const CODE_SIZE: Self = Self {
        name: "code-size",
        shape: Shape::Size(64 * KIB..=4096 * MIB),
        unit: LimitUnit::Bytes,
        used: MeasuredUse::Unmeasured,
        in_hooks: InHooks::Allowed,
        get: |limits| Some(limits.code_size),
        set: |limits, value| limits.code_size = value,
    };

    /// `compile-memory`.
    pub const COMPILE_MEMORY: Self = Self {
        name: "compile-memory",
        shape: Shape::Size(64 * MIB..=1024 * 1024 * MIB),
        unit: LimitUnit::Bytes,
        used: MeasuredUse::Unmeasured,
        in_hooks: InHooks::Allowed,
        get: |limits| Some(limits.compile_memory),
        set: |limits, value| limits.compile_memory = value,
    };

    /// `compile-timeout`.
    pub const COMPILE_TIMEOUT: Self = Self {
        name: "compile-timeout",
        shape: Shape::Time(TIMEOUT),
        unit: LimitUnit::Seconds,
        used: MeasuredUse::Unmeasured,
        in_hooks: InHooks::Allowed,
        get: |limits| Some(nanoseconds(limits.compile_timeout)),
        set: |limits, value| limits.compile_timeout = Duration::from_nanos(value),
    };
}

/// A value that its range keeps small.
fn small(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
