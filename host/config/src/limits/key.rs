//! The names of limits in files, variables and `weir limits`.
//!
//! Each row of the table holds everything about one limit. Values are numbers in the unit of their shape.

use std::{ops::RangeInclusive, sync::LazyLock, time::Duration};

use weir_metrics::nanoseconds;
use weir_names::CpuShare;

use super::{KIB, Limits, MIB};
use crate::{
    LimitName, LimitUnit,
    classes::class_name,
    differences::Facts,
    error::ConfigError,
    features::{MEANING, features},
    key::{Key, Places, Table},
    kind::{Kind, must_be},
    section::Section,
    shape::Shape,
};

/// Range of every timeout: a request carries milliseconds in 32 bits.
pub const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(24 * 60 * 60);

const FUEL: RangeInclusive<u64> = 1_000..=1_000_000_000_000_000;
const SHARE: RangeInclusive<u64> = CpuShare::MIN.basis_points()..=CpuShare::WHOLE.basis_points();

/// A limit that operators set.
#[derive(Clone, Debug)]
pub struct LimitKey {
    /// The name, such as `inbox.messages`, where a dot stands for a table of its own.
    pub name: &'static str,
    /// What the limit means, in Markdown.
    pub(super) meaning: &'static str,
    /// The type and range of its value.
    pub shape: Shape,
    /// The unit of its numbers.
    pub unit: LimitUnit,
    /// The measurement of its use.
    pub used: MeasuredUse,
    /// Whether it applies to hooks.
    pub in_hooks: InHooks,
    /// Gets the value. `None` if it is not set, which `request-timeout` and `time-per-message` allow.
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
    /// Not measured, such as the depth of the stack, headers, the timeouts of requests and handlers, the time for one
    /// message, and what loading takes.
    Unmeasured,
}

/// Whether a limit applies to hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InHooks {
    /// The limit bounds each run of a hook.
    Allowed,
    /// The limit means nothing to hooks. The text says why, and completes a sentence that starts with the key.
    Refused(&'static str),
}

/// What the manual shows as the default of every limit: the value comes from the class.
const INHERITED: &str = "inherited";

pub(crate) const CLASS: &str = "the name of a class";

const INBOX: &str = "What may wait for the extension: the two keys below, as in `inbox = { messages = 256, bytes = \"256 KiB\" }`. \
    What happens when it is full: [each policy](operators.md#when-there-is-no-room).";

const HTTP: &str = "Requests that the extension sends by [HTTP](http.md): the keys below, as in `http = { in-flight = 4, rate = 10 }`.";

const ALLOWED: InHooks = InHooks::Allowed;
const NO_MESSAGES: InHooks = InHooks::Refused("is for extensions: hooks have no messages");
const NO_TIMEOUTS: InHooks =
    InHooks::Refused("is for extensions: `timeout` of the hooks says how long each may take");

/// Makes a constant of each row, and the list `LIMIT_KEYS` of all rows.
macro_rules! limits {
    ($(
        $(#[doc = $meaning:literal])+
        $key:ident $name:literal $field:ident:
            $shape:ident($range:expr), $unit:ident, $used:ident, $in_hooks:expr;
    )*) => {
        /// All limits, in display order.
        pub static LIMIT_KEYS: [LimitKey; [$($name),*].len()] = [$(LimitKey::$key),*];

        // Does not compile if a field is missing here.
        const _: fn(&Limits) = |Limits { class: _, fixed: _, sources: _, features: _, $($field: _),* }| ();

        impl LimitKey {$(
            #[doc = concat!("`", $name, "`.")]
            pub const $key: Self = Self {
                name: $name,
                meaning: concat!($($meaning),+),
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
    /// Linear memory, over all memories of the extension. Growth beyond it fails inside the extension, which may go on.
    /// Nothing interrupts an instruction that fills memory, so this also bounds how long others wait: about 1 ms for
    /// each MiB.
    MEMORY "memory" memory: Size(64 * KIB..=4096 * MIB), Bytes, Memory, ALLOWED;
    /// Stack, and so the depth of calls. An extension that overruns it is ended. Each distinct size costs a WebAssembly
    /// engine, and a second copy of the code of a component that runs with both.
    STACK "stack" stack: Size(64 * KIB..=16 * MIB), Bytes, Unmeasured, ALLOWED;
    /// Units of fuel that each delivered message brings: [what they are spent on](#what-fuel-counts). An extension that
    /// runs out is ended, and its requests in hand answer `trapped`. Not less than `message-size` in bytes.
    FUEL_PER_MESSAGE "fuel-per-message" fuel_per_message: Count(FUEL), Fuel, FuelPerMessage,
        InHooks::Refused("is for messages: a run of a hook has `fuel-to-start`, from its start to its end");
    /// Time that an extension may work on the worker thread for one message; waiting does not count. Then the instance is
    /// ended, and its requests in hand answer `trapped`. Messages that it takes at once bring as many times this. The
    /// built-in classes have none: `fuel-per-message` bounds the work, in a measure that is the same on each machine.
    TIME_PER_MESSAGE "time-per-message" time_per_message: Time(TIMEOUT), Seconds, Unmeasured, NO_MESSAGES;
    /// Units of fuel from the start to the first message. An extension that runs out is ended; before it is ready, the
    /// start has failed.
    FUEL_TO_START "fuel-to-start" fuel_to_start: Count(FUEL), Fuel, FuelToStart, ALLOWED;
    /// Share of the time of the one thread on which all extensions run. An extension over its share is delayed, not
    /// ended. It may use half a second's worth at once.
    CPU_SHARE "cpu-share" cpu_share: Share(SHARE), Share, CpuInSecond, ALLOWED;
    /// Payload of one message, sent or received. The sender of a larger one gets `too-large`. Neither more than
    /// `memory` nor more than `inbox.bytes`.
    MESSAGE_SIZE "message-size" message_size: Size(KIB..=64 * MIB), Bytes, LargestMessage, NO_MESSAGES;
    /// Requests, and as many events.
    INBOX_MESSAGES "inbox.messages" inbox_messages: Count(1..=1_000_000), Messages, InboxMessages,
        NO_MESSAGES;
    /// Bytes of requests, and as many of replies and events together.
    INBOX_BYTES "inbox.bytes" inbox_bytes: Size(KIB..=1024 * MIB), Bytes, InboxBytes, NO_MESSAGES;
    /// Requests received and not answered: further ones stay in the inbox. And as many requests sent without waiting,
    /// until their reply is received: a further one fails with `limit-exceeded`.
    IN_FLIGHT "in-flight" in_flight: Count(1..=65_536), Requests, Requests, NO_MESSAGES;
    /// Requests under way: each until its answer is read or dropped. A further one fails with
    /// `connection-limit-reached`.
    HTTP_IN_FLIGHT "http.in-flight" http_in_flight: Count(1..=1024), Requests, HttpRequests, ALLOWED;
    /// Requests a second, and as many at once. Further ones wait.
    HTTP_RATE "http.rate" http_rate: Count(1..=100_000), RequestsPerSecond, HttpInSecond, ALLOWED;
    /// Bytes of answers a second, and as many at once. Further ones wait in the network. Counts headers and bodies, but
    /// not what TLS adds.
    HTTP_BYTES_IN "http.bytes-in" http_bytes_in: Size(KIB..=16 * 1024 * MIB), Bytes, HttpBytesIn, ALLOWED;
    /// The same for bytes of requests.
    HTTP_BYTES_OUT "http.bytes-out" http_bytes_out: Size(KIB..=16 * 1024 * MIB), Bytes, HttpBytesOut, ALLOWED;
    /// All headers of one request with its path, and all headers of one answer. A larger request or answer fails with
    /// an error. An extension that makes headers of twice as much is ended.
    HTTP_HEADER_SIZE "http.header-size" http_header_size: Size(8 * KIB..=MIB), Bytes, Unmeasured, ALLOWED;
    /// Time to connect, time until an answer begins, and time between two parts of it, each. The extension can ask for
    /// less.
    HTTP_TIMEOUT "http.timeout" http_timeout: Time(TIMEOUT), Seconds, Unmeasured, ALLOWED;
    /// Time of a request in all, from its beginning to the last byte of the answer, uploads and waiting for `http.rate`
    /// included. Then it fails with `HTTP-response-timeout`, its connection is closed, and it is no longer under way.
    HTTP_TOTAL_TIMEOUT "http.total-timeout" http_total_timeout: Time(TIMEOUT), Seconds, Unmeasured, ALLOWED;
    /// WASI resources that it holds: descriptors, streams, sockets and pollables together. A timer is one. For
    /// each eight it may have a socket, which takes six with its streams. One socket more is an error, and so is a file for
    /// which there is none left; anything else ends the extension.
    RESOURCES "resources" resources: Count(1..=65_536), Count, Unmeasured, ALLOWED;
    /// Log lines a second, and ten times as many at once. Further lines are dropped and counted.
    LOG_RATE "log-rate" log_rate: Count(1..=100_000), LinesPerSecond, LinesInSecond,
        InHooks::Refused("is for extensions: `output` of the hooks says how much each may write");
    /// Time from the start until the extension must be ready; otherwise the start has failed. It begins once the
    /// program is loaded, and covers the opening of granted directories.
    READY_TIMEOUT "ready-timeout" ready_timeout: Time(TIMEOUT), Seconds, LastStart, NO_TIMEOUTS;
    /// Default deadline of a request to a contract that the extension fulfills, if the call sets none. Then the caller
    /// gets `timeout`. The built-in classes have none: then `main.request-timeout` holds.
    REQUEST_TIMEOUT "request-timeout" request_timeout: Time(TIMEOUT), Seconds, Unmeasured, NO_TIMEOUTS;
    /// Time for an event, a job, or a call of an [exported function](exports.md) in hand: [from when to when](operators.md#handlers-that-hang). At half of it Main
    /// warns, then the instance is ended. It is the same in all built-in classes: ten times the longest silence of a
    /// server (`http.timeout`).
    HANDLER_TIMEOUT "handler-timeout" handler_timeout: Time(TIMEOUT), Seconds, Unmeasured, NO_TIMEOUTS;
    /// Time to finish after a stop. Then the instance is ended.
    STOP_TIMEOUT "stop-timeout" stop_timeout: Time(TIMEOUT), Seconds, LastStop, NO_TIMEOUTS;
    /// The component's file. A larger one is neither read nor loaded. An artifact of `weir compile` is bounded by
    /// `code-size` instead.
    FILE_SIZE "file-size" file_size: Size(KIB..=1024 * MIB), Bytes, Unmeasured, ALLOWED;
    /// The compiled code. Each byte of the file that declares something (a type, an import, a name) counts as 32. A
    /// component over it is not loaded. Main holds the code while the extension is in use: once for all extensions with
    /// the same component, size of stack and kind of `traces`, and for a moment twice.
    CODE_SIZE "code-size" code_size: Size(64 * KIB..=4096 * MIB), Bytes, Unmeasured, ALLOWED;
    /// Address space of the process that compiles the component; otherwise it is not loaded. This is not Main's memory,
    /// and more than the process touches.
    COMPILE_MEMORY "compile-memory" compile_memory: Size(64 * MIB..=1024 * 1024 * MIB), Bytes, Unmeasured,
        ALLOWED;
    /// Time to compile the component, and as much processor time; otherwise it is not loaded.
    COMPILE_TIMEOUT "compile-timeout" compile_timeout: Time(TIMEOUT), Seconds, Unmeasured, ALLOWED;
}

impl Table for Limits {
    fn keys() -> &'static [Key<Self>] {
        static KEYS: LazyLock<Vec<Key<Limits>>> = LazyLock::new(|| {
            let group = |name, meaning| Key::group().default(INHERITED).named(name, meaning);
            let features = Key::of_field(features(), |it: &Limits| &it.features, |it| &mut it.features);
            let features = features.default(INHERITED).named("features", MEANING);
            let groups = [group("inbox", INBOX), group("http", HTTP), features];
            LIMIT_KEYS.iter().map(entry).chain(groups).collect()
        });
        &KEYS
    }
}

fn entry(key: &'static LimitKey) -> Key<Limits> {
    // The entry neither shows nor judges its limit: `limits_of` does that for all limits of a table.
    let read =
        move |section: &mut Section<'_, '_>, name, limits: &mut Limits| read(key, section, name, limits);
    Key::new(key.shape.clone(), read, |_, _, _| ()).default(INHERITED).named(key.name, key.meaning)
}

fn read(
    key: &'static LimitKey,
    section: &mut Section<'_, '_>,
    name: &'static str,
    limits: &mut Limits,
) -> Option<Places> {
    let at = section.number(name, &key.shape)?;
    (key.set)(limits, at.value);
    Some(Places::at(at.location))
}

/// The table `limits`: the limits that differ from the class.
pub(crate) fn limits() -> Kind<Limits> {
    limits_of(|_| true, |section, limits| section.keys(limits))
}

/// The table `limits` of hooks. It refuses the limits that mean nothing to hooks. The limits of HTTP are unknown keys
/// in it, because hooks have them from their class.
#[must_use]
pub fn limits_of_hooks() -> Kind<Limits> {
    let is_allowed = |key: &LimitKey| key.in_hooks == InHooks::Allowed;
    limits_of(is_allowed, |section, limits| {
        let errors = section.error_count();
        let mut places = Places::default();
        for key in LIMIT_KEYS.iter().filter(|key| !key.name.contains('.')) {
            match key.in_hooks {
                InHooks::Allowed => {
                    section.about(key.meaning.trim_start(), || INHERITED);
                    if let Some(found) = read(key, section, key.name, limits) {
                        places.insert(key.name, found);
                    }
                }
                InHooks::Refused(why) => section.refuse(key.name, why),
            }
        }
        section.about(MEANING, || INHERITED);
        if let Some((found, at)) = (features().read)(section, "features", None) {
            limits.features = found;
            places.insert("features", at);
        }
        section.refuse("inbox", "is for extensions: hooks have no messages");
        places.is_faulty = section.error_count() > errors;
        places
    })
}

/// A table of limits that `read` reads. Only limits for which `holds` is true are shown and judged.
fn limits_of(
    holds: fn(&LimitKey) -> bool,
    read: fn(&mut Section<'_, '_>, &mut Limits) -> Places,
) -> Kind<Limits> {
    let read = move |section: &mut Section<'_, '_>, key, current: Option<&Limits>| {
        let mut limits = current.cloned().unwrap_or_default();
        let places = section.table(key, |section| read(section, &mut limits));
        Some((limits, places))
    };
    let tell = move |limits: &Limits, key: &str, facts: &mut Facts| {
        for limit in LIMIT_KEYS.iter().filter(|limit| holds(limit)) {
            let value = (limit.get)(limits).map(|value| limit.shape.text(value));
            facts.plain(&format!("{key}.{}", limit.name), value);
        }
        facts.texts(&format!("{key}.features"), limits.features.words());
    };
    let judge = move |limits: &Limits, path: &str, errors: &mut Vec<ConfigError>| {
        let before = errors.len();
        let wrong = limits.out_of_range().into_iter().filter(|(key, _)| holds(key));
        errors.extend(wrong.map(|(key, what)| must_be(&format!("{path}.{}", key.name), &what)));
        // Hooks ignore the limits that can contradict each other.
        if errors.len() == before && holds(&LimitKey::MESSAGE_SIZE) {
            errors.extend(limits.contradictions().into_iter().map(|found| found.in_rust(path)));
        }
    };
    Kind { judge: Box::new(judge), ..Kind::new(Shape::Table, read, tell) }
}

/// The class of a table's limits, from which they inherit.
#[must_use]
pub fn class<T: 'static>(get: fn(&T) -> &Limits, get_mut: fn(&mut T) -> &mut Limits) -> Key<T> {
    let read = move |section: &mut Section<'_, '_>, key: &'static str, table: &mut T| {
        let at = section.text(key, CLASS, class_name)?;
        get_mut(table).class = at.value;
        Some(Places::at(at.location))
    };
    Key::new(Shape::Text(CLASS), read, move |table, key, facts| facts.text(key, Some(&get(table).class)))
}

/// A limit's value as a number in the unit of its shape.
pub trait Number: Clone {
    /// The value as a number. `None` if it is not set.
    fn number(&self) -> Option<u64>;
    /// The value for a number. A number over the type's range becomes its largest value.
    fn of(number: u64) -> Self;
}

macro_rules! numbers {
    ($($type:ty: |$value:ident| $number:expr, |$of:ident| $made:expr;)+) => {$(
        impl Number for $type {
            fn number(&self) -> Option<u64> {
                let $value = *self;
                Some($number)
            }

            fn of($of: u64) -> Self {
                $made
            }
        }
    )+};
}

numbers! {
    u16: |value| value.into(), |number| Self::try_from(number).unwrap_or(Self::MAX);
    u32: |value| value.into(), |number| Self::try_from(number).unwrap_or(Self::MAX);
    u64: |value| value, |number| number;
    CpuShare: |share| share.basis_points(), |number| Self::from_basis_points(number);
    Duration: |time| nanoseconds(time), |number| Self::from_nanos(number);
}

impl<N: Number> Number for Option<N> {
    fn number(&self) -> Option<u64> {
        self.as_ref().and_then(N::number)
    }

    fn of(number: u64) -> Self {
        Some(N::of(number))
    }
}
