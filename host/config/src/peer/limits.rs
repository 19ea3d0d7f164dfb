//! The limits of a peer's sessions: names, ranges and defaults.

use std::time::Duration;

use crate::{
    LimitKey, TIMEOUT,
    limits::Number,
    shape::{Shape, bytes},
};

/// The limits of a peer's sessions. Each but `sessions` holds for one session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerSessionLimits {
    /// Sessions at once: 1 to 4,096. Default: 8.
    pub sessions: u32,
    /// Calls, puts and the like under way: 1 to 65,536. Default: 64.
    pub in_flight: u32,
    /// Payload of a message, in bytes, sent or received: 1 KiB to 64 MiB, and at most `inbox_bytes`. Default: 256 KiB.
    pub message_size: u64,
    /// Messages per second: 1 to 1,000,000. Default: 1,000. Main reads further ones later.
    pub message_rate: u32,
    /// Subscriptions: 1 to 4,096. Default: 64.
    pub subscriptions: u32,
    /// Waiting messages of each kind: 1 to 1,000,000. Default: 256.
    pub inbox_messages: u32,
    /// Waiting bytes, once for requests and once for replies and events: 1 KiB to 1 GiB. Default: 256 KiB.
    pub inbox_bytes: u64,
    /// Timeout of requests to its contracts if the call sets none: 1 ms to 1 day. `None`:
    /// [`MainConfig::request_timeout`](crate::MainConfig::request_timeout).
    pub request_timeout: Option<Duration>,
    /// How long it may read nothing before it ends: 1 ms to 1 day. Default: 30 seconds.
    pub stall_timeout: Duration,
}

impl Default for PeerSessionLimits {
    fn default() -> Self {
        Self {
            sessions: 8,
            in_flight: 64,
            message_size: 256 << 10,
            message_rate: 1000,
            subscriptions: 64,
            inbox_messages: 256,
            inbox_bytes: 256 << 10,
            request_timeout: None,
            stall_timeout: Duration::from_secs(30),
        }
    }
}

impl PeerSessionLimits {
    /// Keys with values out of range.
    pub(crate) fn out_of_range(&self) -> Vec<&'static PeerLimitKey> {
        let is_wrong = |key: &&PeerLimitKey| (key.get)(self).is_some_and(|value| !key.shape.has(value));
        PEER_LIMIT_KEYS.iter().filter(is_wrong).collect()
    }

    /// Why `message-size` contradicts `inbox.bytes`.
    pub(crate) fn contradiction(&self) -> Option<String> {
        (self.message_size > self.inbox_bytes).then(|| {
            format!(
                "`message-size` is {} and `inbox.bytes` only {}: no message of that size could wait",
                bytes(self.message_size),
                bytes(self.inbox_bytes)
            )
        })
    }
}

/// A limit that operators set. Values are numbers in the unit of the shape.
#[derive(Debug)]
pub(crate) struct PeerLimitKey {
    /// As in `inbox.messages`, with a dot for a table of its own.
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// `None`: not set, possible only for `request-timeout`.
    pub(crate) get: fn(&PeerSessionLimits) -> Option<u64>,
    pub(crate) set: fn(&mut PeerSessionLimits, u64),
}

macro_rules! limits {
    ($($name:literal $field:ident: $shape:expr;)*) => {
        /// All limits of a peer's sessions. Those that an extension has too have its ranges.
        pub(crate) static PEER_LIMIT_KEYS: [PeerLimitKey; [$($name),*].len()] = [$(PeerLimitKey {
            name: $name,
            shape: $shape,
            get: |limits| limits.$field.number(),
            set: |limits, value| limits.$field = Number::of(value),
        }),*];
    };
}

limits! {
    "sessions" sessions: Shape::Count(1..=4096);
    "in-flight" in_flight: LimitKey::IN_FLIGHT.shape;
    "message-size" message_size: LimitKey::MESSAGE_SIZE.shape;
    "message-rate" message_rate: Shape::Count(1..=1_000_000);
    "subscriptions" subscriptions: Shape::Count(1..=4096);
    "inbox.messages" inbox_messages: LimitKey::INBOX_MESSAGES.shape;
    "inbox.bytes" inbox_bytes: LimitKey::INBOX_BYTES.shape;
    "request-timeout" request_timeout: Shape::Time(TIMEOUT);
    "stall-timeout" stall_timeout: Shape::Time(TIMEOUT);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_a_limit_changes_that_one() {
        for key in &PEER_LIMIT_KEYS {
            let mut limits = PeerSessionLimits::default();
            (key.set)(&mut limits, 77_000_000);
            for other in &PEER_LIMIT_KEYS {
                let is_set = (other.get)(&limits) == Some(77_000_000);
                assert_eq!(is_set, other.name == key.name, "{} after {}", other.name, key.name);
            }
        }
    }

    #[test]
    fn the_defaults_are_in_range_and_do_not_contradict_each_other() {
        let limits = PeerSessionLimits::default();
        assert!(limits.out_of_range().is_empty() && limits.contradiction().is_none());
    }
}
