//! Every subscription, by pattern and by peer.
//!
//! Knows nothing of what is published.

mod index;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use parking_lot::RwLock;
use weir_names::{Topic, TopicPattern};
use weir_reports::SubscriptionStatus;

use self::index::Index;
use crate::{
    id::{InstanceId, PeerId},
    inbox::Inbox,
    peer::Peer,
};

pub(crate) type Subscriptions = RwLock<SubscriptionTable>;

#[derive(Debug, Default)]
pub(crate) struct SubscriptionTable {
    last_number: u32,
    pub(crate) index: Index,
    by_peer: HashMap<PeerId, Vec<Arc<Subscription>>>,
    /// Whether any subscription has or had the policy `block`, so that publishers may wait for room.
    pub(crate) can_block: bool,
    /// Whether Main has ended. A new subscriber is then told to stop.
    pub(crate) is_closed: bool,
}

impl SubscriptionTable {
    /// Returns the subscriptions of this peer and its copies. A copy has none of its own.
    pub(crate) fn of(&self, original: PeerId) -> &[Arc<Subscription>] {
        self.by_peer.get(&original).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Subscription>> {
        self.by_peer.values().flatten()
    }

    /// Returns a number for one more subscription of this peer. Numbers repeat only after four thousand million others.
    pub(crate) fn next_number(&mut self, original: PeerId) -> u32 {
        loop {
            self.last_number = self.last_number.wrapping_add(1);
            if self.of(original).iter().all(|own| own.number != self.last_number) {
                return self.last_number;
            }
        }
    }

    pub(crate) fn insert(&mut self, subscription: Arc<Subscription>) {
        self.by_peer.entry(subscription.peer.id()).or_default().push(subscription.clone());
        self.index.insert(subscription);
    }

    /// Returns the matching subscriptions of these peers whose inboxes are served, and the number of comparisons.
    pub(crate) fn of_peers(&self, peers: &[PeerId], topic: &Topic) -> (Vec<Arc<Subscription>>, u32) {
        let own: Vec<_> = peers.iter().flat_map(|peer| self.of(*peer)).collect();
        let is_meant = |own: &&&Arc<Subscription>| own.pattern.matches(topic) && own.inbox.is_served();
        let compared = u32::try_from(own.len()).unwrap_or(u32::MAX);
        (own.iter().filter(is_meant).map(|own| (*own).clone()).collect(), compared)
    }

    pub(crate) fn remove(
        &mut self,
        peer: PeerId,
        ends: impl Fn(&Subscription) -> bool,
    ) -> Vec<Arc<Subscription>> {
        let Some(own) = self.by_peer.get_mut(&peer) else {
            return Vec::new();
        };
        let (ended, kept): (Vec<_>, Vec<_>) = std::mem::take(own).into_iter().partition(|s| ends(s));
        match kept.is_empty() {
            true => drop(self.by_peer.remove(&peer)),
            false => *own = kept,
        }
        for subscription in &ended {
            self.index.remove(subscription);
        }
        ended
    }
}

#[cfg(test)]
impl SubscriptionTable {
    /// Whether the table holds no subscription and no empty leftovers.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_peer.is_empty() && self.index.is_empty()
    }
}

/// One peer's subscription to one pattern.
#[derive(Debug)]
pub struct Subscription {
    pub(crate) number: u32,
    pub(crate) pattern: TopicPattern,
    pub(crate) peer: Arc<Peer>,
    pub(crate) inbox: Arc<Inbox>,
    /// The last instance that asked for the subscription.
    pub(crate) asked_by: AtomicU64,
    /// Whether an instance that takes over gets the last values of retained topics then.
    pub(crate) greets_successor: AtomicBool,
    /// Bytes of the largest payload that the peer takes.
    pub(crate) message_size: AtomicU64,
}

impl Subscription {
    /// Returns the subscription's number, which its events carry.
    #[inline]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Whether the peer takes events with a payload of this size.
    pub(crate) fn takes(&self, payload_bytes: usize) -> bool {
        payload_bytes as u64 <= self.message_size.load(Ordering::Relaxed)
    }

    pub(crate) fn status(&self) -> SubscriptionStatus {
        let (settings, lane) = self.inbox.events().stats(self.number);
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

    pub(crate) fn last_asker(&self) -> InstanceId {
        InstanceId(self.asked_by.load(Ordering::Relaxed))
    }

    pub(crate) fn set_message_size(&self, bytes: u64) {
        self.message_size.store(bytes, Ordering::Relaxed);
    }
}
