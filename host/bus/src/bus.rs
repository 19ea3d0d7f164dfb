//! The bus itself: every peer, route, subscription, topic and queue of one Main, and the requests under way.
//!
//! Each file in its folder is one kind of traffic, and the only place that joins the parts for it. Starts no task: the
//! owner drives [`Bus::run_deadlines`].

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
        atomic::{AtomicU64, Ordering},
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

/// Called with the peer or queue that had no room, and its total losses: at 1, 2, 4, 8 and so on, so that a flood makes few
/// log lines.
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
    /// Tells that a program outside Main has begun or ended to serve a contract.
    providers_changed: Notify,
}

impl fmt::Debug for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bus").finish_non_exhaustive()
    }
}

impl Bus {
    /// A bus with one peer, Main.
    ///
    /// `on_loss` is called when the messages lost by one peer reach 1, 2, 4, 8 and so on.
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
        }
    }

    /// Answers requests when their deadline passes. Runs until dropped; causes no wakeup while none is under way.
    pub async fn run_deadlines(self: Arc<Self>) {
        self.deadlines.run().await;
    }

    /// Requests under way, each with a waiting sender.
    pub fn waiters(&self) -> usize {
        self.deadlines.len()
    }

    /// Main has ended: all waiting callers hear it, and later ones do not wait.
    pub fn close(&self) {
        let main = self.main();
        main.set_phase(Phase::Down);
        main.inbox().clear(Seat::FIRST);
        // First, so that senders waiting for room there hear why none will come.
        self.queues.close();
        self.deadlines.close();
        self.close_subscriptions();
    }

    /// Counts `lost` more messages that `peer` could not take.
    pub fn count_lost(&self, peer: &Peer, lost: u32) {
        let (before, after) = peer.count_lost(lost);
        if is_to_be_told(before, after) {
            (self.on_loss)(peer.name(), after);
        }
    }

    /// Of 2³² traces that begin here, so many are sampled from now on; all with `u32::MAX`. At most `spans` are kept.
    pub fn configure_traces(&self, sampled: u32, spans: usize) {
        self.traces.configure(sampled, spans);
    }

    /// Where a message stands that is part of a span of another program. If it need not be recorded, it is sampled as
    /// if the trace began here, so that strangers cannot fill the memory for spans.
    pub fn join_trace(&self, context: &TraceContext, is_wanted: bool) -> Option<Box<SpanOrigin>> {
        (is_wanted || self.traces.draw()).then(|| SpanOrigin::within(context))
    }

    /// Up to `max` of the spans that are kept, after the one with this number, of one trace or all.
    pub fn spans(&self, after: u64, trace: Option<TraceId>, max: usize) -> RecordedSpans {
        let name = |id| self.owners.get(id).map_or_else(String::new, |peer| peer.name().to_owned());
        self.traces.recorded().spans(after, trace, max, name)
    }

    /// How many spans were recorded so far, and how many of these were dropped to make room.
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

/// Whether to report losses that grew from `before` to `after`.
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
