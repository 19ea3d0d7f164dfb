//! What happens to an event that finds no room: it waits, is refused, is lost, or other events are lost for it.

use std::sync::Arc;

use weir_names::{Policy, Topic};

use super::EventLanes;
use crate::{
    inbox::{
        InboxLimits,
        event_lane::{BlockedEvent, EventLane, EventOrigin, PushOutcome, may_go},
    },
    message::Published,
    room::Room,
};

impl EventLanes {
    pub(crate) fn blocks(&self, number: u32, bytes: u64, limits: InboxLimits) -> bool {
        let lane = self.place(number).ok().and_then(|place| self.lanes.get(place));
        lane.is_some_and(|lane| {
            lane.delivery.policy == Policy::Block
                && !(lane.blocked.is_empty() && lane.has_room(bytes) && self.has_room(bytes, limits))
        })
    }

    /// Appends an event. Without room, the policy of its subscription decides. If the inbox `is_down`, no event waits
    /// for room.
    pub(crate) fn push(
        &mut self,
        number: u32,
        published: Arc<Published>,
        coming: EventOrigin<'_>,
        limits: InboxLimits,
        is_down: bool,
    ) -> PushOutcome {
        let Ok(place) = self.place(number) else { return PushOutcome::default() };
        let bytes = published.bytes();
        let gives_way = |lane: &EventLane| may_go(lane.delivery.policy);
        if !self.has_room(bytes, limits)
            && self.lanes.get(place).is_some_and(gives_way)
            && !self.can_make_room(bytes, limits)
        {
            // The event does not fit even if all that may give way do, so none of them is to be lost for it.
            self.lose(number);
            return PushOutcome { delivered: false, shed: 1, refused: false };
        }
        let mut shed = self.drop_topic(place, &published.topic);
        loop {
            let Some(lane) = self.lanes.get(place) else { return PushOutcome::default() };
            let lane_has_room = lane.has_room(bytes);
            if lane_has_room && lane.blocked.is_empty() && self.has_room(bytes, limits) {
                self.append(place, published, matches!(coming, EventOrigin::Retained));
                return PushOutcome { delivered: true, shed, refused: false };
            }
            let policy = lane.delivery.policy;
            if may_go(policy) {
                let victim = if lane_has_room { self.oldest_that_may_go() } else { Some(place) };
                if let Some(victim) = victim {
                    self.drop_first(victim);
                    shed += 1;
                    continue;
                }
            }
            let Some(lane) = self.lanes.get_mut(place) else { return PushOutcome::default() };
            match (policy, coming) {
                (Policy::Block, EventOrigin::Published(room)) if !is_down => {
                    let ticket = room.get_or_insert_default().ticket();
                    let lost = std::mem::take(&mut lane.lost);
                    lane.blocked.push_back(BlockedEvent { ticket, lost, published });
                    self.blocked += 1;
                    return PushOutcome { delivered: false, shed, refused: false };
                }
                (Policy::Block | Policy::Reject, _) => {
                    lane.lost += 1;
                    lane.refused += 1;
                    return PushOutcome { delivered: false, shed, refused: true };
                }
                (Policy::DropOldest | Policy::DropNewest | Policy::Latest, _) => {
                    lane.lose(1);
                    return PushOutcome { delivered: false, shed: shed + 1, refused: false };
                }
            }
        }
    }

    /// Drops the oldest event that may give way, or else the oldest of all. Returns whether there was an event.
    pub(crate) fn drop_oldest(&mut self) -> bool {
        let oldest = self.heads.values().next().and_then(|number| self.place(*number).ok());
        match self.oldest_that_may_go().or(oldest) {
            Some(place) => {
                self.drop_first(place);
                true
            }
            None => false,
        }
    }

    /// Lets in events that wait for room, as far as they fit. Returns whether any got in.
    pub(crate) fn admit(&mut self, limits: InboxLimits) -> bool {
        let (mut place, mut has_admitted) = (0, false);
        while self.blocked > 0 {
            let Some(lane) = self.lanes.get(place) else { break };
            let fits = |BlockedEvent { published, .. }: &BlockedEvent| {
                lane.has_room(published.bytes()) && self.has_room(published.bytes(), limits)
            };
            if !lane.blocked.front().is_some_and(fits) {
                place += 1;
                continue;
            }
            let first = self.lanes.get_mut(place).and_then(|lane| lane.blocked.pop_front());
            if let Some(BlockedEvent { ticket, lost, published }) = first {
                self.blocked -= 1;
                has_admitted = true;
                self.append_with(place, lost, published, false);
                ticket.admit();
            }
        }
        has_admitted
    }

    pub(crate) fn withdraw(&mut self, number: u32, room: &Arc<Room>) -> u32 {
        let Some(lane) = self.lane(number) else { return 0 };
        let lost = lane.lose_blocked(|ticket| ticket.is_of(room));
        self.blocked -= lost;
        u32::try_from(lost).unwrap_or(u32::MAX)
    }

    /// Whether there is room once all events that may give way are dropped.
    fn can_make_room(&self, bytes: u64, limits: InboxLimits) -> bool {
        let stays = self.lanes.iter().filter(|lane| !may_go(lane.delivery.policy));
        let (messages, kept) =
            stays.fold((0, 0), |(messages, kept), lane| (messages + lane.items.len(), kept + lane.bytes));
        messages == 0
            || (u32::try_from(messages).is_ok_and(|count| count < limits.messages)
                && kept + bytes <= limits.bytes)
    }

    fn has_room(&self, bytes: u64, limits: InboxLimits) -> bool {
        // An empty inbox takes any event, because an event that is too large was refused before.
        self.messages == 0
            || (u32::try_from(self.messages).is_ok_and(|count| count < limits.messages)
                && self.bytes + bytes <= limits.bytes)
    }

    /// Returns the place of the lane whose first event is the oldest that may give way.
    fn oldest_that_may_go(&self) -> Option<usize> {
        self.heads
            .values()
            .filter_map(|number| self.place(*number).ok())
            .find(|place| self.lanes.get(*place).is_some_and(|lane| may_go(lane.delivery.policy)))
    }

    fn drop_first(&mut self, place: usize) {
        let Some(first) = self.remove_first(place) else { return };
        if let Some(lane) = self.lanes.get_mut(place) {
            lane.note_lost(0, first.lost + 1);
            lane.shed += 1;
        }
    }

    /// Under [`Policy::Latest`], drops the waiting event of this topic. Returns how many were dropped, 0 or 1.
    fn drop_topic(&mut self, place: usize, topic: &Topic) -> u32 {
        let Some(lane) = self.lanes.get_mut(place) else { return 0 };
        let Some(arrival) = lane.latest.get(topic) else { return 0 };
        let Ok(item) = lane.items.binary_search_by_key(arrival, |waiting| waiting.arrival) else { return 0 };
        if item == 0 {
            self.drop_first(place);
            return 1;
        }
        let Some(dropped) = lane.items.remove(item) else { return 0 };
        lane.note_lost(item, dropped.lost + 1);
        lane.shed += 1;
        lane.bytes -= dropped.published.bytes();
        self.messages -= 1;
        self.bytes -= dropped.published.bytes();
        1
    }
}
