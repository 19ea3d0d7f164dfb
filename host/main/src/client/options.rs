//! How requests are sent and subscriptions kept.

use std::time::Duration;

use weir_names::Policy;

/// How a request is to be sent.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// Time for the answer; none is the default of the contract's owner. At most 7 days.
    pub timeout: Option<Duration>,
    /// The peer that is to answer: an extension's id, or `main`; none is whoever owns the contract.
    pub provider: Option<String>,
}

impl CallOptions {
    /// Sets the time for the answer.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Names the peer that is to answer.
    #[must_use]
    pub fn provider(mut self, provider: impl Into<String>) -> Self {
        self.provider = Some(provider.into());
        self
    }
}

/// How many events of a subscription may wait, and what becomes of one that finds no room.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SubscribeOptions {
    /// What becomes of one that finds no room. At first [`Policy::DropOldest`].
    pub policy: Policy,
    /// Events that may wait; at first 256.
    pub messages: u32,
    /// Bytes of the events that may wait; at first 2 MiB.
    pub bytes: u64,
}

impl Default for SubscribeOptions {
    fn default() -> Self {
        Self { policy: Policy::default(), messages: 256, bytes: 2 * 1024 * 1024 }
    }
}

impl SubscribeOptions {
    /// Sets what becomes of an event that finds no room.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets how many events may wait; one always can.
    #[must_use]
    pub fn messages(mut self, messages: u32) -> Self {
        self.messages = messages;
        self
    }

    /// Sets how many bytes of events may wait; one event always can.
    #[must_use]
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }
}
