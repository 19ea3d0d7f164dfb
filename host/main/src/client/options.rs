//! Options of calls and subscriptions.

use std::time::Duration;

use weir_names::{Policy, TraceContext};

/// How to send a request.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// Time for the answer, at most 7 days. `None` means the default of the contract's owner.
    pub timeout: Option<Duration>,
    /// The answering peer: an extension's id, a peer's name, or `main`. `None` means the contract's owner.
    pub provider: Option<String>,
    /// The span that the call is part of: of another program, or of a message in hand.
    ///
    /// If it is sampled, Main records what the call causes. A peer's call is recorded if a recorded request or job of the
    /// same trace is in hand of its session, and otherwise as often as others: by `main.trace-one-in`.
    pub trace: Option<TraceContext>,
    /// Whether nobody waits for the answer. Once in the receiver's inbox, such a call is carried out until its
    /// deadline, even if its future is dropped, or if the session that sent it ends or loses its grant. A call that
    /// still waits for room is given up with its future.
    pub is_unanswered: bool,
    /// Whether the end of the wait, by a drop of the future or at the deadline, also ends the work: the instance of the
    /// extension that has the request in hand, or in a batch that it took. It comes again at once, which counts as no
    /// failure for a restart or a quarantine, but is on record as one. With it end other requests in hand, as
    /// [`Error::Trapped`](crate::Error::Trapped), events in hand are lost, and jobs are delivered again. Of other
    /// receivers only the wait ends. For the embedding program alone. Goes before
    /// [`is_unanswered`](Self::is_unanswered).
    pub kill_on_drop: bool,
}

impl CallOptions {
    /// Sets the time for the answer.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Makes the end of the wait end the work, too.
    #[must_use]
    pub fn kill_on_drop(mut self) -> Self {
        self.kill_on_drop = true;
        self
    }

    /// Sets the span that the call is part of.
    #[must_use]
    pub fn trace(mut self, trace: TraceContext) -> Self {
        self.trace = Some(trace);
        self
    }

    /// Names the answering peer.
    #[must_use]
    pub fn provider(mut self, provider: impl Into<String>) -> Self {
        self.provider = Some(provider.into());
        self
    }
}

/// How to publish an event.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PublishOptions {
    /// How long to wait for room. `None` means `[main] request-timeout`.
    pub timeout: Option<Duration>,
    /// The only receiver: an extension's id or a peer's name. `None` means every subscriber.
    pub to: Option<String>,
    /// The span that the event is part of: see [`CallOptions::trace`].
    pub trace: Option<TraceContext>,
    /// Events that were lost before this one on their way to Main. Each subscriber sees them in `lost`.
    pub lost: u64,
}

/// How to put a job.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct PutOptions {
    /// How long to wait for room. `None` means `[main] request-timeout`.
    pub timeout: Option<Duration>,
    /// The span that the job is part of: see [`CallOptions::trace`].
    pub trace: Option<TraceContext>,
    /// How often the job was delivered before it came to Main. It counts towards `max-deliveries`; a job that has no
    /// delivery left gets one more.
    pub deliveries: u32,
}

/// How much of a subscription may wait, and what happens to events without room.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SubscribeOptions {
    /// What happens to an event without room; by default [`Policy::DropOldest`].
    pub policy: Policy,
    /// Most events that may wait; by default 256.
    pub messages: u32,
    /// Most bytes that may wait; by default 2 MiB.
    pub bytes: u64,
}

impl Default for SubscribeOptions {
    fn default() -> Self {
        Self { policy: Policy::default(), messages: 256, bytes: 2 * 1024 * 1024 }
    }
}

impl SubscribeOptions {
    /// Sets what happens to an event without room.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets how many events may wait, at least one.
    #[must_use]
    pub fn messages(mut self, messages: u32) -> Self {
        self.messages = messages;
        self
    }

    /// Sets how many bytes may wait; a single event always may.
    #[must_use]
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }
}
