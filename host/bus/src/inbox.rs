//! What waits for one peer: replies, requests and events in lanes of their own, so that a flood in
//! one delays nothing in another.
//!
//! Requests and events are each bounded by count and by bytes. Replies are bounded by the requests
//! that the peer has under way and are never shed; one that does not fit by bytes arrives as the
//! error that says so. They share the bytes of the events, and take them: the oldest events make room.
//! Behind a lane that is full, what its senders wait to get in waits in order.
//! All lanes share one lock, under which a reader that finds nothing leaves its waker: to wait costs one look.
//!
//! The inbox belongs to the peer; its instances are **readers**. Requests and events go to the current
//! one. Others may read beside it: one that is to take over, or one that finishes after it was relieved.
//! They get the replies to what they have sent, and nothing else. A peer with copies has a **seat** for
//! each, with a current reader of its own; those compete for requests and events.

mod events;
mod lane;

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

pub use self::events::{Delivery, LaneStats};
use self::{
    events::EventLanes,
    lane::{Lane, Weigh},
};
pub(super) use self::{
    events::{Coming, Pushed},
    lane::ENVELOPE_BYTES,
};
use super::{
    Error, Incoming, Reply, Request,
    message::Published,
    room::{Room, Ticket},
};

/// How much may wait in a lane.
#[derive(Clone, Copy, Debug)]
pub struct InboxLimits {
    pub messages: u32,
    pub bytes: u64,
}

/// How full an inbox is: as its limits count, of each that is bounded by itself the fuller one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filling {
    pub messages: u64,
    pub bytes: u64,
}

/// What a look into the inbox found.
#[derive(Debug)]
pub enum Taken {
    Stop,
    Empty,
    Message(Incoming),
}

/// How to look for a message.
#[derive(Clone, Copy, Debug)]
pub struct Look<'w> {
    /// Or only for what comes before events.
    pub events: bool,
    /// Whether to [hold](Inbox::hold_requests) requests from now on; none: as before.
    pub hold: Option<bool>,
    /// The task to wake when there is something, if there is nothing now.
    pub task: Option<&'w Waker>,
}

/// A request that did not get into an inbox.
#[derive(Debug)]
pub(super) struct Refused {
    /// Held so that it is dropped by the caller, outside the lock.
    pub(super) request: Request,
    pub(super) because: Refusal,
}

/// Why a request did not get into an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The lane is full.
    Full,
    /// The peer takes no requests.
    Down,
}

/// One instance of a peer, by the order in which they began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReaderId(pub(super) u64);

impl ReaderId {
    /// No instance at all.
    pub const NOBODY: Self = Self(0);
    /// The one that every inbox begins with.
    pub const FIRST: Self = Self(1);
}

/// The place of a peer that serves an inbox, alone or as one of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat(usize);

impl Seat {
    /// The one that every inbox has.
    pub const FIRST: Self = Self(0);
}

/// What waits for one peer.
#[derive(Debug)]
pub struct Inbox {
    lanes: Mutex<Lanes>,
}

#[derive(Debug)]
struct Lanes {
    limits: InboxLimits,
    /// The instances that read, at most three for each seat: the current one, its successor, its
    /// predecessor.
    readers: Vec<Reader>,
    seats: Vec<Sitting>,
    last_reader: ReaderId,
    /// Somebody may have given up waiting for a request of the lane.
    has_abandoned: bool,
    requests: Lane<Request>,
    /// Requests that wait for room behind those.
    parked: VecDeque<(Ticket, Request)>,
    events: EventLanes,
    /// The fullest that they were, in messages and in bytes.
    peak: Filling,
}

/// Who serves at one seat.
#[derive(Clone, Copy, Debug)]
struct Sitting {
    /// Who gets requests and events. It may have ended.
    current: ReaderId,
    /// The peer takes no requests.
    refuses: bool,
}

/// What is one instance's own.
#[derive(Debug)]
struct Reader {
    id: ReaderId,
    stop: Stop,
    /// Replies that are still to come.
    expected: u32,
    holds_requests: bool,
    /// Somebody may have given up waiting for a request that the instance has in hand.
    has_abandoned_in_hand: bool,
    replies: Lane<Reply>,
    /// Of the one task in which it waits.
    task: Option<Waker>,
}

/// Tasks to wake outside the lock, since a waker may be anybody's code. Nearly always it is one.
#[derive(Debug)]
#[must_use = "nobody is woken"]
struct Waiting {
    first: Option<Waker>,
    others: Vec<Waker>,
}

impl Waiting {
    fn wake(self) {
        self.first.into_iter().chain(self.others).for_each(Waker::wake);
    }
}

/// Whether the instance is to finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    No,
    Asked,
    Told,
}

impl Inbox {
    /// With one reader, who is the current one.
    pub fn new(limits: InboxLimits) -> Self {
        let lanes = Lanes {
            limits,
            readers: vec![Reader::new(ReaderId::FIRST)],
            seats: vec![Sitting { current: ReaderId::FIRST, refuses: false }],
            last_reader: ReaderId::FIRST,
            has_abandoned: false,
            requests: Lane::default(),
            parked: VecDeque::new(),
            events: EventLanes::default(),
            peak: Filling::default(),
        };
        Self { lanes: Mutex::new(lanes) }
    }

    /// One more peer is to serve it.
    pub(super) fn add_seat(&self) -> Seat {
        let mut lanes = self.lanes();
        lanes.seats.push(Sitting { current: ReaderId::NOBODY, refuses: true });
        Seat(lanes.seats.len() - 1)
    }

    /// Takes the next message, without waiting: a stop, then replies, then requests, then events.
    ///
    /// Requests that nobody waits for any more are left out. Once stop has been said, only replies
    /// follow, as long as some are still to come, and then stop again. An instance that has ended, as
    /// all others see it, is told to stop.
    pub fn take(&self, reader: ReaderId) -> Taken {
        self.take_with(reader, &Look { events: true, hold: None, task: None })
    }

    /// The same, in another way.
    pub(super) fn take_with(&self, reader: ReaderId, look: &Look<'_>) -> Taken {
        let mut lanes = self.lanes();
        let (taken, has_admitted) = lanes.take(reader, look);
        let waiting = has_admitted.then(|| lanes.waiting());
        let former = match (&taken, look.task) {
            (Taken::Empty, Some(task)) => lanes.wait(reader, task),
            _ => None,
        };
        drop(lanes);
        drop(former);
        if let Some(waiting) = waiting {
            waiting.wake();
        }
        taken
    }

    /// Waits until `take` finds something, in one task for each reader.
    pub async fn readable(&self, reader: ReaderId) {
        poll_fn(|context| self.poll_readable(reader, context)).await;
    }

    /// Waits until `take` finds something, or `other` holds; what makes that hold [wakes](Self::wake) it.
    pub async fn readable_or(&self, reader: ReaderId, other: impl Fn() -> bool) {
        // Asked when the waker is there: what happens in between wakes it. And not under the lock, which whoever
        // makes it hold may be waiting for.
        poll_fn(|context| match self.poll_readable(reader, context) {
            Poll::Pending if !other() => Poll::Pending,
            _ => Poll::Ready(()),
        })
        .await;
    }

    fn poll_readable(&self, reader: ReaderId, context: &Context<'_>) -> Poll<()> {
        let mut lanes = self.lanes();
        if lanes.is_readable(reader) {
            return Poll::Ready(());
        }
        let former = lanes.wait(reader, context.waker());
        drop(lanes);
        drop(former);
        Poll::Pending
    }

    /// From now on `take` says stop to this reader.
    pub fn stop(&self, reader: ReaderId) {
        if let Some(own) = self.lanes().reader(reader)
            && own.stop == Stop::No
        {
            own.stop = Stop::Asked;
        }
        self.wake();
    }

    /// The same to all readers.
    pub(super) fn stop_all(&self) {
        for own in self.lanes().readers.iter_mut().filter(|own| own.stop == Stop::No) {
            own.stop = Stop::Asked;
        }
        self.wake();
    }

    pub fn is_stopping(&self, reader: ReaderId) -> bool {
        self.lanes().reader(reader).is_none_or(|own| own.stop != Stop::No)
    }

    /// A new instance begins to read, beside the others.
    pub(super) fn open(&self) -> ReaderId {
        let mut lanes = self.lanes();
        lanes.last_reader = ReaderId(lanes.last_reader.0 + 1);
        let id = lanes.last_reader;
        lanes.readers.push(Reader::new(id));
        id
    }

    /// From now on requests and events go to this reader. The one to whom they went is told to stop.
    pub(super) fn hand_over(&self, seat: Seat, reader: ReaderId, limits: InboxLimits) {
        let mut lanes = self.lanes();
        lanes.limits = limits;
        lanes.admit_events();
        lanes.admit_requests();
        let Some(sitting) = lanes.seats.get_mut(seat.0) else { return };
        let former = std::mem::replace(&mut sitting.current, reader);
        if former != reader
            && let Some(former) = lanes.reader(former)
            && former.stop == Stop::No
        {
            former.stop = Stop::Asked;
        }
        wake(lanes);
    }

    /// An instance has ended: replies to it are dropped, all else waits for another.
    pub(super) fn close(&self, reader: ReaderId) {
        let mut lanes = self.lanes();
        // Woken with the others, it finds that it has ended.
        let waiting = lanes.waiting();
        let closed: Vec<_> = lanes.readers.extract_if(.., |own| own.id == reader).collect();
        drop(lanes);
        waiting.wake();
        drop(closed);
    }

    pub(super) fn is_current(&self, reader: ReaderId) -> bool {
        self.lanes().is_current(reader)
    }

    /// The instance to which requests and events go, at one seat.
    pub(super) fn current(&self, seat: Seat) -> ReaderId {
        self.lanes().seats.get(seat.0).map_or(ReaderId::NOBODY, |sitting| sitting.current)
    }

    /// Whether somebody takes requests, or will.
    pub(super) fn is_served(&self) -> bool {
        self.lanes().is_served()
    }

    /// Whether requests stay in the inbox for now, because this reader has enough of them in hand.
    pub fn hold_requests(&self, reader: ReaderId, hold: bool) {
        let mut lanes = self.lanes();
        let Some(own) = lanes.reader(reader) else { return };
        let released = std::mem::replace(&mut own.holds_requests, hold) && !hold;
        if released {
            wake(lanes);
        }
    }

    /// Whether the peer at this seat refuses requests, because it is down or about to be. Where all do,
    /// nobody waits for room either.
    pub(super) fn refuse_requests(&self, seat: Seat, refuse: bool) {
        let mut lanes = self.lanes();
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

    /// Nobody waits any more for some request that the peer has in hand or in its inbox.
    pub(super) fn note_abandoned(&self) {
        let mut lanes = self.lanes();
        lanes.has_abandoned = true;
        lanes.parked.retain(|(_, request)| !request.answer.is_done());
        let mut released = false;
        if !lanes.parked.is_empty() {
            // They must not keep out those who wait for room. Dropped here, they answer nobody.
            lanes.requests.retain(|waiting| !waiting.answer.is_done());
            lanes.admit_requests();
            released = true;
        }
        for reader in &mut lanes.readers {
            reader.has_abandoned_in_hand = true;
            // It may have as many in hand as it can, and wait for another: it is to look again.
            released |= std::mem::take(&mut reader.holds_requests);
        }
        if released {
            wake(lanes);
        }
    }

    /// Whether somebody may have given up on a request in this reader's hand since this was last asked.
    pub fn take_abandoned_in_hand(&self, reader: ReaderId) -> bool {
        self.lanes().reader(reader).is_some_and(|own| std::mem::take(&mut own.has_abandoned_in_hand))
    }

    /// One more reply will come.
    pub(super) fn expect_reply(&self, reader: ReaderId) {
        if let Some(own) = self.lanes().reader(reader) {
            own.expected += 1;
        }
    }

    /// One fewer will come.
    pub(super) fn expect_no_reply(&self, reader: ReaderId) {
        if let Some(own) = self.lanes().reader(reader) {
            own.expected = own.expected.saturating_sub(1);
        }
        self.wake();
    }

    /// Drops all that waits, but for the replies to instances beside the current one at this seat; whoever
    /// waits for an answer gets `peer-gone`.
    pub fn clear(&self, seat: Seat) {
        let mut lanes = self.lanes();
        let current = lanes.seats.get(seat.0).map_or(ReaderId::NOBODY, |sitting| sitting.current);
        let replies = lanes.reader(current).map(|reader| std::mem::take(&mut reader.replies));
        let requests = (std::mem::take(&mut lanes.requests), std::mem::take(&mut lanes.parked));
        lanes.events.clear();
        let dropped = (replies, requests);
        drop(lanes);
        // Outside the lock: dropping a request answers it, and the answer may go into this inbox.
        drop(dropped);
    }

    /// Drops the requests for which `is_hopeless`, if nobody serves it; whoever waits for them gets
    /// `peer-gone`.
    pub fn drop_requests(&self, is_hopeless: impl Fn(&Request) -> bool) {
        let mut lanes = self.lanes();
        if lanes.is_served() {
            return;
        }
        let dropped = lanes.requests.retain(|request| !is_hopeless(request));
        let (hopeless, kept): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut lanes.parked).into_iter().partition(|(_, request)| is_hopeless(request));
        lanes.parked = kept;
        lanes.admit_requests();
        drop(lanes);
        drop((dropped, hopeless));
    }

    /// Puts what a dead instance had not reached back to the front, in the order given. `lost` are the
    /// events of a subscription that it had in hand.
    ///
    /// Where another has taken over and may have read what came later, it is lost, too: nobody gets it out of order.
    pub(super) fn give_back(&self, reader: ReaderId, messages: Vec<Incoming>, lost: &[(u32, u64)]) {
        let mut lanes = self.lanes();
        let (messages, unreached) = match lanes.is_current(reader) {
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
        // Outside the lock: whoever waits for an answer hears that there will be none.
        drop(unreached);
    }

    /// Appends a request, or gives it back.
    pub(super) fn push_request(&self, request: Request) -> Result<(), Refused> {
        let mut lanes = self.lanes();
        if !lanes.is_served() {
            return Err(Refused { request, because: Refusal::Down });
        }
        let mut abandoned = Vec::new();
        if !lanes.has_room_for(&request) && std::mem::take(&mut lanes.has_abandoned) {
            // Requests that nobody waits for any more must not keep others out.
            abandoned = lanes.requests.retain(|waiting| !waiting.answer.is_done());
            lanes.admit_requests();
        }
        if !lanes.has_room_for(&request) {
            drop(lanes);
            drop(abandoned);
            return Err(Refused { request, because: Refusal::Full });
        }
        lanes.requests.push_back(request);
        lanes.note_peak();
        wake(lanes);
        Ok(())
    }

    /// Appends a request, or lets it wait for room: then its sender can wait, too.
    pub(super) fn park_request(&self, request: Request) -> Result<Option<Arc<Room>>, Refused> {
        let mut lanes = self.lanes();
        if !lanes.is_served() {
            return Err(Refused { request, because: Refusal::Down });
        }
        if lanes.has_room_for(&request) {
            lanes.requests.push_back(request);
            lanes.note_peak();
            wake(lanes);
            return Ok(None);
        }
        let room = Arc::<Room>::default();
        lanes.parked.push_back((room.ticket(), request));
        Ok(Some(room))
    }

    /// A new subscription, whose number is greater than those before.
    pub(super) fn add_subscription(
        &self,
        number: u32,
        names_one_topic: bool,
        since: ReaderId,
        delivery: Delivery,
    ) {
        self.lanes().events.add(number, names_one_topic, since, delivery);
    }

    /// An instance has subscribed.
    pub(super) fn note_reader(&self, subscription: u32, reader: ReaderId) {
        self.lanes().events.note_reader(subscription, reader);
    }

    /// An instance that subscribed is as if it never had, and `last` is the last that did; whether nobody else did.
    pub(super) fn leave(&self, subscription: u32, reader: ReaderId, last: ReaderId) -> bool {
        self.lanes().events.leave(subscription, reader, last)
    }

    /// Whether the events of a subscription stay in the inbox for now, whoever reads.
    pub(super) fn hold_events(&self, subscription: u32, hold: bool) {
        let mut lanes = self.lanes();
        lanes.events.hold(subscription, hold);
        wake(lanes);
    }

    pub(super) fn set_delivery(&self, subscription: u32, delivery: Delivery) {
        let mut lanes = self.lanes();
        let limits = lanes.beside_replies();
        lanes.events.set_delivery(subscription, delivery, limits);
        lanes.admit_events();
        wake(lanes);
    }

    pub(super) fn lane_stats(&self, subscription: u32) -> (Delivery, LaneStats) {
        self.lanes().events.stats(subscription)
    }

    /// Whether the publisher of an event that counts so many bytes would have to wait for room.
    pub(super) fn blocks(&self, subscription: u32, bytes: u64) -> bool {
        let lanes = self.lanes();
        lanes.is_served() && lanes.events.blocks(subscription, bytes, lanes.beside_replies())
    }

    /// Appends an event, as the policy of its subscription has it where there is no room.
    pub(super) fn push_event(
        &self,
        subscription: u32,
        published: Arc<Published>,
        coming: Coming<'_>,
    ) -> Pushed {
        let mut lanes = self.lanes();
        let (limits, is_down) = (lanes.beside_replies(), !lanes.is_served());
        let pushed = lanes.events.push(subscription, published, coming, limits, is_down);
        lanes.note_peak();
        if pushed.delivered {
            wake(lanes);
        }
        pushed
    }

    /// The last value of a topic, for an instance that has just subscribed, unless what waits is as new.
    pub(super) fn push_retained(&self, subscription: u32, published: &Arc<Published>) {
        if !self.lanes().events.has_since(subscription, published) {
            self.push_event(subscription, published.clone(), Coming::Retained);
        }
    }

    /// An event of this subscription is lost.
    pub(super) fn lose_event(&self, subscription: u32) {
        self.lanes().events.lose(subscription);
    }

    /// A publisher waits no longer; how many of its events waited for room here.
    pub(super) fn withdraw(&self, subscription: u32, room: &Arc<Room>) -> u32 {
        let mut lanes = self.lanes();
        let withdrawn = lanes.events.withdraw(subscription, room);
        let has_admitted = lanes.admit_events();
        if has_admitted {
            wake(lanes);
        }
        withdrawn
    }

    /// Appends the reply that `reader` expects; one that has ended gets none. The oldest events make room
    /// for it; returns how many.
    pub(super) fn push_reply(&self, mut reply: Reply, reader: ReaderId) -> u32 {
        let mut lanes = self.lanes();
        let (allowed, waiting) = (lanes.limits.bytes, lanes.reply_bytes());
        let Some(own) = lanes.reader(reader) else { return 0 };
        // The first is taken whatever its size: what is larger than the lane was refused as too large.
        if waiting > 0 && waiting + reply.bytes() > allowed {
            let used = waiting + reply.bytes();
            reply.outcome = Err(Error::LimitExceeded { name: "inbox.bytes".into(), used, allowed });
        }
        own.replies.push_back(reply);
        let mut dropped = 0;
        while lanes.reply_bytes() + lanes.events.bytes > allowed && lanes.events.drop_oldest() {
            dropped += 1;
        }
        lanes.note_peak();
        wake(lanes);
        dropped
    }

    /// A subscription has ended, and what waits of it with it.
    pub(super) fn remove_subscription(&self, subscription: u32) {
        let mut lanes = self.lanes();
        lanes.events.remove(subscription);
        let has_admitted = lanes.admit_events();
        if has_admitted {
            wake(lanes);
        }
    }

    /// Messages and bytes that wait in all lanes.
    pub fn depth(&self) -> (u64, u64) {
        let lanes = self.lanes();
        let replies: usize = lanes.readers.iter().map(|reader| reader.replies.items.len()).sum();
        let messages = replies + lanes.requests.items.len() + lanes.events.messages;
        let bytes = lanes.reply_bytes() + lanes.requests.bytes + lanes.events.bytes;
        (u64::try_from(messages).unwrap_or(u64::MAX), bytes)
    }

    /// How full it is, and at most was.
    pub fn filling(&self) -> (Filling, Filling) {
        let lanes = self.lanes();
        (lanes.filling(), lanes.peak)
    }

    /// Wakes all who wait.
    pub fn wake(&self) {
        wake(self.lanes());
    }

    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes all who wait, with the lock let go.
fn wake(mut lanes: MutexGuard<'_, Lanes>) {
    let waiting = lanes.waiting();
    drop(lanes);
    waiting.wake();
}

impl Reader {
    fn new(id: ReaderId) -> Self {
        Self {
            id,
            stop: Stop::No,
            expected: 0,
            holds_requests: false,
            has_abandoned_in_hand: false,
            replies: Lane::default(),
            task: None,
        }
    }
}

impl Lanes {
    fn reader(&mut self, id: ReaderId) -> Option<&mut Reader> {
        self.readers.iter_mut().find(|reader| reader.id == id)
    }

    fn is_current(&self, reader: ReaderId) -> bool {
        self.seats.iter().any(|sitting| sitting.current == reader)
    }

    /// The next message, and whether any event got in, of which another reader is to be told.
    fn take(&mut self, reader: ReaderId, look: &Look<'_>) -> (Taken, bool) {
        let is_current = self.is_current(reader);
        let Some(own) = self.reader(reader) else { return (Taken::Stop, false) };
        // Not if somebody has given up on what is in hand since that was asked.
        own.holds_requests = look.hold.unwrap_or(own.holds_requests) && !own.has_abandoned_in_hand;
        if own.stop == Stop::Asked {
            own.stop = Stop::Told;
            return (Taken::Stop, false);
        }
        if let Some(reply) = own.replies.pop() {
            own.expected = own.expected.saturating_sub(1);
            let has_admitted = self.admit_events() && !is_current;
            return (Taken::Message(Incoming::Reply(reply)), has_admitted);
        }
        if own.stop == Stop::Told {
            return (if own.expected == 0 { Taken::Stop } else { Taken::Empty }, false);
        }
        if !is_current {
            return (Taken::Empty, false);
        }
        let holds_requests = own.holds_requests;
        while !holds_requests && let Some(request) = self.requests.pop() {
            self.admit_requests();
            if !request.answer.is_done() {
                return (Taken::Message(Incoming::Request(request)), false);
            }
        }
        match look.events.then(|| self.events.pop(reader)).flatten() {
            Some(event) => {
                self.admit_events();
                (Taken::Message(Incoming::Event(event)), false)
            }
            None => (Taken::Empty, false),
        }
    }

    /// The reader waits in this task; returns the one in which it did, to be dropped outside the lock.
    fn wait(&mut self, reader: ReaderId, task: &Waker) -> Option<Waker> {
        let own = self.reader(reader)?;
        match &own.task {
            Some(known) if known.will_wake(task) => None,
            _ => own.task.replace(task.clone()),
        }
    }

    fn is_readable(&mut self, reader: ReaderId) -> bool {
        let is_current = self.is_current(reader);
        let Some(own) = self.reader(reader) else { return true };
        match own.stop {
            Stop::Asked => true,
            Stop::Told => !own.replies.is_empty() || own.expected == 0,
            Stop::No => {
                let has_replies = !own.replies.is_empty();
                let holds_requests = own.holds_requests;
                let waits = |request: &Request| !request.answer.is_done();
                has_replies
                    || (is_current
                        && (self.events.has_any_for(reader)
                            || (!holds_requests && self.requests.items.iter().any(waits))))
            }
        }
    }

    /// The tasks of all who wait: they may be different instances, for which different messages come.
    fn waiting(&mut self) -> Waiting {
        let mut tasks = self.readers.iter_mut().filter_map(|reader| reader.task.take());
        Waiting { first: tasks.next(), others: tasks.collect() }
    }

    fn is_served(&self) -> bool {
        self.seats.iter().any(|sitting| !sitting.refuses)
    }

    fn reply_bytes(&self) -> u64 {
        self.readers.iter().map(|reader| reader.replies.bytes).sum()
    }

    /// What is left to events.
    fn beside_replies(&self) -> InboxLimits {
        InboxLimits { bytes: self.limits.bytes.saturating_sub(self.reply_bytes()), ..self.limits }
    }

    fn has_room_for(&self, request: &Request) -> bool {
        self.parked.is_empty() && self.requests.has_room(request, self.limits)
    }

    /// Whether any event got in, of which its reader is to be told.
    fn admit_events(&mut self) -> bool {
        let limits = self.beside_replies();
        self.events.admit(limits)
    }

    fn admit_requests(&mut self) {
        while let Some((_, request)) = self.parked.front()
            && (request.answer.is_done() || self.requests.has_room(request, self.limits))
            && let Some((ticket, request)) = self.parked.pop_front()
        {
            if !request.answer.is_done() {
                self.requests.push_back(request);
                ticket.admit();
            }
        }
    }

    fn filling(&self) -> Filling {
        let messages = self.requests.items.len().max(self.events.messages);
        // Replies have no number of their own, and are counted with the events in bytes.
        let bytes = self.requests.bytes.max(self.reply_bytes() + self.events.bytes);
        Filling { messages: u64::try_from(messages).unwrap_or(u64::MAX), bytes }
    }

    fn note_peak(&mut self) {
        let Filling { messages, bytes } = self.filling();
        self.peak = Filling { messages: messages.max(self.peak.messages), bytes: bytes.max(self.peak.bytes) };
    }
}
