//! The names of limits in files, variables and `weir limits`.
//!
//! Each row of the table holds everything about one limit. Values are numbers in the unit of their shape.

use std::{ops::RangeInclusive, time::Duration};

use weir_metrics::nanoseconds;
use weir_names::CpuShare;

use super::{KIB, Limits, MIB};
use crate::{LimitName, LimitUnit, shape::Shape};

/// Range of every timeout: a request carries milliseconds in 32 bits.
pub const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(24 * 60 * 60);

const FUEL: RangeInclusive<u64> = 1_000..=1_000_000_000_000_000;
const SHARE: RangeInclusive<u64> = CpuShare::MIN.basis_points()..=CpuShare::WHOLE.basis_points();

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

impl From<LimitKey> for LimitName {
    fn from(key: LimitKey) -> Self {
        Self::new(key.name, key.unit)
    }
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

const ALLOWED: InHooks = InHooks::Allowed;
const NO_MESSAGES: InHooks = InHooks::Refused("is for extensions: hooks have no messages");
const NO_TIMEOUTS: InHooks =
    InHooks::Refused("is for extensions: `timeout` of the hooks says how long each may take");

/// Makes a constant of each row, and `LIMIT_KEYS` of all.
macro_rules! limits {
    ($(
        $key:ident $name:literal $field:ident:
            $shape:ident($range:expr), $unit:ident, $used:ident, $in_hooks:expr;
    )*) => {
        /// All limits, in display order.
        pub static LIMIT_KEYS: [LimitKey; [$($name),*].len()] = [$(LimitKey::$key),*];

        impl LimitKey {$(
            #[doc = concat!("`", $name, "`.")]
            pub const $key: Self = Self {
                name: $name,
                shape: Shape::$shape($range),
                unit: LimitUnit::$unit,
                used: MeasuredUse::$used,
                in_hooks: $in_hooks,
                get: |limits| limits.$field.number(),
                set: |limits, value| limits.$field = Number::of(value),
            };
        )*}
    };
}

limits! {
    MEMORY "memory" memory: Size(64 * KIB..=4096 * MIB), Bytes, Memory, ALLOWED;
    STACK "stack" stack: Size(64 * KIB..=16 * MIB), Bytes, Unmeasured, ALLOWED;
    FUEL_PER_MESSAGE "fuel-per-message" fuel_per_message: Count(FUEL), Fuel, FuelPerMessage,
        InHooks::Refused("is for messages: a run of a hook has `fuel-to-start`, from its start to its end");
    FUEL_TO_START "fuel-to-start" fuel_to_start: Count(FUEL), Fuel, FuelToStart, ALLOWED;
    CPU_SHARE "cpu-share" cpu_share: Share(SHARE), Share, CpuInSecond, ALLOWED;
    MESSAGE_SIZE "message-size" message_size: Size(KIB..=64 * MIB), Bytes, LargestMessage, NO_MESSAGES;
    INBOX_MESSAGES "inbox.messages" inbox_messages: Count(1..=1_000_000), Messages, InboxMessages,
        NO_MESSAGES;
    INBOX_BYTES "inbox.bytes" inbox_bytes: Size(KIB..=1024 * MIB), Bytes, InboxBytes, NO_MESSAGES;
    IN_FLIGHT "in-flight" in_flight: Count(1..=65_536), Requests, Requests, NO_MESSAGES;
    HTTP_IN_FLIGHT "http.in-flight" http_in_flight: Count(1..=1024), Requests, HttpRequests, ALLOWED;
    HTTP_RATE "http.rate" http_rate: Count(1..=100_000), RequestsPerSecond, HttpInSecond, ALLOWED;
    HTTP_BYTES_IN "http.bytes-in" http_bytes_in: Size(KIB..=16 * 1024 * MIB), Bytes, HttpBytesIn, ALLOWED;
    HTTP_BYTES_OUT "http.bytes-out" http_bytes_out: Size(KIB..=16 * 1024 * MIB), Bytes, HttpBytesOut, ALLOWED;
    HTTP_HEADER_SIZE "http.header-size" http_header_size: Size(8 * KIB..=MIB), Bytes, Unmeasured, ALLOWED;
    HTTP_TIMEOUT "http.timeout" http_timeout: Time(TIMEOUT), Seconds, Unmeasured, ALLOWED;
    HTTP_TOTAL_TIMEOUT "http.total-timeout" http_total_timeout: Time(TIMEOUT), Seconds, Unmeasured, ALLOWED;
    LOG_RATE "log-rate" log_rate: Count(1..=100_000), LinesPerSecond, LinesInSecond,
        InHooks::Refused("is for extensions: `output` of the hooks says how much each may write");
    READY_TIMEOUT "ready-timeout" ready_timeout: Time(TIMEOUT), Seconds, LastStart, NO_TIMEOUTS;
    REQUEST_TIMEOUT "request-timeout" request_timeout: Time(TIMEOUT), Seconds, Unmeasured, NO_TIMEOUTS;
    HANDLER_TIMEOUT "handler-timeout" handler_timeout: Time(TIMEOUT), Seconds, Unmeasured, NO_TIMEOUTS;
    STOP_TIMEOUT "stop-timeout" stop_timeout: Time(TIMEOUT), Seconds, LastStop, NO_TIMEOUTS;
    FILE_SIZE "file-size" file_size: Size(KIB..=1024 * MIB), Bytes, Unmeasured, ALLOWED;
    CODE_SIZE "code-size" code_size: Size(64 * KIB..=4096 * MIB), Bytes, Unmeasured, ALLOWED;
    COMPILE_MEMORY "compile-memory" compile_memory: Size(64 * MIB..=1024 * 1024 * MIB), Bytes, Unmeasured,
        ALLOWED;
    COMPILE_TIMEOUT "compile-timeout" compile_timeout: Time(TIMEOUT), Seconds, Unmeasured, ALLOWED;
}

/// A limit's value as a number in the unit of its shape.
pub(crate) trait Number {
    /// `None`: not set.
    fn number(&self) -> Option<u64>;
    /// A number over the type's range becomes its largest value.
    fn of(number: u64) -> Self;
}

impl Number for u64 {
    fn number(&self) -> Option<u64> {
        Some(*self)
    }

    fn of(number: u64) -> Self {
        number
    }
}

impl Number for u32 {
    fn number(&self) -> Option<u64> {
        Some((*self).into())
    }

    fn of(number: u64) -> Self {
        Self::try_from(number).unwrap_or(Self::MAX)
    }
}

impl Number for CpuShare {
    fn number(&self) -> Option<u64> {
        Some(self.basis_points())
    }

    fn of(number: u64) -> Self {
        Self::from_basis_points(number)
    }
}

impl Number for Duration {
    fn number(&self) -> Option<u64> {
        Some(nanoseconds(*self))
    }

    fn of(number: u64) -> Self {
        Self::from_nanos(number)
    }
}

impl Number for Option<Duration> {
    fn number(&self) -> Option<u64> {
        self.map(nanoseconds)
    }

    fn of(number: u64) -> Self {
        Some(Duration::from_nanos(number))
    }
}
