//! The message bus: who may say what to whom, where it waits, and how it ends.
//!
//! Owns the peers with their inboxes, the routing table, the subscriptions, the topics, the shared queues
//! and the requests under way. Knows nothing of WebAssembly, files or configuration formats, and starts no task: the one
//! future that it needs run, [`Bus::run_deadlines`], is its owner's to drive.

mod circle;
mod inbox;
mod message;
mod peer;
mod pending;
mod publish;
mod queue;
mod queues;
mod request;
mod room;
mod routes;
mod subscriptions;
#[cfg(test)]
mod tests;
mod topics;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::time::Instant;
pub use weir_names::{Error, HandlerError};

pub use self::message::{MessageId, PeerId, Receipt};
pub use self::{
    inbox::{Delivery, Inbox, InboxLimits, LaneStats, Look, ReaderId, Seat, Taken},
    message::{Answer, Event, Incoming, OperationId, Reply, Request},
    peer::{Access, Peer, PeerLimits, Phase},
    pending::{Pending, Waiter},
    queue::{Job, Queue, QueueSettings, QueueStats, Reader, TakenJob},
    queues::Putting,
    request::{PendingCall, Sending, Target, Term},
    subscriptions::{Subscription, SubscriptionStats},
    topics::TopicStats,
};
use self::{queues::Queues, routes::Routes, subscriptions::Subscriptions, topics::Topics};

/// Told who could not take a message for want of room, and how many those were in all.
pub type OnLoss = Box<dyn Fn(&str, u64) + Send + Sync>;

/// The shared core of one Main: every peer and every route between them.
pub struct Bus {
    routes: Routes,
    subscriptions: Subscriptions,
    topics: Topics,
    queues: Queues,
    pending: Pending,
    last_message: AtomicU64,
    on_loss: Arc<OnLoss>,
}

impl fmt::Debug for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bus").finish_non_exhaustive()
    }
}

impl Bus {
    /// A bus with one peer, Main itself.
    ///
    /// `on_loss` is told at 1, 2, 4, 8 and so on of the messages that a peer could not take.
    pub fn new(main_limits: PeerLimits, on_loss: OnLoss) -> Self {
        Self {
            on_loss: Arc::new(on_loss),
            routes: Routes::new(main_limits),
            subscriptions: Subscriptions::default(),
            topics: Topics::default(),
            queues: Queues::default(),
            pending: Pending::default(),
            last_message: AtomicU64::new(0),
        }
    }

    /// Answers requests whose deadline passes. Runs until dropped, and makes no wakeup while no
    /// request is under way.
    pub async fn run_deadlines(self: Arc<Self>) {
        self.pending.run().await;
    }

    /// Requests that somebody waits for at this moment.
    pub fn waiters(&self) -> usize {
        self.pending.len()
    }

    /// Main has ended: all who wait hear it, and nobody waits from here on.
    pub fn close(&self) {
        let main = self.main();
        main.set_phase(Phase::Down);
        main.inbox().clear(Seat::FIRST);
        // First: whoever waits for room there is to hear why there will be none.
        self.close_queues();
        self.pending.close();
        self.close_subscriptions();
    }

    /// Counts `lost` more messages that `peer` could not take.
    fn count_lost(&self, peer: &Peer, lost: u32) {
        let (before, after) = peer.count_lost(lost);
        if after.checked_ilog2() != before.checked_ilog2() {
            (self.on_loss)(peer.name(), after);
        }
    }

    fn next_message_id(&self) -> MessageId {
        MessageId(self.last_message.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn now() -> Instant {
        Instant::now()
    }
}
