//! The events of one subscription: waiting for an instance or for room, each with the losses before it.
//!
//! Knows nothing of other lanes, or of the room that all share.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use weir_names::{Policy, Topic};

use crate::{
    id::InstanceId,
    message::Published,
    room::{Room, Ticket},
};

/// How many events of one subscription may wait, and what happens to one that finds no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneSettings {
    /// What happens to an event that finds no room.
    pub policy: Policy,
    /// Events that may wait.
    pub messages: u32,
    /// Bytes that may wait, envelopes included.
    pub bytes: u64,
}

impl Default for LaneSettings {
    /// As much as the inbox can hold; the oldest give way.
    fn default() -> Self {
        Self { policy: Policy::default(), messages: u32::MAX, bytes: u64::MAX }
    }
}

/// How full a subscription's lane is, and what happened to its events so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneStats {
    /// Events that wait for an instance.
    pub waiting: u64,
    /// Bytes that wait, envelopes included.
    pub bytes: u64,
    /// Publishers that wait for room.
    pub blocked: u64,
    /// Events that an instance took.
    pub taken: u64,
    /// Events lost for want of room, or because they were too large for the subscriber.
    pub shed: u64,
    /// Events turned away for want of room.
    pub refused: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PushOutcome {
    pub(crate) delivered: bool,
    /// Events lost, this one or others.
    pub(crate) shed: u32,
    pub(crate) refused: bool,
}

/// How an event comes to its lane.
pub(crate) enum EventOrigin<'r> {
    /// From its publisher, which can wait. If the event must wait for room, the room is put here.
    Published(&'r mut Option<Arc<Room>>),
    /// It is the last value of its topic, for a new subscriber.
    Retained,
    /// From its publisher, which waited for room until the policy of the subscription changed.
    Waited,
}

#[derive(Debug, Default)]
pub(super) struct EventLane {
    pub(super) number: u32,
    pub(super) names_one_topic: bool,
    /// The first instance that subscribed: no earlier one knows of the subscription.
    pub(super) since: InstanceId,
    /// No instance gets its events for now.
    pub(super) is_held: bool,
    pub(super) delivery: LaneSettings,
    pub(super) items: VecDeque<WaitingEvent>,
    pub(super) bytes: u64,
    /// Events lost after the last that waits for its instance or for room.
    pub(super) lost: u64,
    /// Under [`Policy::Latest`], the arrival of each topic's event.
    pub(super) latest: HashMap<Topic, i64>,
    pub(super) blocked: VecDeque<BlockedEvent>,
    pub(super) taken: u64,
    pub(super) shed: u64,
    pub(super) refused: u64,
}

/// An event that waits for room in its lane.
#[derive(Debug)]
pub(super) struct BlockedEvent {
    pub(super) ticket: Ticket,
    pub(super) lost: u64,
    pub(super) published: Arc<Published>,
}

#[derive(Debug)]
pub(super) struct WaitingEvent {
    pub(super) arrival: i64,
    /// Events of the subscription lost just before it.
    pub(super) lost: u64,
    pub(super) retained: bool,
    pub(super) published: Arc<Published>,
}

impl EventLane {
    /// Whether the lane has room for an event of this size. An empty lane takes any event.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        let LaneSettings { messages, bytes: allowed, .. } = self.delivery;
        self.items.is_empty()
            || (u32::try_from(self.items.len()).is_ok_and(|count| count < messages)
                && self.bytes + bytes <= allowed)
    }

    /// Counts events as lost after all that wait.
    pub(super) fn lose(&mut self, lost: u64) {
        self.lost += lost;
        self.shed += lost;
    }

    /// Adds `lost` to what the event at `item` reports. Events that wait for an instance count first, then those that
    /// wait for room. Beyond these, the next event to come reports them.
    pub(super) fn note_lost(&mut self, item: usize, lost: u64) {
        let items = self.items.len();
        let next = match self.items.get_mut(item) {
            Some(next) => &mut next.lost,
            None => self.blocked.get_mut(item - items).map_or(&mut self.lost, |next| &mut next.lost),
        };
        *next = next.saturating_add(lost);
    }

    /// Refuses the events that wait for room and satisfy `is_lost`. Returns how many there were.
    pub(super) fn lose_blocked(&mut self, is_lost: impl Fn(&Ticket) -> bool) -> usize {
        let mut lost = 0;
        while let Some(place) = self.blocked.iter().position(|blocked| is_lost(&blocked.ticket))
            && let Some(blocked) = self.blocked.remove(place)
        {
            self.note_lost(self.items.len() + place, blocked.lost + 1);
            lost += 1;
        }
        self.refused += lost as u64;
        lost
    }

    pub(super) fn stats(&self) -> LaneStats {
        LaneStats {
            waiting: self.items.len() as u64,
            bytes: self.bytes,
            blocked: self.blocked.len() as u64,
            taken: self.taken,
            shed: self.shed,
            refused: self.refused,
        }
    }
}

/// Whether waiting events may be dropped to make room for others under this policy.
pub(super) fn may_go(policy: Policy) -> bool {
    matches!(policy, Policy::DropOldest | Policy::Latest)
}
