//! One peer's subscription to one pattern.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use weir_names::TopicPattern;
use weir_reports::SubscriptionStatus;

use crate::{id::ReaderId, inbox::Inbox, peer::Peer};

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

impl Subscription {
    /// Its number, which its events carry.
    #[inline]
    pub fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn takes(&self, payload_bytes: usize) -> bool {
        payload_bytes as u64 <= self.message_size.load(Ordering::Relaxed)
    }

    pub(crate) fn status(&self) -> SubscriptionStatus {
        let (settings, lane) = self.inbox.lane_stats(self.number);
        SubscriptionStatus {
            subscriber: self.peer.name().to_owned(),
            pattern: self.pattern.clone(),
            policy: settings.policy.name().into(),
            waiting: lane.waiting,
            bytes: lane.bytes,
            messages_limit: (settings.messages != u32::MAX).then_some(settings.messages),
            bytes_limit: (settings.bytes != u64::MAX).then_some(settings.bytes),
            blocked: lane.blocked,
            received: lane.taken,
            shed: lane.shed,
            refused: lane.refused,
        }
    }

    pub(crate) fn last_asker(&self) -> ReaderId {
        ReaderId(self.asked_by.load(Ordering::Relaxed))
    }

    pub(crate) fn set_message_size(&self, bytes: u64) {
        self.message_size.store(bytes, Ordering::Relaxed);
    }
}
