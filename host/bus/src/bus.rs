//! The bus itself: every peer, route, subscription, topic and queue of one Main, and the requests under way.
//!
//! Each file in the folder `bus` joins the parts for one task of the bus: a kind of traffic, the peers, or the refusal
//! of deadlocks. The bus starts no task of the runtime: the caller drives [`Bus::run_deadlines`].

mod deadlocks;
pub(crate) mod jobs;
mod peers;
pub(crate) mod publish;
pub(crate) mod requests;
mod subscribe;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use tokio::{sync::Notify, time::Instant};
use weir_names::{TraceContext, TraceId};

use crate::{
    deadlines::Deadlines,
    id::MessageId,
    inbox::Seat,
    owners::Owners,
    peer::{Peer, PeerLimits, Phase},
    queues::Queues,
    subscriptions::Subscriptions,
    topics::Topics,
    trace::{RecordedSpans, SpanOrigin, Traces},
};

/// Called with the name of a peer, or `queue` and the name of a queue, and its total losses. It is called when they
/// reach or pass 1, 2, 4, 8 and so on, so that a flood makes few log lines.
///
/// Events that were lost to make room for a reply count in the total, but cause no call.
pub type OnLoss = Box<dyn Fn(&str, u64) + Send + Sync>;

/// The shared core of one Main: every peer and every route.
pub struct Bus {
    owners: Owners,
    subscriptions: Subscriptions,
    topics: Topics,
    queues: Queues,
    deadlines: Deadlines,
    last_message: AtomicU64,
    traces: Arc<Traces>,
    on_loss: Arc<OnLoss>,
    /// Notified when a program outside Main begins or stops serving a contract, and when a name of programs is set.
    providers_changed: Notify,
    has_closed: AtomicBool,
}

impl fmt::Debug for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bus").finish_non_exhaustive()
    }
}

impl Bus {
    /// A bus with one peer, Main.
    ///
    /// `on_loss` is called for messages that peers and queues lost; [`OnLoss`] says when.
    pub fn new(main_limits: PeerLimits, on_loss: OnLoss) -> Self {
        Self {
            on_loss: Arc::new(on_loss),
            owners: Owners::new(main_limits),
            subscriptions: Subscriptions::default(),
            topics: Topics::default(),
            queues: Queues::default(),
            deadlines: Deadlines::default(),
            last_message: AtomicU64::new(0),
            traces: Traces::new(),
            providers_changed: Notify::new(),
            has_closed: AtomicBool::new(false),
        }
    }

    /// Ends waits for an answer or for room at their deadlines. While nothing waits, it wakes at
    /// most once, for a timer that is still armed. Returns once the bus is closed.
    pub async fn run_deadlines(self: Arc<Self>) {
        self.deadlines.run().await;
    }

    /// Returns the number of waits that have a deadline now, for an answer or for room.
    pub fn waiters(&self) -> usize {
        self.deadlines.len()
    }

    /// Closes the bus, because Main ends. Callers that wait get an error, and later callers do not wait.
    pub fn close(&self) {
        self.has_closed.store(true, Ordering::Release);
        let main = self.main();
        main.set_phase(Phase::Down);
        main.inbox().clear(Seat::FIRST);
        // Queues are closed before deadlines, so that senders that wait for room hear why none will come.
        self.queues.close();
        self.deadlines.close();
        self.close_subscriptions();
    }

    /// Whether the bus is closed.
    pub fn is_closed(&self) -> bool {
        self.has_closed.load(Ordering::Acquire)
    }

    /// Counts `lost` more messages that `peer` could not take. Calls `on_loss` if its total reaches or passes a power
    /// of two.
    pub fn count_lost(&self, peer: &Peer, lost: u32) {
        let (before, after) = peer.count_lost(lost);
        if is_to_be_told(before, after) {
            (self.on_loss)(peer.name(), after);
        }
    }

    /// Sets how many of 2³² traces that begin here are sampled (`u32::MAX` samples all), and how many spans are kept.
    pub fn configure_traces(&self, sampled: u32, spans: usize) {
        self.traces.configure(sampled, spans);
    }

    /// Returns the place of a message in a trace that another program began, or none if the message is not sampled.
    /// Unless `is_wanted`, chance decides as for a trace that begins here, so that strangers cannot fill the memory.
    pub fn join_trace(&self, context: &TraceContext, is_wanted: bool) -> Option<Box<SpanOrigin>> {
        (is_wanted || self.traces.draw()).then(|| SpanOrigin::within(context))
    }

    /// Returns up to `max` spans with numbers above `after`, of one trace or all, oldest first.
    pub fn spans(&self, after: u64, trace: Option<TraceId>, max: usize) -> RecordedSpans {
        let name = |id| self.owners.get(id).map_or_else(String::new, |peer| peer.name().to_owned());
        self.traces.recorded().spans(after, trace, max, name)
    }

    /// Returns how many spans were recorded so far, and how many of these were dropped to make room.
    pub fn span_counts(&self) -> (u64, u64) {
        self.traces.recorded().counts()
    }

    fn next_message_id(&self) -> MessageId {
        MessageId(self.last_message.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn now() -> Instant {
        Instant::now()
    }
}

/// Whether to report losses that grew from `before` to `after`: true if they reached or passed a power of two.
pub(crate) fn is_to_be_told(before: u64, after: u64) -> bool {
    after.checked_ilog2() != before.checked_ilog2()
}

#[cfg(test)]
impl Bus {
    pub(crate) fn owners(&self) -> &Owners {
        &self.owners
    }

    pub(crate) fn subscription_table(&self) -> &Subscriptions {
        &self.subscriptions
    }
}
