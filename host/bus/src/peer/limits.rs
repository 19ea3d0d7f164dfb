//! How much a peer may send and hold.

use std::time::Duration;

use weir_names::RequestPolicy;

use crate::inbox::InboxLimits;

/// How much a peer may send and hold.
#[derive(Clone, Copy, Debug)]
pub struct PeerLimits {
    /// Bytes of the largest payload that it may send or receive.
    pub message_size: u64,
    /// How much may wait for it.
    pub inbox: InboxLimits,
    /// What happens to a request that finds the inbox full.
    pub when_full: RequestPolicy,
    /// The default deadline of requests to this peer.
    pub request_timeout: Duration,
    /// Subscriptions at once.
    pub subscriptions: u64,
}

impl PeerLimits {
    /// For a peer that receives nothing: it refuses a request as not there, whatever the size.
    pub(crate) const NONE: Self = Self {
        message_size: u64::MAX,
        inbox: InboxLimits { messages: 0, bytes: 0 },
        when_full: RequestPolicy::Reject,
        request_timeout: Duration::ZERO,
        subscriptions: 0,
    };
}
