//! How the instances at an inbox follow each other: which one is current, and what happens to the messages that an
//! ended instance leaves.

use std::{fmt::Debug, sync::Arc, task::Waker};

use super::{
    Inbox, InboxLimits,
    lanes::{InstanceEntry, Seat, SeatState, StopState, wake},
};
use crate::{id::InstanceId, message::Incoming, waiter::Waiter};

/// What runs an instance, and ends it if a caller wants the work for its request ended.
pub trait EndedByCaller: Debug + Send + Sync {
    /// Ends the instance, if it [has this request in hand](crate::Peer::has_in_hand) or takes it just now.
    fn end_for(&self, request: Arc<Waiter>);
}

impl Inbox {
    /// Adds a seat for one more peer that serves this inbox. It refuses requests until the peer's phase is set.
    pub(crate) fn add_seat(&self) -> Seat {
        let mut lanes = self.lanes.lock();
        lanes.seats.push(SeatState { current: InstanceId::NOBODY, refuses: true });
        Seat(lanes.seats.len() - 1)
    }

    /// Adds a new instance beside the others, and returns its number.
    pub(crate) fn open(&self) -> InstanceId {
        let mut lanes = self.lanes.lock();
        lanes.last_instance = InstanceId(lanes.last_instance.0 + 1);
        let id = lanes.last_instance;
        lanes.instances.push(InstanceEntry::new(id));
        id
    }

    /// Makes the requests and events of a seat go to this instance from now on, and sets the inbox's limits. The seat's
    /// former instance is told to stop.
    pub(crate) fn set_current(&self, seat: Seat, instance: InstanceId, limits: InboxLimits) {
        let mut lanes = self.lanes.lock();
        lanes.limits = limits;
        lanes.admit_events();
        lanes.admit_requests();
        let Some(sitting) = lanes.seats.get_mut(seat.0) else { return };
        let former = std::mem::replace(&mut sitting.current, instance);
        if former != instance
            && let Some(former) = lanes.instance(former)
            && former.stop == StopState::No
        {
            former.stop = StopState::Asked;
        }
        wake(lanes);
    }

    /// Removes an instance that has ended. Replies to it are dropped, and all other messages wait for another instance.
    pub(crate) fn close(&self, instance: InstanceId) {
        let mut lanes = self.lanes.lock();
        // The ended instance is woken with the others, so that a wait of its own ends.
        let waiting = lanes.waiting();
        let closed: Vec<_> = lanes.instances.extract_if(.., |own| own.id == instance).collect();
        drop(lanes);
        waiting.into_iter().for_each(Waker::wake);
        drop(closed);
    }

    pub(crate) fn set_ended_by_caller(&self, instance: InstanceId, ended: Arc<dyn EndedByCaller>) {
        if let Some(own) = self.lanes.lock().instance(instance) {
            own.ended_by_caller = Some(ended);
        }
    }

    /// Ends the instance that has this request in hand.
    pub(crate) fn end_work(&self, request: &Arc<Waiter>) {
        let told: Vec<_> =
            self.lanes.lock().instances.iter().filter_map(|own| own.ended_by_caller.clone()).collect();
        told.into_iter().for_each(|ended| ended.end_for(request.clone()));
    }

    pub(crate) fn is_current(&self, instance: InstanceId) -> bool {
        self.lanes.lock().is_current(instance)
    }

    /// Whether this instance is the current one of a seat and was not told to stop.
    pub(crate) fn is_serving(&self, instance: InstanceId) -> bool {
        let mut lanes = self.lanes.lock();
        lanes.is_current(instance) && lanes.instance(instance).is_some_and(|own| own.stop == StopState::No)
    }

    pub(crate) fn current(&self, seat: Seat) -> InstanceId {
        self.lanes.lock().seats.get(seat.0).map_or(InstanceId::NOBODY, |sitting| sitting.current)
    }

    /// Whether some peer that shares the inbox takes requests, or will.
    pub(crate) fn is_served(&self) -> bool {
        self.lanes.lock().is_served()
    }

    /// Sets whether the peer at this seat refuses requests, because it is down or about to be. If the peers at all
    /// seats refuse, senders that wait for room are turned away.
    pub(crate) fn refuse_requests(&self, seat: Seat, refuse: bool) {
        let mut lanes = self.lanes.lock();
        if let Some(sitting) = lanes.seats.get_mut(seat.0) {
            sitting.refuses = refuse;
        }
        if !lanes.is_served() {
            lanes.events.turn_away();
            let turned_away = std::mem::take(&mut lanes.parked);
            drop(lanes);
            drop(turned_away);
        }
    }

    /// Drops all requests and events, and the replies to this seat's current instance. Callers that wait for an answer
    /// get `peer-gone`.
    pub fn clear(&self, seat: Seat) {
        let mut lanes = self.lanes.lock();
        let current = lanes.seats.get(seat.0).map_or(InstanceId::NOBODY, |sitting| sitting.current);
        let replies = lanes.instance(current).map(|instance| instance.replies.retain(|_| false));
        let requests = (lanes.requests.retain(|_| false), std::mem::take(&mut lanes.parked));
        lanes.events.clear();
        let dropped = (replies, requests);
        drop(lanes);
        // Dropped outside the lock, because dropping a request answers it, perhaps into this inbox.
        drop(dropped);
    }

    /// Puts the messages that an ended instance had not reached back to the front, in the order given. `lost` counts
    /// the events that the instance had in hand, by subscription. Replies are dropped.
    ///
    /// If another instance has taken over, it may have read later messages. Then these messages are lost too, so that
    /// none arrives out of order.
    pub(crate) fn give_back(&self, instance: InstanceId, messages: Vec<Incoming>, lost: &[(u32, u64)]) {
        let mut lanes = self.lanes.lock();
        let (messages, unreached) = match lanes.is_current(instance) {
            true => (messages, Vec::new()),
            false => (Vec::new(), messages),
        };
        for message in messages.into_iter().rev() {
            match message {
                Incoming::Request(request) => lanes.requests.push_front(request),
                Incoming::Event(event) => lanes.events.push_front(event),
                Incoming::Reply(_) => {}
            }
        }
        for message in &unreached {
            if let Incoming::Event(event) = message {
                lanes.events.lose_in_hand(event.subscription, event.lost.saturating_add(1));
            }
        }
        for (subscription, lost) in lost {
            lanes.events.lose_in_hand(*subscription, *lost);
        }
        lanes.note_peak();
        wake(lanes);
        // Dropped outside the lock, because this tells callers that no answer comes.
        drop(unreached);
    }
}
