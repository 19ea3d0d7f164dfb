//! The events of an inbox, by subscription, under its lock.

use std::sync::Arc;

use super::{
    Inbox,
    event_lane::{EventOrigin, LaneSettings, LaneStats, PushOutcome},
    lanes::wake,
};
use crate::{id::ReaderId, message::Published, room::Room};

impl Inbox {
    /// Adds a subscription. Its number is greater than all before.
    pub(crate) fn add_subscription(
        &self,
        number: u32,
        names_one_topic: bool,
        since: ReaderId,
        delivery: LaneSettings,
    ) {
        self.lanes.lock().events.add(number, names_one_topic, since, delivery);
    }

    pub(crate) fn remove_subscription(&self, subscription: u32) {
        let mut lanes = self.lanes.lock();
        lanes.events.remove(subscription);
        let has_admitted = lanes.admit_events();
        if has_admitted {
            wake(lanes);
        }
    }

    pub(crate) fn note_reader(&self, subscription: u32, reader: ReaderId) {
        self.lanes.lock().events.note_reader(subscription, reader);
    }

    pub(crate) fn leave(&self, subscription: u32, reader: ReaderId, last: ReaderId) -> bool {
        self.lanes.lock().events.leave(subscription, reader, last)
    }

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

    pub(crate) fn lane_stats(&self, subscription: u32) -> (LaneSettings, LaneStats) {
        self.lanes.lock().events.stats(subscription)
    }

    /// Whether the publisher of an event of so many bytes would wait for room.
    pub(crate) fn blocks(&self, subscription: u32, bytes: u64) -> bool {
        let lanes = self.lanes.lock();
        lanes.is_served() && lanes.events.blocks(subscription, bytes, lanes.beside_replies())
    }

    /// Appends an event; without room, its subscription's policy decides.
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

    /// Gives the last value of a topic to a new subscriber, unless one as new waits already.
    pub(crate) fn push_retained(&self, subscription: u32, published: &Arc<Published>) {
        if !self.lanes.lock().events.has_since(subscription, published) {
            self.push_event(subscription, published.clone(), EventOrigin::Retained);
        }
    }

    pub(crate) fn lose_event(&self, subscription: u32) {
        self.lanes.lock().events.lose(subscription);
    }

    /// So many events were lost before they came to this Main.
    pub(crate) fn note_lost(&self, subscription: u32, lost: u64) {
        self.lanes.lock().events.note_lost(subscription, lost);
    }

    /// A publisher waits no more; returns how many of its events waited for room here.
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
