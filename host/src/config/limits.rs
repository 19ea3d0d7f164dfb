//! The limits of one extension: ranges, the built-in classes, and what must hold between them.
//!
//! Knows nothing of files.

use std::{ops::RangeInclusive, time::Duration};

use super::shape::{Shape, bytes};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

pub(super) const MEMORY: RangeInclusive<u64> = 64 * KIB..=4 * GIB;
pub(super) const FUEL: RangeInclusive<u64> = 1_000..=1_000_000_000_000_000;
pub(super) const MESSAGE_SIZE: RangeInclusive<u64> = KIB..=64 * MIB;
pub(super) const INBOX_MESSAGES: RangeInclusive<u32> = 1..=1_000_000;
pub(super) const INBOX_BYTES: RangeInclusive<u64> = KIB..=GIB;
/// Of every timeout: what a request carries counts milliseconds in 32 bits.
pub(super) const TIMEOUT: RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_secs(24 * 60 * 60);

/// The names of the built-in classes, which an operator's own inherit from and cannot redefine.
pub(super) const BUILT_IN: [&str; 3] = ["min", "medium", "max"];

/// What one extension may use. Start from a built-in class and change what is needed; the default is
/// [`Limits::medium`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The name of the class that these limits come from, for people to read.
    pub class: String,
    /// Bytes of linear memory, over all memories of the extension: 64 KiB to 4 GiB.
    pub memory: u64,
    /// Units of fuel that every delivered message brings, about one for each WebAssembly instruction
    /// and for each byte of a bulk operation: 1,000 to 10^15, and not less than `message_size`.
    pub fuel_per_message: u64,
    /// Bytes of the payload of one message, sent or received: 1 KiB to 64 MiB, and neither more than
    /// `memory` nor more than `inbox_bytes`.
    pub message_size: u64,
    /// Messages that may wait in the inbox: 1 to 1,000,000.
    pub inbox_messages: u32,
    /// Bytes of payload that may wait in the inbox: 1 KiB to 1 GiB.
    pub inbox_bytes: u64,
    /// From the start until the extension must be ready: 1 ms to 1 day.
    pub ready_timeout: Duration,
    /// For requests to the contracts that the extension fulfills, where the call sets no timeout:
    /// 1 ms to 1 day. None: [`MainConfig::request_timeout`](super::MainConfig::request_timeout).
    pub request_timeout: Option<Duration>,
    /// From a stop until the extension must have ended: 1 ms to 1 day.
    pub stop_timeout: Duration,
}

impl Limits {
    /// The class `min`: 4 MiB of memory, messages of 64 KiB.
    #[must_use]
    pub fn min() -> Self {
        Self {
            class: "min".to_owned(),
            memory: 4 * MIB,
            fuel_per_message: 50_000_000,
            message_size: 64 * KIB,
            inbox_messages: 64,
            inbox_bytes: 256 * KIB,
            ready_timeout: Duration::from_secs(5),
            request_timeout: None,
            stop_timeout: Duration::from_secs(2),
        }
    }

    /// The class `medium`: 16 MiB of memory, messages of 1 MiB.
    #[must_use]
    pub fn medium() -> Self {
        Self {
            class: "medium".to_owned(),
            memory: 16 * MIB,
            fuel_per_message: 500_000_000,
            message_size: MIB,
            inbox_messages: 256,
            inbox_bytes: 2 * MIB,
            ready_timeout: Duration::from_secs(10),
            request_timeout: None,
            stop_timeout: Duration::from_secs(5),
        }
    }

    /// The class `max`: 64 MiB of memory, messages of 8 MiB.
    #[must_use]
    pub fn max() -> Self {
        Self {
            class: "max".to_owned(),
            memory: 64 * MIB,
            fuel_per_message: 5_000_000_000,
            message_size: 8 * MIB,
            inbox_messages: 1024,
            inbox_bytes: 16 * MIB,
            ready_timeout: Duration::from_secs(30),
            request_timeout: None,
            stop_timeout: Duration::from_secs(10),
        }
    }

    /// The built-in class of that name.
    #[must_use]
    pub fn built_in(name: &str) -> Option<Self> {
        match name {
            "min" => Some(Self::min()),
            "medium" => Some(Self::medium()),
            "max" => Some(Self::max()),
            _ => None,
        }
    }

    /// Every value that is out of its range: the key and what it must be. Files are checked as they
    /// are read; this is for limits made in Rust.
    pub(super) fn out_of_range(&self) -> Vec<(&'static str, String)> {
        let size = |range: RangeInclusive<u64>| Shape::Size(range);
        let timeout = |timeout: Duration| TIMEOUT.contains(&timeout);
        let messages = Shape::Count(u64::from(*INBOX_MESSAGES.start())..=u64::from(*INBOX_MESSAGES.end()));
        [
            ("memory", MEMORY.contains(&self.memory), size(MEMORY)),
            ("fuel-per-message", FUEL.contains(&self.fuel_per_message), Shape::Count(FUEL)),
            ("message-size", MESSAGE_SIZE.contains(&self.message_size), size(MESSAGE_SIZE)),
            ("inbox.messages", INBOX_MESSAGES.contains(&self.inbox_messages), messages),
            ("inbox.bytes", INBOX_BYTES.contains(&self.inbox_bytes), size(INBOX_BYTES)),
            ("ready-timeout", timeout(self.ready_timeout), Shape::Time(TIMEOUT)),
            ("request-timeout", self.request_timeout.is_none_or(timeout), Shape::Time(TIMEOUT)),
            ("stop-timeout", timeout(self.stop_timeout), Shape::Time(TIMEOUT)),
        ]
        .into_iter()
        .filter(|(_, within, _)| !within)
        .map(|(key, _, shape)| (key, shape.to_string()))
        .collect()
    }

    /// Every value that contradicts another: both keys and what is wrong.
    pub(super) fn contradictions(&self) -> Vec<Contradiction> {
        let (message, memory, inbox) = (self.message_size, self.memory, self.inbox_bytes);
        let mut found = Vec::new();
        if message > memory {
            found.push(Contradiction {
                keys: ("message-size", "memory"),
                message: format!(
                    "`message-size` is {} and `memory` only {}: no message of that size fits in",
                    bytes(message),
                    bytes(memory)
                ),
            });
        }
        if message > inbox {
            found.push(Contradiction {
                keys: ("message-size", "inbox.bytes"),
                message: format!(
                    "`message-size` is {} and `inbox.bytes` only {}: no message of that size could wait",
                    bytes(message),
                    bytes(inbox)
                ),
            });
        }
        if message > self.fuel_per_message {
            found.push(Contradiction {
                keys: ("fuel-per-message", "message-size"),
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

/// Two limits that cannot hold together.
#[derive(Debug)]
pub(super) struct Contradiction {
    pub(super) keys: (&'static str, &'static str),
    pub(super) message: String,
}
