//! One peer's wish for the events of one pattern.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use weir_names::TopicPattern;

use crate::{
    id::ReaderId,
    inbox::{Inbox, LaneSettings, LaneStats},
    peer::Peer,
};

/// One peer's wish for the events of one pattern.
#[derive(Debug)]
pub struct Subscription {
    pub(crate) number: u32,
    pub(crate) pattern: TopicPattern,
    pub(crate) peer: Arc<Peer>,
    pub(crate) inbox: Arc<Inbox>,
    /// The last instance that asked for it.
    pub(crate) asked_by: AtomicU64,
    /// One that is to take over gets the last values of retained topics when it does.
    pub(crate) greets_successor: AtomicBool,
    /// Bytes of the largest payload that the peer takes.
    pub(crate) message_size: AtomicU64,
}

/// A subscription as it is shown.
#[derive(Clone, Debug)]
pub struct SubscriptionStats {
    /// The name of the peer that subscribed.
    pub peer: Arc<str>,
    /// The topics that it subscribed to.
    pub pattern: TopicPattern,
    /// How its events wait.
    pub delivery: LaneSettings,
    /// How many wait, and what became of the others.
    pub lane: LaneStats,
}

impl Subscription {
    /// Its number, by which its events name it.
    #[inline]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Whether its peer takes a payload of this size.
    pub(crate) fn takes(&self, payload_bytes: usize) -> bool {
        payload_bytes as u64 <= self.message_size.load(Ordering::Relaxed)
    }

    pub(crate) fn stats(&self) -> SubscriptionStats {
        let (delivery, lane) = self.inbox.lane_stats(self.number);
        SubscriptionStats { peer: self.peer.name().into(), pattern: self.pattern.clone(), delivery, lane }
    }

    pub(crate) fn last_asker(&self) -> ReaderId {
        ReaderId(self.asked_by.load(Ordering::Relaxed))
    }

    pub(crate) fn set_message_size(&self, bytes: u64) {
        self.message_size.store(bytes, Ordering::Relaxed);
    }
}
