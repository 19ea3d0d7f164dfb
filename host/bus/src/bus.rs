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
mod traces;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{sync::Notify, time::Instant};

use crate::{
    deadlines::Deadlines,
    id::MessageId,
    inbox::Seat,
    loss::{OnLoss, is_to_be_told},
    owners::Owners,
    peer::{Peer, PeerLimits, Phase},
    queues::Queues,
    subscriptions::Subscriptions,
    topics::Topics,
    trace::Traces,
};

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

    fn next_message_id(&self) -> MessageId {
        MessageId(self.last_message.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn now() -> Instant {
        Instant::now()
    }
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
