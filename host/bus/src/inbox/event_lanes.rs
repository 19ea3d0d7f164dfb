//! The events of one inbox: a lane for each subscription, with its own capacity and policy. All stay within the bounds
//! of the inbox, and events leave in the order of arrival.

mod overload;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
};

use weir_names::Policy;

use super::{
    InboxLimits,
    event_lane::{BlockedEvent, EventLane, EventOrigin, LaneSettings, LaneStats, WaitingEvent},
};
use crate::{
    id::InstanceId,
    message::{Event, Published},
};

#[derive(Debug, Default)]
pub(crate) struct EventLanes {
    /// By number of the subscription.
    lanes: Vec<EventLane>,
    /// The number of each non-empty lane, by the arrival of its first event.
    heads: BTreeMap<i64, u32>,
    first_arrival: i64,
    next_arrival: i64,
    pub(super) messages: usize,
    pub(super) bytes: u64,
    /// Events that wait for room, in all lanes.
    blocked: usize,
}

impl EventLanes {
    /// Adds a subscription. Its number is greater than all before.
    pub(crate) fn add(
        &mut self,
        number: u32,
        names_one_topic: bool,
        since: InstanceId,
        delivery: LaneSettings,
    ) {
        self.lanes.push(EventLane { number, names_one_topic, since, delivery, ..EventLane::default() });
    }

    pub(super) fn remove(&mut self, number: u32) {
        let Ok(place) = self.place(number) else { return };
        let lane = self.lanes.remove(place);
        if let Some(first) = lane.items.front() {
            self.heads.remove(&first.arrival);
        }
        self.messages -= lane.items.len();
        self.bytes -= lane.bytes;
        self.blocked -= lane.blocked.len();
    }

    /// Drops the events that wait for an instance, and refuses those that wait for room.
    pub(super) fn clear(&mut self) {
        for lane in &mut self.lanes {
            lane.items = VecDeque::new();
            lane.latest.clear();
            lane.bytes = 0;
        }
        self.heads.clear();
        (self.messages, self.bytes) = (0, 0);
        self.turn_away();
    }

    /// Refuses the events that wait for room: while no peer reads the inbox, publishers do not wait.
    pub(super) fn turn_away(&mut self) {
        for lane in &mut self.lanes {
            lane.lose_blocked(|_| true);
        }
        self.blocked = 0;
    }

    /// Notes that one more instance subscribed. It may have begun before the first that did.
    pub(crate) fn note_instance(&mut self, number: u32, instance: InstanceId) {
        if let Some(lane) = self.lane(number) {
            lane.since = lane.since.min(instance);
        }
    }

    /// Forgets that an instance subscribed. `last` is the latest that did. Returns whether it was the only one.
    pub(crate) fn leave(&mut self, number: u32, instance: InstanceId, last: InstanceId) -> bool {
        let Some(lane) = self.lane(number).filter(|lane| lane.since == instance) else { return false };
        if last > instance {
            // The subscription now belongs to instances that began later.
            lane.since = InstanceId(instance.0 + 1);
        }
        last <= instance
    }

    /// Sets whether all instances are kept from the events of a subscription.
    pub(super) fn hold(&mut self, number: u32, hold: bool) {
        if let Some(lane) = self.lane(number) {
            lane.is_held = hold;
        }
    }

    /// Sets the policy and bounds of a subscription, also for events that wait for room already.
    pub(super) fn set_delivery(&mut self, number: u32, delivery: LaneSettings, limits: InboxLimits) {
        let Some(lane) = self.lane(number) else { return };
        lane.delivery = delivery;
        lane.latest.clear();
        if delivery.policy == Policy::Latest {
            let arrivals = lane.items.iter().map(|item| (item.published.topic.clone(), item.arrival));
            lane.latest.extend(arrivals);
        }
        if delivery.policy != Policy::Block {
            let blocked = std::mem::take(&mut lane.blocked);
            self.blocked -= blocked.len();
            for BlockedEvent { ticket, lost, published } in blocked {
                if let Some(lane) = self.lane(number) {
                    lane.lost += lost;
                }
                if self.push(number, published, EventOrigin::Waited, limits, false).delivered {
                    ticket.admit();
                }
            }
        }
    }

    pub(crate) fn stats(&self, number: u32) -> (LaneSettings, LaneStats) {
        let lane = self.place(number).ok().and_then(|place| self.lanes.get(place));
        lane.map(|lane| (lane.delivery, lane.stats())).unwrap_or_default()
    }

    /// Whether an event waits that this instance may take.
    pub(super) fn has_any_for(&self, instance: InstanceId) -> bool {
        self.heads.values().any(|number| self.is_for(*number, instance))
    }

    pub(super) fn pop(&mut self, instance: InstanceId) -> Option<Event> {
        let number = *self.heads.values().find(|number| self.is_for(**number, instance))?;
        let place = self.place(number).ok()?;
        let taken = self.remove_first(place)?;
        let lane = self.lanes.get_mut(place)?;
        lane.taken += 1;
        if lane.items.is_empty() && lane.items.capacity() > 64 {
            // Gives back the memory of a burst.
            lane.items = VecDeque::new();
            lane.latest = HashMap::new();
        }
        Some(Event {
            subscription: number,
            names_one_topic: lane.names_one_topic,
            lost: taken.lost,
            retained: taken.retained,
            published: taken.published,
        })
    }

    /// Puts an event that a dead instance had not reached back to the front, unless a newer one has taken its place.
    pub(super) fn push_front(&mut self, event: Event) {
        let Event { subscription, lost, retained, published, .. } = event;
        self.first_arrival -= 1;
        let arrival = self.first_arrival;
        let Some(lane) = self.lane(subscription) else { return };
        if lane.delivery.policy == Policy::Latest {
            if lane.latest.contains_key(&published.topic) {
                lane.note_lost(0, lost + 1);
                lane.shed += 1;
                return;
            }
            lane.latest.insert(published.topic.clone(), arrival);
        }
        let bytes = published.bytes();
        let former = lane.items.front().map(|first| first.arrival);
        lane.items.push_front(WaitingEvent { arrival, lost, retained, published });
        lane.bytes += bytes;
        lane.taken = lane.taken.saturating_sub(1);
        former.map(|former| self.heads.remove(&former));
        self.heads.insert(arrival, subscription);
        self.messages += 1;
        self.bytes += bytes;
    }

    /// Counts an event as lost after all that wait.
    pub(crate) fn lose(&mut self, number: u32) {
        if let Some(lane) = self.lane(number) {
            lane.lose(1);
        }
    }

    /// Counts events that were lost on their way to this Main. The next event published reports them.
    pub(crate) fn note_lost(&mut self, number: u32, lost: u64) {
        if let Some(lane) = self.lane(number) {
            lane.note_lost(usize::MAX, lost);
        }
    }

    /// Counts events that an ended instance took and did not finish as lost before all that wait.
    pub(super) fn lose_in_hand(&mut self, number: u32, lost: u64) {
        if let Some(lane) = self.lane(number) {
            lane.note_lost(0, lost);
        }
    }

    /// Whether an event of this topic waits that is as new as this one, or newer.
    pub(super) fn has_since(&self, number: u32, published: &Published) -> bool {
        let lane = self.place(number).ok().and_then(|place| self.lanes.get(place));
        let is_as_new = |waiting: &WaitingEvent| {
            waiting.published.topic == published.topic && waiting.published.sequence >= published.sequence
        };
        lane.is_some_and(|lane| {
            let blocked = lane.blocked.iter().any(|blocked| {
                let other = &blocked.published;
                other.topic == published.topic && other.sequence >= published.sequence
            });
            blocked || lane.items.iter().any(is_as_new)
        })
    }

    /// Whether this instance may take the events of a subscription: they are not held, and it knows of the
    /// subscription.
    fn is_for(&self, number: u32, instance: InstanceId) -> bool {
        let lane = self.place(number).ok().and_then(|place| self.lanes.get(place));
        lane.is_some_and(|lane| !lane.is_held && lane.since <= instance)
    }

    fn append(&mut self, place: usize, published: Arc<Published>, retained: bool) {
        let lost = self.lanes.get_mut(place).map(|lane| std::mem::take(&mut lane.lost));
        self.append_with(place, lost.unwrap_or_default(), published, retained);
    }

    fn append_with(&mut self, place: usize, lost: u64, published: Arc<Published>, retained: bool) {
        let arrival = self.next_arrival;
        let bytes = published.bytes();
        let Some(lane) = self.lanes.get_mut(place) else { return };
        self.next_arrival += 1;
        if lane.items.is_empty() {
            self.heads.insert(arrival, lane.number);
        }
        if lane.delivery.policy == Policy::Latest {
            lane.latest.insert(published.topic.clone(), arrival);
        }
        lane.items.push_back(WaitingEvent { arrival, lost, retained, published });
        lane.bytes += bytes;
        self.messages += 1;
        self.bytes += bytes;
    }

    fn remove_first(&mut self, place: usize) -> Option<WaitingEvent> {
        let lane = self.lanes.get_mut(place)?;
        let first = lane.items.pop_front()?;
        if lane.latest.get(&first.published.topic) == Some(&first.arrival) {
            lane.latest.remove(&first.published.topic);
        }
        let bytes = first.published.bytes();
        lane.bytes -= bytes;
        self.messages -= 1;
        self.bytes -= bytes;
        self.heads.remove(&first.arrival);
        if let Some(next) = lane.items.front() {
            self.heads.insert(next.arrival, lane.number);
        }
        Some(first)
    }

    fn lane(&mut self, number: u32) -> Option<&mut EventLane> {
        let place = self.place(number).ok()?;
        self.lanes.get_mut(place)
    }

    fn place(&self, number: u32) -> Result<usize, usize> {
        self.lanes.binary_search_by_key(&number, |lane| lane.number)
    }
}
