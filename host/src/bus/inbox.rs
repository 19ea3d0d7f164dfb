//! What waits for one peer: replies, requests and events in lanes of their own, so that a flood in
//! one delays nothing in another.
//!
//! Requests and events are each bounded by count and by bytes. Replies are bounded by the requests
//! that the peer has under way and are never shed; one that does not fit by bytes arrives as the
//! error that says so. They share the bytes of the events, and take them: the oldest events make room.
//! All lanes share one wake-up, so that waiting costs one registration.
//!
//! The inbox belongs to the peer; its instances are **readers**. Requests and events go to the current
//! one. Others may read beside it: one that is to take over, or one that finishes after it was relieved.
//! They get the replies to what they have sent, and nothing else.

mod lane;

use std::sync::{Mutex, MutexGuard, PoisonError};

use event_listener::{Event as Arrival, listener};

use self::lane::{Lane, Weigh};
use super::{Error, Event, Incoming, Reply, Request};

/// How much may wait in a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InboxLimits {
    pub(crate) messages: u32,
    pub(crate) bytes: u64,
}

/// How full an inbox is: as its limits count, of each that is bounded by itself the fuller one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filling {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

/// What a look into the inbox found.
#[derive(Debug)]
pub(crate) enum Taken {
    Stop,
    Empty,
    Message(Incoming),
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
pub(crate) struct ReaderId(pub(super) u64);

impl ReaderId {
    /// No instance at all.
    pub(crate) const NOBODY: Self = Self(0);
    /// The one that every inbox begins with.
    pub(crate) const FIRST: Self = Self(1);
}

/// What waits for one peer.
#[derive(Debug)]
pub(crate) struct Inbox {
    lanes: Mutex<Lanes>,
    arrival: Arrival,
}

#[derive(Debug)]
struct Lanes {
    limits: InboxLimits,
    /// The instances that read, at most three: the current one, its successor, its predecessor.
    readers: Vec<Reader>,
    /// Who gets requests and events. It may have ended.
    current: ReaderId,
    last_reader: ReaderId,
    /// The peer takes no requests.
    refuses_requests: bool,
    /// Somebody may have given up waiting for a request of the lane.
    has_abandoned: bool,
    requests: Lane<Request>,
    events: Lane<Event>,
    /// The fullest that they were, in messages and in bytes.
    peak: Filling,
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
    pub(crate) fn new(limits: InboxLimits) -> Self {
        let lanes = Lanes {
            limits,
            readers: vec![Reader::new(ReaderId::FIRST)],
            current: ReaderId::FIRST,
            last_reader: ReaderId::FIRST,
            refuses_requests: false,
            has_abandoned: false,
            requests: Lane::default(),
            events: Lane::default(),
            peak: Filling::default(),
        };
        Self { lanes: Mutex::new(lanes), arrival: Arrival::new() }
    }

    /// Takes the next message, without waiting: a stop, then replies, then requests, then events.
    ///
    /// Requests that nobody waits for any more are left out. Once stop has been said, only replies
    /// follow, as long as some are still to come, and then stop again. An instance that has ended, as
    /// all others see it, is told to stop.
    pub(crate) fn take(&self, reader: ReaderId) -> Taken {
        let mut lanes = self.lanes();
        let is_current = lanes.current == reader;
        let Some(own) = lanes.reader(reader) else { return Taken::Stop };
        if own.stop == Stop::Asked {
            own.stop = Stop::Told;
            return Taken::Stop;
        }
        if let Some(reply) = own.replies.pop() {
            own.expected = own.expected.saturating_sub(1);
            return Taken::Message(Incoming::Reply(reply));
        }
        if own.stop == Stop::Told {
            return if own.expected == 0 { Taken::Stop } else { Taken::Empty };
        }
        if !is_current {
            return Taken::Empty;
        }
        let holds_requests = own.holds_requests;
        while !holds_requests && let Some(request) = lanes.requests.pop() {
            if !request.answer.is_done() {
                return Taken::Message(Incoming::Request(request));
            }
        }
        match lanes.events.pop_first(|event| event.subscription.is_for(reader)) {
            Some(event) => Taken::Message(Incoming::Event(event)),
            None => Taken::Empty,
        }
    }

    /// Waits until `take` finds something.
    pub(crate) async fn readable(&self, reader: ReaderId) {
        loop {
            if self.is_readable(reader) {
                return;
            }
            listener!(self.arrival => arrived);
            if self.is_readable(reader) {
                return;
            }
            arrived.await;
        }
    }

    fn is_readable(&self, reader: ReaderId) -> bool {
        let mut lanes = self.lanes();
        let is_current = lanes.current == reader;
        let Some(own) = lanes.reader(reader) else { return true };
        match own.stop {
            Stop::Asked => true,
            Stop::Told => !own.replies.is_empty() || own.expected == 0,
            Stop::No => {
                let has_replies = !own.replies.is_empty();
                let holds_requests = own.holds_requests;
                let waits = |request: &Request| !request.answer.is_done();
                let is_own = |event: &Event| event.subscription.is_for(reader);
                has_replies
                    || (is_current
                        && (lanes.events.items.iter().any(is_own)
                            || (!holds_requests && lanes.requests.items.iter().any(waits))))
            }
        }
    }

    /// From now on `take` says stop to this reader.
    pub(crate) fn stop(&self, reader: ReaderId) {
        if let Some(own) = self.lanes().reader(reader)
            && own.stop == Stop::No
        {
            own.stop = Stop::Asked;
        }
        self.wake();
    }

    pub(crate) fn is_stopping(&self, reader: ReaderId) -> bool {
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
    pub(super) fn hand_over(&self, reader: ReaderId, limits: InboxLimits) {
        let mut lanes = self.lanes();
        lanes.limits = limits;
        let former = std::mem::replace(&mut lanes.current, reader);
        if former != reader
            && let Some(former) = lanes.reader(former)
            && former.stop == Stop::No
        {
            former.stop = Stop::Asked;
        }
        drop(lanes);
        self.wake();
    }

    /// An instance has ended: replies to it are dropped, all else waits for another.
    pub(super) fn close(&self, reader: ReaderId) {
        let closed: Vec<_> = self.lanes().readers.extract_if(.., |own| own.id == reader).collect();
        self.wake();
        drop(closed);
    }

    pub(super) fn is_current(&self, reader: ReaderId) -> bool {
        self.lanes().current == reader
    }

    /// The instance to which requests and events go.
    pub(super) fn current(&self) -> ReaderId {
        self.lanes().current
    }

    /// Whether requests stay in the inbox for now, because this reader has enough of them in hand.
    pub(crate) fn hold_requests(&self, reader: ReaderId, hold: bool) {
        let mut lanes = self.lanes();
        let Some(own) = lanes.reader(reader) else { return };
        let released = std::mem::replace(&mut own.holds_requests, hold) && !hold;
        drop(lanes);
        if released {
            self.wake();
        }
    }

    /// Whether requests that come are refused, because the peer is down or about to be.
    pub(super) fn refuse_requests(&self, refuse: bool) {
        self.lanes().refuses_requests = refuse;
    }

    /// Nobody waits any more for some request that the peer has in hand or in its inbox.
    pub(super) fn note_abandoned(&self) {
        let mut lanes = self.lanes();
        lanes.has_abandoned = true;
        let mut released = false;
        for reader in &mut lanes.readers {
            reader.has_abandoned_in_hand = true;
            // It may have as many in hand as it can, and wait for another: it is to look again.
            released |= std::mem::take(&mut reader.holds_requests);
        }
        drop(lanes);
        if released {
            self.wake();
        }
    }

    /// Whether somebody may have given up on a request in this reader's hand since this was last asked.
    pub(crate) fn take_abandoned_in_hand(&self, reader: ReaderId) -> bool {
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

    /// Drops all that waits, but for the replies to instances beside the current one; whoever waits for an
    /// answer gets `peer-gone`.
    pub(crate) fn clear(&self) {
        let mut lanes = self.lanes();
        let current = lanes.current;
        let replies = lanes.reader(current).map(|reader| std::mem::take(&mut reader.replies));
        let dropped = (replies, std::mem::take(&mut lanes.requests), std::mem::take(&mut lanes.events));
        drop(lanes);
        // Outside the lock: dropping a request answers it, and the answer may go into this inbox.
        drop(dropped);
    }

    /// Drops the requests for which `is_hopeless`; whoever waits for them gets `peer-gone`.
    pub(crate) fn drop_requests(&self, is_hopeless: impl Fn(&Request) -> bool) {
        let dropped = self.lanes().requests.retain(|request| !is_hopeless(request));
        drop(dropped);
    }

    /// Puts what a dead instance had not reached back to the front, in the order given.
    pub(crate) fn give_back(&self, messages: Vec<Incoming>) {
        let mut lanes = self.lanes();
        for message in messages.into_iter().rev() {
            match message {
                Incoming::Request(request) => lanes.requests.push_front(request),
                Incoming::Event(event) => lanes.events.push_front(event),
                Incoming::Reply(_) => {}
            }
        }
        lanes.note_peak();
        drop(lanes);
        self.wake();
    }

    /// Appends a request, or gives it back.
    pub(super) fn push_request(&self, request: Request) -> Result<(), Refused> {
        let mut lanes = self.lanes();
        if lanes.refuses_requests {
            return Err(Refused { request, because: Refusal::Down });
        }
        let mut abandoned = Vec::new();
        let limits = lanes.limits;
        if !lanes.requests.has_room(&request, limits) && std::mem::take(&mut lanes.has_abandoned) {
            // Requests that nobody waits for any more must not keep others out.
            abandoned = lanes.requests.retain(|waiting| !waiting.answer.is_done());
        }
        if !lanes.requests.has_room(&request, limits) {
            drop(lanes);
            drop(abandoned);
            return Err(Refused { request, because: Refusal::Full });
        }
        lanes.requests.push_back(request);
        lanes.note_peak();
        drop(lanes);
        self.wake();
        Ok(())
    }

    /// Appends an event, at the cost of the oldest ones if there is no room; returns how many those
    /// were.
    pub(super) fn push_event(&self, event: Event) -> u32 {
        let mut lanes = self.lanes();
        let mut lost = 0;
        let mut dropped = Vec::new();
        let limits = lanes.limits;
        let beside = InboxLimits { bytes: limits.bytes.saturating_sub(lanes.reply_bytes()), ..limits };
        while !lanes.events.has_room(&event, beside)
            && let Some(oldest) = lanes.events.pop()
        {
            lost += 1;
            dropped.push(oldest);
        }
        lanes.events.push_back(event);
        lanes.note_peak();
        drop(lanes);
        drop(dropped);
        self.wake();
        lost
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
            reply.outcome = Err(Error::LimitExceeded { name: "inbox.bytes", used, allowed });
        }
        own.replies.push_back(reply);
        let mut dropped = Vec::new();
        while lanes.reply_bytes() + lanes.events.bytes > allowed
            && let Some(oldest) = lanes.events.pop()
        {
            dropped.push(oldest);
        }
        lanes.note_peak();
        drop(lanes);
        self.wake();
        u32::try_from(dropped.len()).unwrap_or(u32::MAX)
    }

    /// Drops the events of one subscription.
    pub(super) fn drop_events_of(&self, subscription: u32) {
        let mut lanes = self.lanes();
        let dropped = lanes.events.retain(|event| event.subscription.number() != subscription);
        drop(lanes);
        drop(dropped);
    }

    /// Messages and bytes that wait in all lanes.
    pub(crate) fn depth(&self) -> (u64, u64) {
        let lanes = self.lanes();
        let replies: usize = lanes.readers.iter().map(|reader| reader.replies.items.len()).sum();
        let messages = replies + lanes.requests.items.len() + lanes.events.items.len();
        let bytes = lanes.reply_bytes() + lanes.requests.bytes + lanes.events.bytes;
        (u64::try_from(messages).unwrap_or(u64::MAX), bytes)
    }

    /// How full it is, and at most was.
    pub(crate) fn filling(&self) -> (Filling, Filling) {
        let lanes = self.lanes();
        (lanes.filling(), lanes.peak)
    }

    /// Wakes all who wait: they may be different instances, for which different messages come.
    fn wake(&self) {
        self.arrival.notify(usize::MAX);
    }

    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        }
    }
}

impl Lanes {
    fn reader(&mut self, id: ReaderId) -> Option<&mut Reader> {
        self.readers.iter_mut().find(|reader| reader.id == id)
    }

    fn reply_bytes(&self) -> u64 {
        self.readers.iter().map(|reader| reader.replies.bytes).sum()
    }

    fn filling(&self) -> Filling {
        let messages = self.requests.items.len().max(self.events.items.len());
        // Replies have no number of their own, and are counted with the events in bytes.
        let bytes = self.requests.bytes.max(self.reply_bytes() + self.events.bytes);
        Filling { messages: u64::try_from(messages).unwrap_or(u64::MAX), bytes }
    }

    fn note_peak(&mut self) {
        let Filling { messages, bytes } = self.filling();
        self.peak = Filling { messages: messages.max(self.peak.messages), bytes: bytes.max(self.peak.bytes) };
    }
}
