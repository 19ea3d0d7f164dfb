//! Every subscription, by pattern and by peer.
//!
//! Knows nothing of what is published.

mod index;
mod subscription;

use std::{collections::HashMap, sync::Arc};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use weir_names::Topic;

use self::index::Index;
pub use self::subscription::Subscription;
use crate::id::PeerId;

#[derive(Debug, Default)]
pub(crate) struct Subscriptions(RwLock<SubscriptionTable>);

#[derive(Debug, Default)]
pub(crate) struct SubscriptionTable {
    last_number: u32,
    index: Index,
    by_peer: HashMap<PeerId, Vec<Arc<Subscription>>>,
    /// Whether publishers do, or did, wait for the room of any subscription.
    can_block: bool,
    is_closed: bool,
}

impl Subscriptions {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, SubscriptionTable> {
        self.0.read()
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, SubscriptionTable> {
        self.0.write()
    }
}

impl SubscriptionTable {
    /// The subscriptions of all that serve this peer's inbox.
    pub(crate) fn of(&self, owner: PeerId) -> &[Arc<Subscription>] {
        self.by_peer.get(&owner).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Subscription>> {
        self.by_peer.values().flatten()
    }

    /// A number for one more subscription of this peer. It comes again only after four thousand million others.
    pub(crate) fn next_number(&mut self, owner: PeerId) -> u32 {
        loop {
            self.last_number = self.last_number.wrapping_add(1);
            if self.of(owner).iter().all(|own| own.number != self.last_number) {
                return self.last_number;
            }
        }
    }

    pub(crate) fn insert(&mut self, subscription: Arc<Subscription>) {
        self.by_peer.entry(subscription.peer.id()).or_default().push(subscription.clone());
        self.index.insert(subscription);
    }

    pub(crate) fn note_block(&mut self, blocks: bool) {
        self.can_block |= blocks;
    }

    /// Main has ended: a new subscriber is told to stop.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The matching subscriptions of these peers, if their inboxes are served; and the number of comparisons.
    pub(crate) fn of_peers(&self, peers: &[PeerId], topic: &Topic) -> (Vec<Arc<Subscription>>, u32) {
        let own: Vec<_> = peers.iter().flat_map(|peer| self.of(*peer)).collect();
        let is_meant = |own: &&&Arc<Subscription>| own.pattern.matches(topic) && own.inbox.is_served();
        let compared = u32::try_from(own.len()).unwrap_or(u32::MAX);
        (own.iter().filter(is_meant).map(|own| (*own).clone()).collect(), compared)
    }

    /// Every matching subscription, and the number of comparisons.
    pub(crate) fn matching(&self, topic: &Topic) -> (Vec<Arc<Subscription>>, u32) {
        self.index.matching(topic)
    }

    pub(crate) fn can_block(&self) -> bool {
        self.can_block
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
impl Subscriptions {
    /// Whether nothing is left of any subscription.
    pub(crate) fn is_empty(&self) -> bool {
        let table = self.read();
        table.by_peer.is_empty() && table.index.is_empty()
    }
}
