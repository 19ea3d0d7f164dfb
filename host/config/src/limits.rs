//! The limits of an extension: built-in classes, rules between values, and bounds that no operator sets.
//!
//! Knows nothing of files. `key.rs` has names and ranges, `source.rs` where a value comes from.

mod key;
mod source;

use std::time::Duration;

use serde::Serialize;
use weir_names::CpuShare;

pub(super) use self::key::{CLASS, limits};
use self::source::Sources;
pub use self::{
    key::{InHooks, LIMIT_KEYS, LimitKey, MeasuredUse, Number, TIMEOUT, class, limits_of_hooks},
    source::{LimitSource, source},
};

use super::{features::Features, key::Contradiction, shape::bytes};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// Ten times as long as a server may be silent. It is the same in each class, because it depends on what a handler
/// waits for, not on what the extension may use.
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
    /// Time of work on the worker thread for each delivered message: 1 ms to 1 day. `None` bounds only the fuel.
    pub time_per_message: Option<Duration>,
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
    /// Bytes of requests by HTTP per second, with bursts of as many: 1 KiB to 16 GiB. Further ones wait.
    pub http_bytes_out: u64,
    /// Bytes of all headers of a request, or of an answer: 8 KiB to 1 MiB.
    pub http_header_size: u64,
    /// Time to connect, until an answer begins, and between two parts of it: 1 ms to 1 day, each.
    pub http_timeout: Duration,
    /// Time of a request by HTTP in all, from its beginning to the last byte of the answer: 1 ms to 1 day.
    pub http_total_timeout: Duration,
    /// WASI resources: descriptors, streams, sockets and pollables together: 1 to 65,536. For each eight, it may have one
    /// socket.
    pub resources: u64,
    /// Log lines per second, with bursts of ten times as many: 1 to 100,000.
    pub log_rate: u32,
    /// Time from the start until ready: 1 ms to 1 day.
    pub ready_timeout: Duration,
    /// Timeout of requests to its contracts if the call sets none: 1 ms to 1 day. With `None`,
    /// [`MainConfig::request_timeout`](super::MainConfig::request_timeout) applies.
    pub request_timeout: Option<Duration>,
    /// Time for an event, a job, or a call of an exported function in hand: 1 ms to 1 day. Then the instance is ended; at half of it Main warns.
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
    /// Parts of WebAssembly that it may use beyond what all may. The built-in classes have none.
    pub features: Features,
    fixed: &'static FixedLimits,
    sources: Sources,
}

/// The built-in classes: a row for each limit, and a column for each class.
macro_rules! built_in {
    ($($limit:ident: $min:expr, $medium:expr, $max:expr;)*) => {
        impl Limits {
            /// The class `min`: 4 MiB of memory, messages of 64 KiB, a tenth of the worker thread.
            #[must_use]
            pub fn min() -> Self {
                let (fixed, sources) = (&FixedLimits::MIN, Sources::default());
                Self { class: fixed.class.to_owned(), fixed, sources, features: Features::NONE, $($limit: $min),* }
            }

            /// The class `medium`: 16.5 MiB of memory, messages of 1 MiB, half of the worker thread.
            #[must_use]
            pub fn medium() -> Self {
                let (fixed, sources) = (&FixedLimits::MEDIUM, Sources::default());
                Self { class: fixed.class.to_owned(), fixed, sources, features: Features::NONE, $($limit: $medium),* }
            }

            /// The class `max`: 64 MiB of memory, messages of 8 MiB, all of the worker thread.
            #[must_use]
            pub fn max() -> Self {
                let (fixed, sources) = (&FixedLimits::MAX, Sources::default());
                Self { class: fixed.class.to_owned(), fixed, sources, features: Features::NONE, $($limit: $max),* }
            }
        }
    };
}

built_in! {
    memory: 4 * MIB, 16 * MIB + 512 * KIB, 64 * MIB;
    stack: 512 * KIB, MIB, 2 * MIB;
    fuel_per_message: 50_000_000, 500_000_000, 5_000_000_000;
    time_per_message: None, None, None;
    fuel_to_start: 500_000_000, 5_000_000_000, 50_000_000_000;
    cpu_share: CpuShare::percent(10), CpuShare::percent(50), CpuShare::percent(100);
    message_size: 64 * KIB, MIB, 8 * MIB;
    inbox_messages: 64, 256, 1024;
    inbox_bytes: 256 * KIB, MIB, 16 * MIB;
    in_flight: 64, 1024, 4096;
    http_in_flight: 4, 16, 128;
    http_rate: 10, 100, 1000;
    http_bytes_in: 256 * KIB, 4 * MIB, 64 * MIB;
    http_bytes_out: 64 * KIB, MIB, 16 * MIB;
    http_header_size: 16 * KIB, 32 * KIB, 64 * KIB;
    http_timeout: Duration::from_secs(30), Duration::from_secs(30), Duration::from_secs(30);
    http_total_timeout: Duration::from_secs(10 * 60), Duration::from_secs(10 * 60), Duration::from_secs(10 * 60);
    resources: 128, 512, 1024;
    log_rate: 10, 100, 1000;
    ready_timeout: Duration::from_secs(5), Duration::from_secs(10), Duration::from_secs(30);
    request_timeout: None, None, None;
    handler_timeout: HANDLER_TIMEOUT, HANDLER_TIMEOUT, HANDLER_TIMEOUT;
    stop_timeout: Duration::from_secs(2), Duration::from_secs(5), Duration::from_secs(10);
    file_size: 4 * MIB, 16 * MIB, 64 * MIB;
    code_size: 16 * MIB, 64 * MIB, 512 * MIB;
    compile_memory: 512 * MIB, 1024 * MIB, 4096 * MIB;
    compile_timeout: Duration::from_secs(60), Duration::from_secs(120), Duration::from_secs(300);
}

impl Limits {
    /// A built-in class by its name. `None` for any other name.
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

    /// Handles that its component may hold over all of its instances: 16 for each of `resources`. A handle takes memory of
    /// Main, and a component can make any number of its own.
    #[must_use]
    pub fn handles(&self) -> u64 {
        self.resources.saturating_mul(16)
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

    /// A copy for comparing running instances: without the name of the class and the sources of values, and with
    /// defaults for bounds on loading.
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
        let Self { message_size, memory, inbox_bytes, fuel_per_message, .. } = *self;
        let mut found = Vec::new();
        if message_size > memory {
            let message = format!(
                "`message-size` is {} and `memory` only {}: no message of that size fits in",
                bytes(message_size),
                bytes(memory)
            );
            found.push(Contradiction { keys: ["message-size", "memory"], message });
        }
        found.extend(no_room(message_size, inbox_bytes));
        if message_size > fuel_per_message {
            let message = format!(
                "`fuel-per-message` is {fuel_per_message} and `message-size` {message_size} bytes: copying a byte \
                 costs one unit, so one copy of such a message would use up all"
            );
            found.push(Contradiction { keys: ["fuel-per-message", "message-size"], message });
        }
        found
    }
}

/// The contradiction of messages that may be larger than the whole inbox.
pub(super) fn no_room(message_size: u64, inbox_bytes: u64) -> Option<Contradiction> {
    (message_size > inbox_bytes).then(|| Contradiction {
        keys: ["message-size", "inbox.bytes"],
        message: format!(
            "`message-size` is {} and `inbox.bytes` only {}: no message of that size could wait",
            bytes(message_size),
            bytes(inbox_bytes)
        ),
    })
}

impl Default for Limits {
    fn default() -> Self {
        Self::medium()
    }
}

/// Whether extensions and hooks are interpreted: always on processors for which wasmtime makes no code, and elsewhere
/// with the feature `pulley`.
pub const INTERPRETED: bool = cfg!(any(
    feature = "pulley",
    not(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64", target_arch = "s390x"))
));

/// Fuel for a tenth of a millisecond of compiled code on a server. The interpreter Pulley is 16 to 20 times slower.
const FUEL_SLICE: u64 = if INTERPRETED { 100_000 / 16 } else { 100_000 };

/// Bounds that come with a built-in class and the classes that inherit from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct FixedLimits {
    /// The name of the built-in class.
    pub class: &'static str,
    /// Fuel after which the extension yields to others.
    pub fuel_slice: u64,
    /// Stack for host functions that it calls, in bytes, on top of its own.
    pub host_stack: u64,
    /// Elements of all its tables together, 8 bytes each.
    pub table_elements: u64,
    /// Tables, over all core instances.
    pub tables: u64,
    /// Linear memories, over all core instances.
    pub memories: u64,
    /// Core instances.
    pub instances: u64,
    /// Random bytes of one call.
    pub random_bytes: u64,
    /// Subscriptions.
    pub subscriptions: u64,
    /// Open operations.
    pub open_operations: u64,
}

impl FixedLimits {
    const MIN: Self = Self {
        class: "min",
        fuel_slice: FUEL_SLICE,
        host_stack: 1024 * 1024,
        table_elements: 1 << 16,
        tables: 64,
        memories: 128,
        instances: 64,
        random_bytes: 64 * 1024,
        subscriptions: 64,
        open_operations: 256,
    };

    const MEDIUM: Self = Self {
        class: "medium",
        table_elements: 1 << 18,
        instances: 128,
        subscriptions: 256,
        open_operations: 1024,
        ..Self::MIN
    };

    const MAX: Self = Self {
        class: "max",
        table_elements: 1 << 20,
        tables: 256,
        memories: 256,
        instances: 512,
        ..Self::MEDIUM
    };
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
