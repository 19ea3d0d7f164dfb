//! The events of one inbox: a lane for each subscription, with its own capacity and policy, all of them
//! within the bounds of the inbox, and taken in the order in which they came.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
};

use weir_names::{Policy, Topic};

use super::{InboxLimits, ReaderId};
use crate::{
    Event,
    message::Published,
    room::{Room, Ticket},
};

/// How many events of one subscription may wait, and what becomes of one that finds no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub policy: Policy,
    pub messages: u32,
    pub bytes: u64,
}

impl Default for Delivery {
    /// All that the inbox can hold; the oldest give way.
    fn default() -> Self {
        Self { policy: Policy::default(), messages: u32::MAX, bytes: u64::MAX }
    }
}

/// What became of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pushed {
    /// It is in the inbox.
    pub(crate) delivered: bool,
    /// Events that were lost, this one or others.
    pub(crate) shed: u32,
    /// It was turned away.
    pub(crate) refused: bool,
}

/// How an event comes to its lane.
pub(crate) enum Coming<'r> {
    /// Its publisher can wait.
    Published(&'r mut Option<Arc<Room>>),
    /// It is the last value of its topic, for a new subscriber.
    Retained,
    /// Its publisher has waited, under another policy.
    Waited,
}

/// How full a subscription's lane is, and what became of its events so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneStats {
    pub waiting: u64,
    pub bytes: u64,
    /// Publishers that wait for room.
    pub blocked: u64,
    pub taken: u64,
    pub shed: u64,
    pub refused: u64,
}

/// Every subscription's events.
#[derive(Debug, Default)]
pub(super) struct EventLanes {
    /// By the number of the subscription.
    lanes: Vec<EventLane>,
    /// The number of each lane that is not empty, by the arrival of its first event.
    heads: BTreeMap<i64, u32>,
    first_arrival: i64,
    next_arrival: i64,
    pub(super) messages: usize,
    pub(super) bytes: u64,
    /// Events that wait for room, in all lanes.
    blocked: usize,
}

#[derive(Debug)]
struct EventLane {
    number: u32,
    names_one_topic: bool,
    /// The first instance that subscribed: none before it knows of the subscription.
    since: ReaderId,
    /// Nobody gets them for now.
    is_held: bool,
    delivery: Delivery,
    items: VecDeque<Waiting>,
    bytes: u64,
    /// Events that were lost after the last one that waits, for its reader or for room.
    lost: u64,
    /// Under [`Policy::Latest`], the arrival of the event of each topic.
    latest: HashMap<Topic, i64>,
    blocked: VecDeque<Blocked>,
    taken: u64,
    shed: u64,
    refused: u64,
}

/// An event whose publisher waits for room.
#[derive(Debug)]
struct Blocked {
    ticket: Ticket,
    /// As of one that waits.
    lost: u64,
    published: Arc<Published>,
}

#[derive(Debug)]
struct Waiting {
    arrival: i64,
    /// Events of the subscription that were lost just before it.
    lost: u64,
    retained: bool,
    published: Arc<Published>,
}

impl EventLanes {
    /// A new subscription. Numbers only grow.
    pub(super) fn add(&mut self, number: u32, names_one_topic: bool, since: ReaderId, delivery: Delivery) {
        self.lanes.push(EventLane {
            number,
            names_one_topic,
            since,
            is_held: false,
            delivery,
            items: VecDeque::new(),
            bytes: 0,
            lost: 0,
            latest: HashMap::new(),
            blocked: VecDeque::new(),
            taken: 0,
            shed: 0,
            refused: 0,
        });
    }

    /// The subscription has ended, and what waits of it with it.
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

    /// All that waits is dropped, and whoever waits for room is turned away.
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

    /// Nobody reads for now: publishers do not wait for it.
    pub(super) fn turn_away(&mut self) {
        for lane in &mut self.lanes {
            lane.lose_blocked(|_| true);
        }
        self.blocked = 0;
    }

    /// An instance subscribed that began before the first that had.
    pub(super) fn note_reader(&mut self, number: u32, reader: ReaderId) {
        if let Some(lane) = self.lane(number) {
            lane.since = lane.since.min(reader);
        }
    }

    /// An instance that subscribed is as if it never had, and `last` is the last that did; whether nobody else did.
    pub(super) fn leave(&mut self, number: u32, reader: ReaderId, last: ReaderId) -> bool {
        let Some(lane) = self.lane(number).filter(|lane| lane.since == reader) else { return false };
        if last > reader {
            // Theirs who began after it.
            lane.since = ReaderId(reader.0 + 1);
        }
        last <= reader
    }

    /// Whether its events stay in the lane for now, whoever reads.
    pub(super) fn hold(&mut self, number: u32, hold: bool) {
        if let Some(lane) = self.lane(number) {
            lane.is_held = hold;
        }
    }

    /// From now on its events wait in this way, also those that wait for room already.
    pub(super) fn set_delivery(&mut self, number: u32, delivery: Delivery, limits: InboxLimits) {
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
            for Blocked { ticket, lost, published } in blocked {
                if let Some(lane) = self.lane(number) {
                    lane.lost += lost;
                }
                if self.push(number, published, Coming::Waited, limits, false).delivered {
                    ticket.admit();
                }
            }
        }
    }

    pub(super) fn stats(&self, number: u32) -> (Delivery, LaneStats) {
        let lane = self.place(number).ok().and_then(|place| self.lanes.get(place));
        lane.map(|lane| (lane.delivery, lane.stats())).unwrap_or_default()
    }

    /// Whether an event of this subscription would have to wait for room.
    pub(super) fn blocks(&self, number: u32, bytes: u64, limits: InboxLimits) -> bool {
        let lane = self.place(number).ok().and_then(|place| self.lanes.get(place));
        lane.is_some_and(|lane| {
            lane.delivery.policy == Policy::Block
                && !(lane.blocked.is_empty() && lane.has_room(bytes) && self.has_room(bytes, limits))
        })
    }

    pub(super) fn has_any_for(&self, reader: ReaderId) -> bool {
        self.heads.values().any(|number| self.is_for(*number, reader))
    }

    /// Takes the oldest that is for this reader.
    pub(super) fn pop(&mut self, reader: ReaderId) -> Option<Event> {
        let number = *self.heads.values().find(|number| self.is_for(**number, reader))?;
        let place = self.place(number).ok()?;
        let taken = self.remove_first(place)?;
        let lane = self.lanes.get_mut(place)?;
        lane.taken += 1;
        if lane.items.is_empty() && lane.items.capacity() > 64 {
            // A burst must not be paid for with memory for ever after.
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

    /// Adds an event, as the policy of its subscription has it where there is no room.
    pub(super) fn push(
        &mut self,
        number: u32,
        published: Arc<Published>,
        coming: Coming<'_>,
        limits: InboxLimits,
        is_down: bool,
    ) -> Pushed {
        // It has ended.
        let Ok(place) = self.place(number) else { return Pushed::default() };
        let bytes = published.bytes();
        let gives_way = |lane: &EventLane| may_go(lane.delivery.policy);
        if !self.has_room(bytes, limits)
            && self.lanes.get(place).is_some_and(gives_way)
            && !self.can_make_room(bytes, limits)
        {
            // Nothing is lost for what finds no room all the same.
            self.lose(number);
            return Pushed { delivered: false, shed: 1, refused: false };
        }
        let mut shed = self.drop_topic(place, &published.topic);
        loop {
            let Some(lane) = self.lanes.get(place) else { return Pushed::default() };
            let lane_has_room = lane.has_room(bytes);
            if lane_has_room && lane.blocked.is_empty() && self.has_room(bytes, limits) {
                self.append(place, published, matches!(coming, Coming::Retained));
                return Pushed { delivered: true, shed, refused: false };
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
            let Some(lane) = self.lanes.get_mut(place) else { return Pushed::default() };
            match (policy, coming) {
                (Policy::Block, Coming::Published(room)) if !is_down => {
                    let ticket = room.get_or_insert_default().ticket();
                    let lost = std::mem::take(&mut lane.lost);
                    lane.blocked.push_back(Blocked { ticket, lost, published });
                    self.blocked += 1;
                    return Pushed { delivered: false, shed, refused: false };
                }
                (Policy::Block | Policy::Reject, _) => {
                    lane.lost += 1;
                    lane.refused += 1;
                    return Pushed { delivered: false, shed, refused: true };
                }
                (Policy::DropOldest | Policy::DropNewest | Policy::Latest, _) => {
                    lane.lose(1);
                    return Pushed { delivered: false, shed: shed + 1, refused: false };
                }
            }
        }
    }

    /// An event of a subscription is lost, after all that wait.
    pub(super) fn lose(&mut self, number: u32) {
        if let Some(lane) = self.lane(number) {
            lane.lose(1);
        }
    }

    /// An instance has died with this many events in hand: they were lost before all that wait.
    pub(super) fn lose_in_hand(&mut self, number: u32, lost: u64) {
        if let Some(lane) = self.lane(number) {
            lane.note_lost(0, lost);
        }
    }

    /// Puts one back to the front that was not reached, unless a newer one has taken its place.
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
        lane.items.push_front(Waiting { arrival, lost, retained, published });
        lane.bytes += bytes;
        lane.taken = lane.taken.saturating_sub(1);
        former.map(|former| self.heads.remove(&former));
        self.heads.insert(arrival, subscription);
        self.messages += 1;
        self.bytes += bytes;
    }

    /// The oldest of all gives way, of those that may give way first; whether there was one.
    pub(super) fn drop_oldest(&mut self) -> bool {
        let oldest = self.heads.values().next().and_then(|number| self.place(*number).ok());
        match self.oldest_that_may_go().or(oldest) {
            Some(place) => {
                self.drop_first(place);
                true
            }
            None => false,
        }
    }

    /// Lets in what waits for room, as far as there is some; whether anything did.
    pub(super) fn admit(&mut self, limits: InboxLimits) -> bool {
        let (mut place, mut has_admitted) = (0, false);
        while self.blocked > 0 {
            let Some(lane) = self.lanes.get(place) else { break };
            let fits = |Blocked { published, .. }: &Blocked| {
                lane.has_room(published.bytes()) && self.has_room(published.bytes(), limits)
            };
            if !lane.blocked.front().is_some_and(fits) {
                place += 1;
                continue;
            }
            let first = self.lanes.get_mut(place).and_then(|lane| lane.blocked.pop_front());
            if let Some(Blocked { ticket, lost, published }) = first {
                self.blocked -= 1;
                has_admitted = true;
                self.append_with(place, lost, published, false);
                ticket.admit();
            }
        }
        has_admitted
    }

    /// Its publisher waits no longer; how many it had here.
    pub(super) fn withdraw(&mut self, number: u32, room: &Arc<Room>) -> u32 {
        let Some(lane) = self.lane(number) else { return 0 };
        let lost = lane.lose_blocked(|ticket| ticket.is_of(room));
        self.blocked -= lost;
        u32::try_from(lost).unwrap_or(u32::MAX)
    }

    /// Whether an event of this topic waits that is as new as this one, or newer.
    pub(super) fn has_since(&self, number: u32, published: &Published) -> bool {
        let lane = self.place(number).ok().and_then(|place| self.lanes.get(place));
        let is_as_new = |waiting: &Waiting| {
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

    fn is_for(&self, number: u32, reader: ReaderId) -> bool {
        let lane = self.place(number).ok().and_then(|place| self.lanes.get(place));
        lane.is_some_and(|lane| !lane.is_held && lane.since <= reader)
    }

    /// Whether there is room if all that may give way does.
    fn can_make_room(&self, bytes: u64, limits: InboxLimits) -> bool {
        let stays = self.lanes.iter().filter(|lane| !may_go(lane.delivery.policy));
        let (messages, kept) =
            stays.fold((0, 0), |(messages, kept), lane| (messages + lane.items.len(), kept + lane.bytes));
        messages == 0
            || (u32::try_from(messages).is_ok_and(|count| count < limits.messages)
                && kept + bytes <= limits.bytes)
    }

    fn has_room(&self, bytes: u64, limits: InboxLimits) -> bool {
        // An empty inbox takes any event: what is larger was refused as too large.
        self.messages == 0
            || (u32::try_from(self.messages).is_ok_and(|count| count < limits.messages)
                && self.bytes + bytes <= limits.bytes)
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
        lane.items.push_back(Waiting { arrival, lost, retained, published });
        lane.bytes += bytes;
        self.messages += 1;
        self.bytes += bytes;
    }

    /// The lane of the oldest event that gives way to others.
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

    /// Under [`Policy::Latest`], the event of this topic that waits is lost; how many that are.
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

    fn remove_first(&mut self, place: usize) -> Option<Waiting> {
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

impl EventLane {
    /// An empty lane takes any event.
    fn has_room(&self, bytes: u64) -> bool {
        let Delivery { messages, bytes: allowed, .. } = self.delivery;
        self.items.is_empty()
            || (u32::try_from(self.items.len()).is_ok_and(|count| count < messages)
                && self.bytes + bytes <= allowed)
    }

    fn lose(&mut self, lost: u64) {
        self.lost += lost;
        self.shed += lost;
    }

    /// The next from this place on, of those that wait for their reader and then those that wait for room,
    /// shows that so many were lost before it.
    fn note_lost(&mut self, item: usize, lost: u64) {
        let items = self.items.len();
        let next = match self.items.get_mut(item) {
            Some(next) => &mut next.lost,
            None => self.blocked.get_mut(item - items).map_or(&mut self.lost, |next| &mut next.lost),
        };
        *next = next.saturating_add(lost);
    }

    fn lose_blocked(&mut self, is_lost: impl Fn(&Ticket) -> bool) -> usize {
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

    fn stats(&self) -> LaneStats {
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

/// Whether events give way to others.
fn may_go(policy: Policy) -> bool {
    matches!(policy, Policy::DropOldest | Policy::Latest)
}
