//! The events of an inbox, by subscription. Each call takes the inbox's lock.

use std::sync::Arc;

use parking_lot::{MappedMutexGuard, MutexGuard};

use super::{
    Inbox,
    event_lane::{EventOrigin, LaneSettings, PushOutcome},
    event_lanes::EventLanes,
    lanes::wake,
};
use crate::{message::Published, room::Room};

impl Inbox {
    /// Locks the inbox and returns the events of all subscriptions.
    pub(crate) fn events(&self) -> MappedMutexGuard<'_, EventLanes> {
        MutexGuard::map(self.lanes.lock(), |lanes| &mut lanes.events)
    }

    pub(crate) fn remove_subscription(&self, subscription: u32) {
        let mut lanes = self.lanes.lock();
        lanes.events.remove(subscription);
        let has_admitted = lanes.admit_events();
        if has_admitted {
            wake(lanes);
        }
    }

    /// Sets whether all instances are kept from the events of a subscription.
    pub(crate) fn hold_events(&self, subscription: u32, hold: bool) {
        let mut lanes = self.lanes.lock();
        lanes.events.hold(subscription, hold);
        wake(lanes);
    }

    pub(crate) fn set_delivery(&self, subscription: u32, delivery: LaneSettings) {
        let mut lanes = self.lanes.lock();
        let limits = lanes.beside_replies();
        lanes.events.set_delivery(subscription, delivery, limits);
        lanes.admit_events();
        wake(lanes);
    }

    /// Whether the publisher of an event of this size would wait for room.
    pub(crate) fn blocks(&self, subscription: u32, bytes: u64) -> bool {
        let lanes = self.lanes.lock();
        lanes.is_served() && lanes.events.blocks(subscription, bytes, lanes.beside_replies())
    }

    /// Appends an event. Without room, its subscription's policy decides.
    pub(crate) fn push_event(
        &self,
        subscription: u32,
        published: Arc<Published>,
        coming: EventOrigin<'_>,
    ) -> PushOutcome {
        let mut lanes = self.lanes.lock();
        let (limits, is_down) = (lanes.beside_replies(), !lanes.is_served());
        let pushed = lanes.events.push(subscription, published, coming, limits, is_down);
        lanes.note_peak();
        if pushed.delivered {
            wake(lanes);
        }
        pushed
    }

    /// Gives the last value of a topic to a new subscriber, unless that event or a later one waits already.
    pub(crate) fn push_retained(&self, subscription: u32, published: &Arc<Published>) {
        if !self.lanes.lock().events.has_since(subscription, published) {
            self.push_event(subscription, published.clone(), EventOrigin::Retained);
        }
    }

    /// Refuses the events that still wait for this room, because their publisher waits no more. Returns how many there
    /// were.
    pub(crate) fn withdraw(&self, subscription: u32, room: &Arc<Room>) -> u32 {
        let mut lanes = self.lanes.lock();
        let withdrawn = lanes.events.withdraw(subscription, room);
        let has_admitted = lanes.admit_events();
        if has_admitted {
            wake(lanes);
        }
        withdrawn
    }
}
