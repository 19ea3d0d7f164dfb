//! Who has subscribed to what, and the delivery of events.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;

use super::{
    Bus, Error, Event, Peer, PeerId, Receipt,
    inbox::{Inbox, ReaderId},
    message::Published,
    peer::parsed,
};
use crate::names::{Topic, TopicPattern};

/// Every subscription: by topic where it names one, the others in a list.
#[derive(Debug, Default)]
pub(super) struct Subscriptions(RwLock<Table>);

#[derive(Debug, Default)]
struct Table {
    last_number: u32,
    by_topic: HashMap<Topic, Vec<Arc<Subscription>>>,
    by_pattern: Vec<Arc<Subscription>>,
    by_peer: HashMap<PeerId, Vec<Arc<Subscription>>>,
    is_closed: bool,
}

/// One peer's wish for the events of one pattern.
#[derive(Debug)]
pub(crate) struct Subscription {
    number: u32,
    pattern: TopicPattern,
    is_topic: bool,
    peer: Arc<Peer>,
    inbox: Arc<Inbox>,
    /// The first instance that asked for it. None before it knows of it.
    since: AtomicU64,
    /// Held while an event is delivered, so that order and number agree.
    matching: Mutex<Matching>,
    /// The number of the last event that was taken from the inbox.
    taken: AtomicU64,
    /// Events before that one, with which an instance has died since.
    lost_before: AtomicU64,
}

#[derive(Debug)]
struct Matching {
    /// Events that matched so far.
    matched: u64,
    /// Bytes of the largest payload that the peer takes.
    message_size: u64,
}

impl Subscription {
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Whether its events are for this instance.
    pub(super) fn is_for(&self, reader: ReaderId) -> bool {
        reader.0 >= self.since.load(Ordering::Relaxed)
    }

    /// Whether it names one topic, without a wildcard.
    pub(crate) fn is_topic(&self) -> bool {
        self.is_topic
    }

    /// Marks an event as taken from the inbox; returns how many were lost since the one before.
    pub(crate) fn take(&self, sequence: u64) -> u64 {
        let before = self.taken.swap(sequence, Ordering::Relaxed);
        let missed = sequence.saturating_sub(before).saturating_sub(1);
        missed.saturating_add(self.lost_before.swap(0, Ordering::Relaxed))
    }

    /// Takes that back: whoever took it, and was told of `lost`, has died with it. Of several, the last is
    /// taken back first.
    pub(crate) fn untake(&self, sequence: u64, lost: u64) {
        if self.taken.load(Ordering::Relaxed) == sequence {
            self.taken.store(sequence.saturating_sub(lost).saturating_sub(1), Ordering::Relaxed);
        } else {
            // Another instance has gone on meanwhile.
            self.lost_before.fetch_add(lost.saturating_add(1), Ordering::Relaxed);
        }
    }

    fn deliver(self: &Arc<Self>, published: &Arc<Published>) -> Receipt {
        let mut matching = self.matching();
        matching.matched += 1;
        if published.payload.len() as u64 > matching.message_size {
            return Receipt { delivered: 0, shed: 1 };
        }
        self.peer.note_size(&published.payload);
        let event =
            Event { subscription: self.clone(), sequence: matching.matched, published: published.clone() };
        let lost = self.inbox.push_event(event);
        Receipt { delivered: 1, shed: lost }
    }

    fn matching(&self) -> MutexGuard<'_, Matching> {
        self.matching.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bus {
    /// Subscribes `peer`; its events go to `inbox`. The same pattern and inbox give the same
    /// subscription.
    pub(crate) fn subscribe(
        &self,
        peer: &Arc<Peer>,
        inbox: &Arc<Inbox>,
        pattern: &str,
    ) -> Result<Arc<Subscription>, Error> {
        let pattern: TopicPattern = parsed(pattern)?;
        peer.may_subscribe(&pattern)?;
        if peer.is_predecessor()
            && let Some(current) = self.peer(peer.id())
        {
            // It would subscribe for the one after it, which may be granted less.
            current.may_subscribe(&pattern)?;
        }
        let mut table = self.subscriptions.write();
        let table = &mut *table;
        if table.is_closed {
            inbox.stop(inbox.current());
        }
        let own = table.by_peer.entry(peer.id()).or_default();
        if let Some(known) = own.iter().find(|s| s.pattern == pattern && Arc::ptr_eq(&s.inbox, inbox)) {
            known.since.fetch_min(peer.reader().0, Ordering::Relaxed);
            return Ok(known.clone());
        }
        let (used, allowed) = (own.len() as u64 + 1, peer.limits().subscriptions);
        if used > allowed {
            return Err(Error::LimitExceeded { name: "subscriptions", used, allowed });
        }
        table.last_number = table.last_number.wrapping_add(1);
        let topic = pattern.as_topic();
        let subscription = Arc::new(Subscription {
            number: table.last_number,
            pattern,
            is_topic: topic.is_some(),
            peer: peer.clone(),
            inbox: inbox.clone(),
            since: AtomicU64::new(peer.reader().0),
            matching: Mutex::new(Matching { matched: 0, message_size: peer.limits().message_size }),
            taken: AtomicU64::new(0),
            lost_before: AtomicU64::new(0),
        });
        own.push(subscription.clone());
        match topic {
            Some(topic) => table.by_topic.entry(topic).or_default().push(subscription.clone()),
            None => table.by_pattern.push(subscription.clone()),
        }
        Ok(subscription)
    }

    /// Ends a subscription of `peer` and drops what waits of it.
    pub(crate) fn unsubscribe(&self, peer: &Peer, number: u32) -> Result<(), Error> {
        let ended = self.subscriptions.write().remove(peer.id(), |s| s.number == number);
        match ended.first() {
            Some(subscription) => {
                subscription.inbox.drop_events_of(number);
                Ok(())
            }
            None => Err(Error::Invalid(format!("`{}` has no subscription {number}", peer.name()))),
        }
    }

    /// Ends every subscription of `peer`.
    pub(super) fn unsubscribe_all(&self, peer: &Peer) {
        self.unsubscribe_those(peer, |_| true);
    }

    /// The limits and grants of a peer have changed: what it could not subscribe to now ends.
    pub(super) fn renew_subscriptions(&self, peer: &Peer) {
        self.unsubscribe_those(peer, |subscription| peer.may_subscribe(&subscription.pattern).is_err());
        for subscription in self.subscriptions.read().by_peer.get(&peer.id()).into_iter().flatten() {
            subscription.matching().message_size = peer.limits().message_size;
        }
    }

    /// An instance that was to take over has ended before: what it alone had subscribed to ends.
    pub(crate) fn discard(&self, peer: &Peer) {
        let reader = peer.reader();
        self.unsubscribe_those(peer, |subscription| subscription.since.load(Ordering::Relaxed) == reader.0);
        peer.end_instance();
    }

    fn unsubscribe_those(&self, peer: &Peer, ends: impl Fn(&Subscription) -> bool) {
        for ended in self.subscriptions.write().remove(peer.id(), ends) {
            ended.inbox.drop_events_of(ended.number);
        }
    }

    /// Whoever waits for an event is told to stop, and so is whoever subscribes from here on.
    pub(super) fn close_subscriptions(&self) {
        let mut table = self.subscriptions.write();
        table.is_closed = true;
        for subscription in table.by_peer.values().flatten() {
            subscription.inbox.stop(subscription.inbox.current());
        }
    }

    /// Patterns with which the topic of every event is compared.
    pub(crate) fn patterns(&self) -> u32 {
        u32::try_from(self.subscriptions.read().by_pattern.len()).unwrap_or(u32::MAX)
    }

    /// Publishes to every subscription that matches, or to those of one peer alone.
    pub(crate) fn publish(
        &self,
        sender: &Peer,
        to: Option<&str>,
        topic: &str,
        payload: Bytes,
    ) -> Result<Receipt, Error> {
        let topic: Topic = parsed(topic)?;
        sender.may_publish(&topic.clone().into())?;
        sender.check_size(&payload)?;
        let published = Arc::new(Published { sender: sender.id(), topic, at: Self::now(), payload });
        let table = self.subscriptions.read();
        let mut receipt = Receipt::default();
        for subscription in table.matching(&published.topic) {
            if to.is_none_or(|name| subscription.peer.name() == name && subscription.peer.takes_events()) {
                let one = subscription.deliver(&published);
                if one.shed > 0 {
                    self.count_lost(&subscription.peer, one.shed);
                }
                receipt.delivered += one.delivered;
                receipt.shed += one.shed;
            }
        }
        if let (Some(name), Receipt { delivered: 0, shed: 0 }) = (to, receipt) {
            let text = format!("`{name}` does not run or has not subscribed to `{}`", published.topic);
            return Err(Error::NoProvider(text));
        }
        sender.stats().sent.fetch_add(1, Ordering::Relaxed);
        Ok(receipt)
    }
}

impl Subscriptions {
    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn matching<'a>(&'a self, topic: &'a Topic) -> impl Iterator<Item = &'a Arc<Subscription>> {
        let exact = self.by_topic.get(topic).into_iter().flatten();
        exact.chain(self.by_pattern.iter().filter(|s| s.pattern.matches(topic)))
    }

    fn remove(&mut self, peer: PeerId, ends: impl Fn(&Subscription) -> bool) -> Vec<Arc<Subscription>> {
        let Some(own) = self.by_peer.get_mut(&peer) else {
            return Vec::new();
        };
        let (ended, kept): (Vec<_>, Vec<_>) = std::mem::take(own).into_iter().partition(|s| ends(s));
        *own = kept;
        let stays = |s: &Arc<Subscription>| !ended.iter().any(|gone| Arc::ptr_eq(gone, s));
        for topic in ended.iter().filter_map(|s| s.pattern.as_topic()) {
            if let Some(list) = self.by_topic.get_mut(&topic) {
                list.retain(stays);
                if list.is_empty() {
                    self.by_topic.remove(&topic);
                }
            }
        }
        self.by_pattern.retain(stays);
        ended
    }
}
