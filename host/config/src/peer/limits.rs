//! The limits of a peer's sessions: names, ranges and defaults.

use std::time::Duration;

use weir_metrics::nanoseconds;

use crate::{
    LimitKey, TIMEOUT,
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

/// All limits of a peer's sessions. Those that an extension has too have its ranges.
pub(crate) static PEER_LIMIT_KEYS: [PeerLimitKey; 9] = [
    PeerLimitKey {
        name: "sessions",
        shape: Shape::Count(1..=4096),
        get: |limits| Some(limits.sessions.into()),
        set: |limits, value| limits.sessions = small(value),
    },
    PeerLimitKey {
        name: "in-flight",
        shape: LimitKey::IN_FLIGHT.shape,
        get: |limits| Some(limits.in_flight.into()),
        set: |limits, value| limits.in_flight = small(value),
    },
    PeerLimitKey {
        name: "message-size",
        shape: LimitKey::MESSAGE_SIZE.shape,
        get: |limits| Some(limits.message_size),
        set: |limits, value| limits.message_size = value,
    },
    PeerLimitKey {
        name: "message-rate",
        shape: Shape::Count(1..=1_000_000),
        get: |limits| Some(limits.message_rate.into()),
        set: |limits, value| limits.message_rate = small(value),
    },
    PeerLimitKey {
        name: "subscriptions",
        shape: Shape::Count(1..=4096),
        get: |limits| Some(limits.subscriptions.into()),
        set: |limits, value| limits.subscriptions = small(value),
    },
    PeerLimitKey {
        name: "inbox.messages",
        shape: LimitKey::INBOX_MESSAGES.shape,
        get: |limits| Some(limits.inbox_messages.into()),
        set: |limits, value| limits.inbox_messages = small(value),
    },
    PeerLimitKey {
        name: "inbox.bytes",
        shape: LimitKey::INBOX_BYTES.shape,
        get: |limits| Some(limits.inbox_bytes),
        set: |limits, value| limits.inbox_bytes = value,
    },
    PeerLimitKey {
        name: "request-timeout",
        shape: Shape::Time(TIMEOUT),
        get: |limits| limits.request_timeout.map(nanoseconds),
        set: |limits, value| limits.request_timeout = Some(Duration::from_nanos(value)),
    },
    PeerLimitKey {
        name: "stall-timeout",
        shape: Shape::Time(TIMEOUT),
        get: |limits| Some(nanoseconds(limits.stall_timeout)),
        set: |limits, value| limits.stall_timeout = Duration::from_nanos(value),
    },
];

/// A value that its range keeps small.
fn small(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
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
