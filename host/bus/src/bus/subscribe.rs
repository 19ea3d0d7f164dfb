//! Subscriptions: their peers, their ends, and the last values that a new one starts with.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use weir_names::{Error, Policy, Topic, TopicPattern};
use weir_reports::SubscriptionStatus;

use super::Bus;
use crate::{
    id::parsed,
    inbox::{Inbox, LaneSettings},
    message::Event,
    peer::Peer,
    subscriptions::Subscription,
};

impl Bus {
    /// Subscribes `peer` to a pattern. Events wait in `inbox`, by `delivery` or else by the settings of the grant. The
    /// last values of retained topics come first.
    ///
    /// A subscription to the same pattern with the same inbox is returned as it is, whatever `delivery` says. An
    /// instance that had not asked for it gets the last values again.
    pub fn subscribe(
        &self,
        peer: &Arc<Peer>,
        inbox: &Arc<Inbox>,
        pattern: &str,
        delivery: Option<LaneSettings>,
    ) -> Result<Arc<Subscription>, Error> {
        let pattern: TopicPattern = parsed(pattern)?;
        // Locked before the check of grants: a later change waits for the lock, and ends what it does not cover.
        let mut table = self.subscriptions.write();
        let granted = peer.may_subscribe(&pattern)?;
        if peer.is_predecessor()
            && let Some(current) = self.peer(peer.id())
        {
            // The subscription would pass from the predecessor to its successor, which may be granted less.
            current.may_subscribe(&pattern)?;
        }
        let delivery = delivery.unwrap_or(granted);
        if peer.has_left() {
            return Err(Error::PeerGone);
        }
        if table.is_closed {
            inbox.stop(inbox.current(peer.seat()));
        }
        let instance = peer.instance();
        // Peers that serve one inbox share its subscriptions.
        let original = self.peer(peer.original()).unwrap_or_else(|| peer.clone());
        let own = table.of(original.id());
        if let Some(known) = own.iter().find(|s| s.pattern == pattern && Arc::ptr_eq(&s.inbox, inbox)) {
            inbox.events().note_instance(known.number, instance);
            if known.asked_by.fetch_max(instance.0, Ordering::Relaxed) < instance.0 {
                if peer.is_current() {
                    self.give_retained(known);
                } else {
                    // The current instance has had these values: the successor gets them when it takes over.
                    known.greets_successor.store(true, Ordering::Relaxed);
                }
            }
            return Ok(known.clone());
        }
        let (used, allowed) = (own.len() as u64 + 1, peer.limits().subscriptions);
        if used > allowed {
            return Err(Error::LimitExceeded { name: "subscriptions".into(), used, allowed });
        }
        let subscription = Arc::new(Subscription {
            number: table.next_number(original.id()),
            pattern,
            peer: original,
            inbox: inbox.clone(),
            asked_by: AtomicU64::new(instance.0),
            greets_successor: AtomicBool::new(false),
            message_size: AtomicU64::new(peer.limits().message_size),
        });
        let names_one_topic = subscription.pattern.as_topic().is_some();
        inbox.events().add(subscription.number, names_one_topic, instance, delivery);
        table.can_block |= delivery.policy == Policy::Block;
        table.insert(subscription.clone());
        // The table is locked: later events come after the retained ones.
        self.give_retained(&subscription);
        Ok(subscription)
    }

    /// Ends a subscription of `peer` and drops its waiting events.
    pub fn unsubscribe(&self, peer: &Peer, number: u32) -> Result<(), Error> {
        let ended = self.unsubscribe_those(peer, |subscription| subscription.number == number);
        match ended {
            0 => Err(Error::Invalid(format!("`{}` has no subscription {number}", peer.name()))),
            _ => Ok(()),
        }
    }

    /// Applies a peer's new limits and grants to its subscriptions. Those without a grant end now; the events of the
    /// others wait under the settings of the new grants.
    pub fn renew_subscriptions(&self, peer: &Peer) {
        self.unsubscribe_those(peer, |subscription| peer.may_subscribe(&subscription.pattern).is_err());
        let (mut table, mut blocks) = (self.subscriptions.write(), false);
        for subscription in table.of(peer.original()) {
            subscription.set_message_size(peer.limits().message_size);
            if let Ok(delivery) = peer.may_subscribe(&subscription.pattern) {
                subscription.inbox.hold_events(subscription.number, false);
                subscription.inbox.set_delivery(subscription.number, delivery);
                if subscription.greets_successor.swap(false, Ordering::Relaxed) {
                    self.give_retained(subscription);
                }
                blocks |= delivery.policy == Policy::Block;
            }
        }
        table.can_block |= blocks;
    }

    /// Ends the instance of a version that is given up, and the subscriptions that no other instance asked for.
    pub fn discard(&self, peer: &Peer) {
        let instance = peer.instance();
        self.unsubscribe_those(peer, |own| own.inbox.events().leave(own.number, instance, own.last_asker()));
        peer.end_instance();
    }

    /// Fails if `peer` may not subscribe to this pattern now.
    pub fn may_subscribe(&self, peer: &Peer, pattern: &str) -> Result<(), Error> {
        peer.may_subscribe(&parsed(pattern)?).map(drop)
    }

    /// The last values of retained topics that match, for a peer that may subscribe to them.
    pub fn retained(&self, peer: &Peer, pattern: &str) -> Result<Vec<Event>, Error> {
        let pattern: TopicPattern = parsed(pattern)?;
        peer.may_subscribe(&pattern)?;
        if peer.has_left() {
            return Err(Error::PeerGone);
        }
        let values = self.topics.values().into_iter().filter(|value| pattern.matches(&value.topic));
        let names_one_topic = pattern.as_topic().is_some();
        let event =
            |published| Event { subscription: 0, names_one_topic, lost: 0, retained: true, published };
        Ok(values.map(event).collect())
    }

    /// The numbers of a peer's subscriptions.
    pub fn subscriptions_of(&self, peer: &Peer) -> Vec<u32> {
        self.subscriptions.read().of(peer.original()).iter().map(|own| own.number).collect()
    }

    /// Every subscription, by peer.
    pub fn subscriptions(&self) -> Vec<SubscriptionStatus> {
        let all: Vec<_> = self.subscriptions.read().all().cloned().collect();
        let mut stats: Vec<_> = all.iter().map(|own| own.status()).collect();
        stats.sort_by(|a, b| (&a.subscriber, &a.pattern).cmp(&(&b.subscriber, &b.pattern)));
        stats
    }

    /// The number of subscriptions that match a topic.
    pub fn subscribers(&self, topic: &Topic) -> usize {
        self.subscriptions.read().index.matching(topic).0.len()
    }

    pub(crate) fn unsubscribe_all(&self, peer: &Peer) {
        self.unsubscribe_those(peer, |_| true);
    }

    /// Holds back the events of subscriptions that a peer's new grants do not cover, because these grants are on trial.
    /// The other events wait under the former settings until the trial is decided.
    pub(crate) fn hold_subscriptions(&self, peer: &Peer) {
        let table = self.subscriptions.read();
        for subscription in table.of(peer.original()) {
            let is_granted = peer.may_subscribe(&subscription.pattern).is_ok();
            subscription.inbox.hold_events(subscription.number, !is_granted);
        }
    }

    /// Tells present and later subscribers to stop.
    pub(crate) fn close_subscriptions(&self) {
        let mut table = self.subscriptions.write();
        table.is_closed = true;
        for subscription in table.all() {
            subscription.inbox.stop_all();
        }
    }

    fn unsubscribe_those(&self, peer: &Peer, ends: impl Fn(&Subscription) -> bool) -> usize {
        let ended = self.subscriptions.write().remove(peer.original(), ends);
        for ended in &ended {
            ended.inbox.remove_subscription(ended.number);
            if !Arc::ptr_eq(&ended.inbox, ended.peer.inbox()) {
                // The inbox has only this subscription, so its instance is told to stop.
                ended.inbox.stop_all();
            }
        }
        ended.len()
    }

    /// Gives a subscription the last values of the retained topics that match. Too large ones count as lost.
    fn give_retained(&self, subscription: &Subscription) {
        for value in self.topics.values() {
            if !subscription.pattern.matches(&value.topic) {
                continue;
            }
            if subscription.takes(value.payload.len()) {
                subscription.inbox.push_retained(subscription.number, &value);
            } else {
                subscription.inbox.events().lose(subscription.number);
                self.count_lost(&subscription.peer, 1);
            }
        }
    }
}
