//! One peer's subscription to one pattern.

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

/// One peer's subscription to one pattern.
#[derive(Debug)]
pub struct Subscription {
    pub(crate) number: u32,
    pub(crate) pattern: TopicPattern,
    pub(crate) peer: Arc<Peer>,
    pub(crate) inbox: Arc<Inbox>,
    /// The last instance that asked for it.
    pub(crate) asked_by: AtomicU64,
    /// A successor gets the last values of retained topics when it takes over.
    pub(crate) greets_successor: AtomicBool,
    /// Bytes of the largest payload that the peer takes.
    pub(crate) message_size: AtomicU64,
}

/// A subscription with its figures.
#[derive(Clone, Debug)]
pub struct SubscriptionStats {
    /// The peer that subscribed.
    pub peer: Arc<str>,
    /// The topics subscribed to.
    pub pattern: TopicPattern,
    /// How its events wait.
    pub delivery: LaneSettings,
    /// How many events wait, and what happened to the others.
    pub lane: LaneStats,
}

impl Subscription {
    /// Its number, which its events carry.
    #[inline]
    pub fn number(&self) -> u32 {
        self.number
    }

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
