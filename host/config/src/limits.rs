//! The limits of an extension: built-in classes, and rules between values.
//!
//! Knows nothing of files. `key.rs` has names and ranges, `fixed.rs` the limits that no operator sets.

mod fixed;
mod key;
mod source;

use std::time::Duration;

pub(super) use self::key::{CLASS, limits};
use self::source::Sources;
pub use self::{
    fixed::{FixedLimits, INTERPRETED},
    key::{InHooks, LIMIT_KEYS, LimitKey, MeasuredUse, Number, TIMEOUT, class, limits_of_hooks},
    source::{LimitSource, source},
};
use weir_names::CpuShare;

use super::{key::Contradiction, shape::bytes};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// Ten times as long as a server may be silent. The same in each class: it hangs on what a handler waits for, not on
/// what the extension may use.
const HANDLER_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The built-in classes. An operator's classes inherit from them and cannot redefine them.
pub(super) const BUILT_IN: [&str; 3] = ["min", "medium", "max"];

/// The limits of an extension. Start from a built-in class and change it; the default is [`Limits::medium`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The name of the class, for people.
    pub class: String,
    /// Linear memory in bytes, over all memories: 64 KiB to 4 GiB.
    pub memory: u64,
    /// Stack in bytes: 64 KiB to 16 MiB. Host functions have [`FixedLimits::host_stack`] on top.
    pub stack: u64,
    /// Fuel for each delivered message: 1,000 to 10^15, and at least `message_size`. An instruction and a byte of a
    /// bulk operation each take about one unit.
    pub fuel_per_message: u64,
    /// Fuel from the start to the first message: 1,000 to 10^15.
    pub fuel_to_start: u64,
    /// Share of the worker thread's time, measured over seconds. An extension over its share is delayed.
    pub cpu_share: CpuShare,
    /// Payload of a message, in bytes, sent or received: 1 KiB to 64 MiB, and at most `memory` and `inbox_bytes`.
    pub message_size: u64,
    /// Waiting messages of each kind: 1 to 1,000,000.
    pub inbox_messages: u32,
    /// Waiting bytes, once for requests and once for replies and events: 1 KiB to 1 GiB.
    pub inbox_bytes: u64,
    /// Received requests without an answer, and asynchronous requests without a received reply: each 1 to 65,536.
    pub in_flight: u32,
    /// Requests by HTTP under way, until their answers are read: 1 to 1,024.
    pub http_in_flight: u32,
    /// Requests by HTTP per second, with bursts of as many: 1 to 100,000. Further ones wait.
    pub http_rate: u32,
    /// Bytes of answers by HTTP per second, with bursts of as many: 1 KiB to 16 GiB. Further ones wait.
    pub http_bytes_in: u64,
    /// The same for bytes of requests.
    pub http_bytes_out: u64,
    /// Bytes of all headers of a request, or of an answer: 8 KiB to 1 MiB.
    pub http_header_size: u64,
    /// Time to connect, until an answer begins, and between two parts of it: 1 ms to 1 day, each.
    pub http_timeout: Duration,
    /// Time of a request by HTTP in all, from its beginning to the last byte of the answer: 1 ms to 1 day.
    pub http_total_timeout: Duration,
    /// Log lines per second, with bursts of ten times as many: 1 to 100,000.
    pub log_rate: u32,
    /// Time from the start until ready: 1 ms to 1 day.
    pub ready_timeout: Duration,
    /// Timeout of requests to its contracts if the call sets none: 1 ms to 1 day. `None`:
    /// [`MainConfig::request_timeout`](super::MainConfig::request_timeout).
    pub request_timeout: Option<Duration>,
    /// Time for an event or a job in hand: 1 ms to 1 day. Then the instance is ended; at half of it Main warns.
    pub handler_timeout: Duration,
    /// Time from a stop to the end: 1 ms to 1 day.
    pub stop_timeout: Duration,
    /// Size of the component's file in bytes: 1 KiB to 1 GiB. A larger file is not read. `code_size` bounds
    /// artifacts.
    pub file_size: u64,
    /// Size of the compiled code in bytes: 64 KiB to 4 GiB. Each byte of the file that declares something (a type, an
    /// import, a name) counts as 32. Main holds the code while it is in use, and twice for a moment.
    pub code_size: u64,
    /// Address space of the compiling process, in bytes: 64 MiB to 1 TiB.
    pub compile_memory: u64,
    /// Time for compiling: 1 ms to 1 day.
    pub compile_timeout: Duration,
    fixed: &'static FixedLimits,
    sources: Sources,
}

impl Limits {
    /// The class `min`: 4 MiB of memory, messages of 64 KiB, a tenth of the worker thread.
    #[must_use]
    pub fn min() -> Self {
        Self {
            class: "min".to_owned(),
            memory: 4 * MIB,
            stack: 512 * KIB,
            fuel_per_message: 50_000_000,
            fuel_to_start: 500_000_000,
            cpu_share: CpuShare::percent(10),
            message_size: 64 * KIB,
            inbox_messages: 64,
            inbox_bytes: 256 * KIB,
            in_flight: 64,
            http_in_flight: 4,
            http_rate: 10,
            http_bytes_in: 256 * KIB,
            http_bytes_out: 64 * KIB,
            http_header_size: 16 * KIB,
            http_timeout: Duration::from_secs(30),
            http_total_timeout: Duration::from_secs(10 * 60),
            log_rate: 10,
            ready_timeout: Duration::from_secs(5),
            request_timeout: None,
            handler_timeout: HANDLER_TIMEOUT,
            stop_timeout: Duration::from_secs(2),
            file_size: 4 * MIB,
            code_size: 16 * MIB,
            compile_memory: 512 * MIB,
            compile_timeout: Duration::from_secs(60),
            fixed: &FixedLimits::MIN,
            sources: Sources::default(),
        }
    }

    /// The class `medium`: 16 MiB of memory, messages of 1 MiB, half of the worker thread.
    #[must_use]
    pub fn medium() -> Self {
        Self {
            class: "medium".to_owned(),
            memory: 16 * MIB,
            stack: MIB,
            fuel_per_message: 500_000_000,
            fuel_to_start: 5_000_000_000,
            cpu_share: CpuShare::percent(50),
            message_size: MIB,
            inbox_messages: 256,
            inbox_bytes: MIB,
            in_flight: 1024,
            http_in_flight: 16,
            http_rate: 100,
            http_bytes_in: 4 * MIB,
            http_bytes_out: MIB,
            http_header_size: 32 * KIB,
            http_timeout: Duration::from_secs(30),
            http_total_timeout: Duration::from_secs(10 * 60),
            log_rate: 100,
            ready_timeout: Duration::from_secs(10),
            request_timeout: None,
            handler_timeout: HANDLER_TIMEOUT,
            stop_timeout: Duration::from_secs(5),
            file_size: 16 * MIB,
            code_size: 64 * MIB,
            compile_memory: 1024 * MIB,
            compile_timeout: Duration::from_secs(120),
            fixed: &FixedLimits::MEDIUM,
            sources: Sources::default(),
        }
    }

    /// The class `max`: 64 MiB of memory, messages of 8 MiB, all of the worker thread.
    #[must_use]
    pub fn max() -> Self {
        Self {
            class: "max".to_owned(),
            memory: 64 * MIB,
            stack: 2 * MIB,
            fuel_per_message: 5_000_000_000,
            fuel_to_start: 50_000_000_000,
            cpu_share: CpuShare::percent(100),
            message_size: 8 * MIB,
            inbox_messages: 1024,
            inbox_bytes: 16 * MIB,
            in_flight: 4096,
            http_in_flight: 128,
            http_rate: 1000,
            http_bytes_in: 64 * MIB,
            http_bytes_out: 16 * MIB,
            http_header_size: 64 * KIB,
            http_timeout: Duration::from_secs(30),
            http_total_timeout: Duration::from_secs(10 * 60),
            log_rate: 1000,
            ready_timeout: Duration::from_secs(30),
            request_timeout: None,
            handler_timeout: HANDLER_TIMEOUT,
            stop_timeout: Duration::from_secs(10),
            file_size: 64 * MIB,
            code_size: 512 * MIB,
            compile_memory: 4096 * MIB,
            compile_timeout: Duration::from_secs(300),
            fixed: &FixedLimits::MAX,
            sources: Sources::default(),
        }
    }

    /// A built-in class by its name.
    #[must_use]
    pub fn built_in(name: &str) -> Option<Self> {
        match name {
            "min" => Some(Self::min()),
            "medium" => Some(Self::medium()),
            "max" => Some(Self::max()),
            _ => None,
        }
    }

    /// The bounds that come with the built-in class. They cannot be set.
    #[must_use]
    pub fn fixed(&self) -> &'static FixedLimits {
        self.fixed
    }

    /// Bytes that the extension can pass to the host in one call: `message_size` and 64 KiB. More is an error where the
    /// call can have one.
    #[must_use]
    pub fn transfer(&self) -> u64 {
        self.message_size.saturating_add(64 * KIB)
    }

    pub(super) fn set(&mut self, key: &'static LimitKey, value: u64, source: LimitSource) {
        (key.set)(self, value);
        self.sources.note(key, value, source);
    }

    /// The source of a limit's value.
    pub fn source(&self, key: &'static LimitKey) -> LimitSource {
        self.sources.of(key, self)
    }

    /// The same for a running instance, as if a program had set them. Bounds on loading have their defaults.
    pub(super) fn of_an_instance(&self) -> Self {
        let Self { file_size, code_size, compile_memory, compile_timeout, .. } = Self::default();
        let (class, sources) = (String::new(), Sources::default());
        Self { class, sources, file_size, code_size, compile_memory, compile_timeout, ..self.clone() }
    }

    /// Keys with values out of range, and what they must be. For limits made in Rust: files are checked as they are
    /// read.
    #[must_use]
    pub fn out_of_range(&self) -> Vec<(&'static LimitKey, String)> {
        let is_wrong = |key: &&LimitKey| (key.get)(self).is_some_and(|value| !key.shape.has(value));
        LIMIT_KEYS.iter().filter(is_wrong).map(|key| (key, key.shape.to_string())).collect()
    }

    pub(super) fn contradictions(&self) -> Vec<Contradiction> {
        let (message, memory, inbox) = (self.message_size, self.memory, self.inbox_bytes);
        let mut found = Vec::new();
        if message > memory {
            found.push(Contradiction {
                keys: ["message-size", "memory"],
                message: format!(
                    "`message-size` is {} and `memory` only {}: no message of that size fits in",
                    bytes(message),
                    bytes(memory)
                ),
            });
        }
        if message > inbox {
            found.push(Contradiction {
                keys: ["message-size", "inbox.bytes"],
                message: format!(
                    "`message-size` is {} and `inbox.bytes` only {}: no message of that size could wait",
                    bytes(message),
                    bytes(inbox)
                ),
            });
        }
        if message > self.fuel_per_message {
            found.push(Contradiction {
                keys: ["fuel-per-message", "message-size"],
                message: format!(
                    "`fuel-per-message` is {} and `message-size` {message} bytes: copying a byte costs \
                     one unit, so one copy of such a message would use up all",
                    self.fuel_per_message
                ),
            });
        }
        found
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::medium()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LimitUnit, Shape};

    #[test]
    fn setting_a_limit_changes_that_one_and_says_where_it_comes_from() {
        let source = LimitSource::Environment("X".to_owned());
        for key in &LIMIT_KEYS {
            let mut limits = Limits::medium();
            limits.set(key, 77_000_000, source.clone());
            for other in &LIMIT_KEYS {
                let (value, is_set) = ((other.get)(&limits), other.name == key.name);
                assert_eq!(value == Some(77_000_000), is_set, "{} after {}", other.name, key.name);
                assert_eq!(limits.source(other) == source, is_set, "{} after {}", other.name, key.name);
            }
        }
    }

    #[test]
    fn a_limit_has_the_unit_that_its_shape_is_kept_in() {
        for LimitKey { name, shape, unit, .. } in &LIMIT_KEYS {
            let of_shape = match shape {
                Shape::Size(_) => *unit == LimitUnit::Bytes,
                Shape::Time(_) => *unit == LimitUnit::Seconds,
                Shape::Share(_) => *unit == LimitUnit::Share,
                _ => !matches!(unit, LimitUnit::Bytes | LimitUnit::Seconds | LimitUnit::Share),
            };
            assert!(of_shape, "{name} is {shape} and counts {unit:?}");
        }
    }

    #[test]
    fn what_a_program_changes_is_said_to_come_from_it() {
        let mut limits = Limits::min();
        limits.memory += 1;
        let sources = LIMIT_KEYS.each_ref().map(|key| limits.source(key));
        assert_eq!(sources[0], LimitSource::Program);
        assert!(sources[1..].iter().all(|source| *source == LimitSource::Class("min".to_owned())));
    }
}
