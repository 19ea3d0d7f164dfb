//! The limits of a peer's sessions: names, ranges and defaults.

use std::time::Duration;

use crate::{
    LimitKey, TIMEOUT,
    key::{Contradiction, Key, Table},
    keys,
    kind::limit,
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

impl Table for PeerSessionLimits {
    keys! {
        PeerSessionLimits;
        /// Sessions at once. A further one is refused.
        "sessions" sessions = limit(Shape::Count(1..=4096));
        /// Calls, puts and the like of one session that are under way. A further one fails with `limit-exceeded`.
        "in-flight" in_flight = limit(LimitKey::IN_FLIGHT.shape);
        /// Payload of one message, sent or received. The sender of a larger one gets `too-large`. Not more than
        /// `inbox.bytes`.
        "message-size" message_size = limit(LimitKey::MESSAGE_SIZE.shape);
        /// Messages a second from one session. Main reads further ones later, and loses none.
        "message-rate" message_rate = limit(Shape::Count(1..=1_000_000));
        /// Subscriptions of one session.
        "subscriptions" subscriptions = limit(Shape::Count(1..=4096));
        /// Default deadline of a request to a contract that the peer fulfills, if the call sets none.
        "request-timeout" request_timeout = limit(Shape::Time(TIMEOUT)), default("`main.request-timeout`");
        /// How long a session may leave unread what Main sends. Then it is ended.
        "stall-timeout" stall_timeout = limit(Shape::Time(TIMEOUT));
        /// What may wait for one session: the two keys below.
        "inbox" = Key::group();
        /// Requests, and as many events.
        "inbox.messages" inbox_messages = limit(LimitKey::INBOX_MESSAGES.shape);
        /// Bytes of requests, and as many of replies and events together.
        "inbox.bytes" inbox_bytes = limit(LimitKey::INBOX_BYTES.shape);
    }

    fn contradictions(&self) -> Vec<Contradiction> {
        let contradiction = || Contradiction {
            keys: ["message-size", "inbox.bytes"],
            message: format!(
                "`message-size` is {} and `inbox.bytes` only {}: no message of that size could wait",
                bytes(self.message_size),
                bytes(self.inbox_bytes)
            ),
        };
        (self.message_size > self.inbox_bytes).then(contradiction).into_iter().collect()
    }
}
