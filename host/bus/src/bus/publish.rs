//! The delivery of events to every matching subscription, and the publisher's wait where a policy is `block`.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;
use weir_metrics::moment;
use weir_names::{Error, Topic, harmless};
use weir_reports::TopicStatus;

use super::{Bus, deadlocks::WaitGuard};
use crate::{
    id::{MessageId, parsed},
    inbox::EventOrigin,
    message::{ENVELOPE_BYTES, Published, Receipt},
    owners::NAME_SHOWN,
    peer::{Peer, Wait, WaitTarget},
    room::Room,
    subscriptions::Subscription,
    topics::SharedTopic,
    trace::{Parent, What},
};

/// A published event, which still waits for room in lanes that were full under the policy `block`. Dropping this ends
/// the waits.
#[derive(Debug)]
#[must_use = "it does not wait for room unless awaited"]
pub struct Publishing {
    bus: Arc<Bus>,
    receipt: Receipt,
    /// How many comparisons it took to find the subscriptions. An extension pays fuel for each.
    pub compared: u32,
    waiting: Vec<PendingDelivery>,
    _waits: Option<WaitGuard>,
    topic: Option<SharedTopic>,
    /// The only receiver, if the publisher named one.
    to: Option<String>,
}

/// A delivery that waits for room in one subscriber's inbox.
#[derive(Debug)]
struct PendingDelivery {
    subscription: Arc<Subscription>,
    room: Arc<Room>,
    id: (Instant, MessageId),
}

impl Publishing {
    /// How many subscriptions took the event, refused it or let it wait, plus the events lost for want of room.
    pub fn deliveries(&self) -> u32 {
        let Receipt { delivered, shed, refused } = self.receipt;
        let waiting = self.waiting.len();
        delivered
            .saturating_add(shed)
            .saturating_add(refused)
            .saturating_add(u32::try_from(waiting).unwrap_or(u32::MAX))
    }

    /// Waits for room if the event must; returns what happened to it. Fails if the event was for one name, and all
    /// subscriptions of that name refused it.
    pub async fn receipt(mut self) -> Result<Receipt, Error> {
        let mut is_overdue = false;
        for waiting in &self.waiting {
            waiting.room.settled().await;
            is_overdue |= waiting.room.is_overdue();
        }
        self.end_waits();
        match (self.to.take(), self.receipt) {
            (Some(_), Receipt { delivered: 0, shed: 0, refused: 1.. }) if is_overdue => Err(Error::Timeout),
            (Some(name), Receipt { delivered: 0, shed: 0, refused: 1.. }) => Err(Error::Overloaded(name)),
            (_, receipt) => Ok(receipt),
        }
    }

    /// Withdraws what still waits for room, and counts how each wait ended.
    fn end_waits(&mut self) {
        let mut ended = Receipt::default();
        for PendingDelivery { subscription, room, id } in self.waiting.drain(..) {
            self.bus.deadlines.remove_room(id);
            subscription.inbox.withdraw(subscription.number(), &room);
            if room.is_admitted() {
                ended.delivered += 1;
            } else {
                ended.refused += 1;
                self.bus.count_lost(&subscription.peer, 1);
            }
        }
        self.receipt.delivered += ended.delivered;
        self.receipt.refused += ended.refused;
        if let Some(topic) = &self.topic {
            topic.lock().count(ended);
        }
    }
}

impl Drop for Publishing {
    fn drop(&mut self) {
        self.end_waits();
    }
}

impl Bus {
    /// Fails if `peer` may not publish on this topic now.
    pub fn may_publish(&self, peer: &Peer, topic: &str) -> Result<(), Error> {
        let topic: Topic = parsed(topic)?;
        peer.may_publish(&topic.into())
    }

    /// Publishes to every matching subscription, or only to those of the peer or the programs with the name `to`. Fails
    /// if `to` has no such subscription.
    ///
    /// Where a policy is `block`, the event waits at most `timeout` or else Main's default, and not beyond the parent's
    /// deadline. If the parent counts events that were lost before this one, each subscription reports them as lost.
    pub fn publish(
        self: &Arc<Self>,
        sender: &Arc<Peer>,
        to: Option<&str>,
        topic: &str,
        payload: Bytes,
        (timeout, parent): (Option<Duration>, Parent),
    ) -> Result<Publishing, Error> {
        let topic: Topic = parsed(topic)?;
        sender.may_publish(&topic.clone().into())?;
        sender.check_size(&payload)?;
        let table = self.subscriptions.read();
        let (subscriptions, compared) = match to {
            None => table.index.matching(&topic),
            Some(name) => table.of_peers(&self.owners.named(name), &topic),
        };
        if let Some(name) = to.filter(|_| subscriptions.is_empty()) {
            let name = harmless(name, NAME_SHOWN);
            let text = format!("`{name}` does not run or has not subscribed to `{topic}`");
            return Err(Error::NoProvider(text));
        }
        let stands_still = table.can_block && sender.stands_still();
        if stands_still {
            let bytes = ENVELOPE_BYTES + (topic.as_str().len() + payload.len()) as u64;
            let would_wait =
                |own: &&Arc<Subscription>| own.takes(payload.len()) && own.inbox.blocks(own.number(), bytes);
            let full: Vec<_> =
                subscriptions.iter().filter(would_wait).map(|own| WaitTarget::Peer(own.peer.id())).collect();
            self.refuse_circle(sender, full.iter())?;
        }
        let is_heard = !subscriptions.is_empty();
        let known = if to.is_none() { self.topics.get(&topic, is_heard, sender.sender()) } else { None };
        let mut state = known.as_ref().map(|topic| topic.lock());
        let sequence = state.as_deref_mut().map_or(0, |state| {
            state.sequence += 1;
            state.sequence
        });
        let now = Self::now();
        let span = self.traces.open(parent.trace, now);
        let (trace, at) = (span.as_ref().map(|span| Box::new(*span.context())), moment(now.into_std()));
        let published = Arc::new(Published { sender: sender.sender(), topic, sequence, at, payload, trace });
        let (mut receipt, mut blocked) = (Receipt::default(), Vec::new());
        for subscription in subscriptions {
            if parent.counted > 0 {
                subscription.inbox.events().note_lost(subscription.number(), parent.counted);
            }
            if let Some(room) = self.deliver(&subscription, &published, &mut receipt) {
                blocked.push((subscription, room));
            }
        }
        if let Some(state) = &mut state {
            state.note(&published, receipt);
        }
        drop(state);
        drop(table);
        sender.stats().sent.fetch_add(1, Ordering::Relaxed);
        if let Some(span) = span {
            span.end(What::Event(published.topic.clone()), published.sender, None, "ok");
        }
        let mut waits = Vec::new();
        let mut waiting = Vec::new();
        for (subscription, room) in blocked {
            let on = WaitTarget::Peer(subscription.peer.id());
            let id = (self.deadline_within(timeout, parent.deadline), self.next_message_id());
            if stands_still && self.refuse_circle(sender, std::iter::once(&on)).is_err() {
                // The room went after the check above, and the subscriber waits for the sender: the event is refused.
                room.expire();
            } else {
                self.deadlines.register_room(id, room.clone());
                waits.push(Wait { on, room: Some(room.clone()) });
            }
            waiting.push(PendingDelivery { subscription, room, id });
        }
        let to = to.map(ToOwned::to_owned);
        let bus = self.clone();
        // Made before the wait, because dropping it withdraws the waiting events if the wait is refused.
        let mut publishing = Publishing { bus, receipt, compared, waiting, _waits: None, topic: known, to };
        if stands_still && !waits.is_empty() {
            publishing._waits = Some(self.wait_for(sender, waits)?);
        }
        Ok(publishing)
    }

    /// Keeps the last value of these topics, and of no others.
    pub fn retain(&self, topics: impl IntoIterator<Item = Topic>) {
        self.topics.retain(topics);
    }

    /// Every known topic, by name.
    pub fn topics(&self) -> Vec<TopicStatus> {
        self.topics.status(|topic| self.subscribers(topic))
    }

    /// Delivers to one subscription; returns the room to wait for, if any.
    fn deliver(
        &self,
        subscription: &Subscription,
        published: &Arc<Published>,
        receipt: &mut Receipt,
    ) -> Option<Arc<Room>> {
        let (peer, inbox, number) = (&subscription.peer, &subscription.inbox, subscription.number());
        if !subscription.takes(published.payload.len()) {
            inbox.events().lose(number);
            receipt.shed += 1;
            self.count_lost(peer, 1);
            return None;
        }
        let mut room = None;
        let pushed = inbox.push_event(number, published.clone(), EventOrigin::Published(&mut room));
        receipt.shed += pushed.shed;
        receipt.refused += u32::from(pushed.refused);
        receipt.delivered += u32::from(pushed.delivered);
        let lost = pushed.shed + u32::from(pushed.refused);
        if lost > 0 {
            self.count_lost(peer, lost);
        }
        if pushed.delivered {
            peer.note_size(&published.payload);
        }
        room
    }
}
