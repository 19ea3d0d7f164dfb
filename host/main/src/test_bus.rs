//! A bus for tests.

use std::{sync::Arc, time::Duration};

use weir_bus::{Bus, InboxLimits, PeerLimits};
use weir_names::RequestPolicy;

/// Small limits, with a long time for requests, so that a slow machine fails no test.
pub(crate) const LIMITS: PeerLimits = PeerLimits {
    message_size: 1024,
    inbox: InboxLimits { messages: 8, bytes: 4096 },
    when_full: RequestPolicy::Reject,
    request_timeout: Duration::from_secs(60 * 60),
    subscriptions: 8,
};

/// A bus on which Main is alone, with [`LIMITS`].
pub(crate) fn bus() -> Arc<Bus> {
    Arc::new(Bus::new(LIMITS, Box::new(|_, _| {})))
}
