//! Who has subscribed to what.

mod index;

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use weir_names::{Policy, Topic, TopicPattern};

use self::index::Index;
use super::{
    Bus, Delivery, Error, LaneStats, Peer, PeerId,
    inbox::{Inbox, ReaderId},
    peer::parsed,
};

/// Every subscription: by pattern, and by the peer that it belongs to.
#[derive(Debug, Default)]
pub(super) struct Subscriptions(RwLock<Table>);

#[derive(Debug, Default)]
pub(super) struct Table {
    last_number: u32,
    index: Index,
    by_peer: HashMap<PeerId, Vec<Arc<Subscription>>>,
    /// Whether there is, or was, one for whose room publishers wait.
    can_block: bool,
    is_closed: bool,
}

/// One peer's wish for the events of one pattern.
#[derive(Debug)]
pub struct Subscription {
    number: u32,
    pattern: TopicPattern,
    pub(super) peer: Arc<Peer>,
    pub(super) inbox: Arc<Inbox>,
    /// The last instance that asked for it.
    asked_by: AtomicU64,
    /// One that is to take over gets the last values of retained topics when it does.
    greets_successor: AtomicBool,
    /// Bytes of the largest payload that the peer takes.
    message_size: AtomicU64,
}

/// A subscription as it is shown.
#[derive(Clone, Debug)]
pub struct SubscriptionStats {
    pub peer: Arc<str>,
    pub pattern: TopicPattern,
    pub delivery: Delivery,
    pub lane: LaneStats,
}

impl Subscription {
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Whether its peer takes a payload of this size.
    pub(super) fn takes(&self, payload_bytes: usize) -> bool {
        payload_bytes as u64 <= self.message_size.load(Ordering::Relaxed)
    }

    fn last_asker(&self) -> ReaderId {
        ReaderId(self.asked_by.load(Ordering::Relaxed))
    }

    fn set_message_size(&self, bytes: u64) {
        self.message_size.store(bytes, Ordering::Relaxed);
    }
}

impl Bus {
    /// Subscribes `peer`; its events go to `inbox`, in its own way or as its grants have it. The same
    /// pattern and inbox give the same subscription.
    pub fn subscribe(
        &self,
        peer: &Arc<Peer>,
        inbox: &Arc<Inbox>,
        pattern: &str,
        delivery: Option<Delivery>,
    ) -> Result<Arc<Subscription>, Error> {
        let pattern: TopicPattern = parsed(pattern)?;
        let granted = peer.may_subscribe(&pattern)?;
        if peer.is_predecessor()
            && let Some(current) = self.peer(peer.id())
        {
            // It would subscribe for the one after it, which may be granted less.
            current.may_subscribe(&pattern)?;
        }
        let delivery = delivery.unwrap_or(granted);
        let mut table = self.subscriptions.write();
        let table = &mut *table;
        if table.is_closed {
            inbox.stop(inbox.current(peer.seat()));
        }
        let reader = peer.reader();
        // Those who serve one inbox share what is subscribed to.
        let owner = self.peer(peer.owner()).unwrap_or_else(|| peer.clone());
        let own = table.by_peer.entry(owner.id()).or_default();
        if let Some(known) = own.iter().find(|s| s.pattern == pattern && Arc::ptr_eq(&s.inbox, inbox)) {
            inbox.note_reader(known.number, reader);
            if known.asked_by.fetch_max(reader.0, Ordering::Relaxed) < reader.0 {
                if peer.is_current() {
                    self.give_retained(known);
                } else {
                    // The one that serves has had it.
                    known.greets_successor.store(true, Ordering::Relaxed);
                }
            }
            return Ok(known.clone());
        }
        let (used, allowed) = (own.len() as u64 + 1, peer.limits().subscriptions);
        if used > allowed {
            return Err(Error::LimitExceeded { name: "subscriptions".into(), used, allowed });
        }
        table.last_number = table.last_number.wrapping_add(1);
        let subscription = Arc::new(Subscription {
            number: table.last_number,
            pattern,
            peer: owner,
            inbox: inbox.clone(),
            asked_by: AtomicU64::new(reader.0),
            greets_successor: AtomicBool::new(false),
            message_size: AtomicU64::new(peer.limits().message_size),
        });
        let names_one_topic = subscription.pattern.as_topic().is_some();
        inbox.add_subscription(subscription.number, names_one_topic, reader, delivery);
        table.can_block |= delivery.policy == Policy::Block;
        own.push(subscription.clone());
        table.index.insert(subscription.clone());
        // The table is held: what is published from here on comes after it.
        self.give_retained(&subscription);
        Ok(subscription)
    }

    /// Ends a subscription of `peer` and drops what waits of it.
    pub fn unsubscribe(&self, peer: &Peer, number: u32) -> Result<(), Error> {
        let ended = self.unsubscribe_those(peer, |subscription| subscription.number == number);
        match ended {
            0 => Err(Error::Invalid(format!("`{}` has no subscription {number}", peer.name()))),
            _ => Ok(()),
        }
    }

    /// Ends every subscription of `peer`.
    pub(super) fn unsubscribe_all(&self, peer: &Peer) {
        self.unsubscribe_those(peer, |_| true);
    }

    /// The limits and grants of a peer have changed: what it could not subscribe to now ends, and the rest
    /// waits as it does now.
    pub fn renew_subscriptions(&self, peer: &Peer) {
        self.unsubscribe_those(peer, |subscription| peer.may_subscribe(&subscription.pattern).is_err());
        let mut table = self.subscriptions.write();
        let table = &mut *table;
        for subscription in table.by_peer.get(&peer.owner()).into_iter().flatten() {
            subscription.set_message_size(peer.limits().message_size);
            if let Ok(delivery) = peer.may_subscribe(&subscription.pattern) {
                subscription.inbox.hold_events(subscription.number, false);
                subscription.inbox.set_delivery(subscription.number, delivery);
                if subscription.greets_successor.swap(false, Ordering::Relaxed) {
                    self.give_retained(subscription);
                }
                table.can_block |= delivery.policy == Policy::Block;
            }
        }
    }

    /// The limits and grants of a peer may be taken back: until it is said which hold, events wait as they did,
    /// and it gets none of what it could not subscribe to.
    pub(super) fn hold_subscriptions(&self, peer: &Peer) {
        let table = self.subscriptions.read();
        for subscription in table.by_peer.get(&peer.owner()).into_iter().flatten() {
            let is_granted = peer.may_subscribe(&subscription.pattern).is_ok();
            subscription.inbox.hold_events(subscription.number, !is_granted);
        }
    }

    /// An instance that was to take over has ended before: what it alone had subscribed to ends.
    pub fn discard(&self, peer: &Peer) {
        let reader = peer.reader();
        self.unsubscribe_those(peer, |own| own.inbox.leave(own.number, reader, own.last_asker()));
        peer.end_instance();
    }

    fn unsubscribe_those(&self, peer: &Peer, ends: impl Fn(&Subscription) -> bool) -> usize {
        let ended = self.subscriptions.write().remove(peer.owner(), ends);
        for ended in &ended {
            ended.inbox.remove_subscription(ended.number);
        }
        ended.len()
    }

    /// Whoever waits for an event is told to stop, and so is whoever subscribes from here on.
    pub(super) fn close_subscriptions(&self) {
        let mut table = self.subscriptions.write();
        table.is_closed = true;
        for subscription in table.by_peer.values().flatten() {
            subscription.inbox.stop_all();
        }
    }

    /// Every subscription, by peer.
    pub fn subscription_stats(&self) -> Vec<SubscriptionStats> {
        let all: Vec<_> = self.subscriptions.read().by_peer.values().flatten().cloned().collect();
        let mut stats: Vec<_> = all.iter().map(|own| own.stats()).collect();
        stats.sort_by(|a, b| (&a.peer, &a.pattern).cmp(&(&b.peer, &b.pattern)));
        stats
    }

    /// How many have subscribed to a topic.
    pub fn subscribers(&self, topic: &Topic) -> usize {
        self.subscriptions.read().matching(topic).0.len()
    }

    fn give_retained(&self, subscription: &Subscription) {
        for value in self.topics.values() {
            if !subscription.pattern.matches(&value.topic) {
                continue;
            }
            if subscription.takes(value.payload.len()) {
                subscription.inbox.push_retained(subscription.number, &value);
            } else {
                subscription.inbox.lose_event(subscription.number);
                self.count_lost(&subscription.peer, 1);
            }
        }
    }
}

impl Subscription {
    fn stats(&self) -> SubscriptionStats {
        let (delivery, lane) = self.inbox.lane_stats(self.number);
        SubscriptionStats { peer: self.peer.name().into(), pattern: self.pattern.clone(), delivery, lane }
    }
}

impl Subscriptions {
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Those of one peer that match a topic, if somebody serves its inbox; and how many comparisons that
    /// took.
    pub(super) fn of_peer(&self, peer: Option<PeerId>, topic: &Topic) -> (Vec<Arc<Subscription>>, u32) {
        let own = peer.and_then(|peer| self.by_peer.get(&peer)).map_or(&[][..], Vec::as_slice);
        let is_meant = |own: &&Arc<Subscription>| own.pattern.matches(topic) && own.inbox.is_served();
        (own.iter().filter(is_meant).cloned().collect(), u32::try_from(own.len()).unwrap_or(u32::MAX))
    }

    /// Every subscription that matches, and how many comparisons that took.
    pub(super) fn matching(&self, topic: &Topic) -> (Vec<Arc<Subscription>>, u32) {
        self.index.matching(topic)
    }

    pub(super) fn can_block(&self) -> bool {
        self.can_block
    }

    fn remove(&mut self, peer: PeerId, ends: impl Fn(&Subscription) -> bool) -> Vec<Arc<Subscription>> {
        let Some(own) = self.by_peer.get_mut(&peer) else {
            return Vec::new();
        };
        let (ended, kept): (Vec<_>, Vec<_>) = std::mem::take(own).into_iter().partition(|s| ends(s));
        *own = kept;
        for subscription in &ended {
            self.index.remove(subscription);
        }
        ended
    }
}
