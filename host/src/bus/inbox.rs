//! What waits for one peer: replies, requests and events in lanes of their own, so that a flood in
//! one delays nothing in another.
//!
//! Requests and events are each bounded by count and by bytes. Replies are bounded by the requests
//! that the peer has under way and are never shed; one that does not fit by bytes arrives as the
//! error that says so. They share the bytes of the events, and take them: the oldest events make room.
//! All lanes share one wake-up, so that waiting costs one registration.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use event_listener::{Event as Arrival, listener};

use super::{Error, Event, Incoming, Reply, Request};

/// What an envelope is counted as, beside its payload: so that empty messages are bounded, too.
const ENVELOPE_BYTES: u64 = 128;

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

/// What waits for one peer.
#[derive(Debug)]
pub(crate) struct Inbox {
    lanes: Mutex<Lanes>,
    arrival: Arrival,
    limits: InboxLimits,
}

#[derive(Debug, Default)]
struct Lanes {
    stop: Stop,
    /// Replies that are still to come.
    expected: u32,
    /// Which instance of the peer reads: replies to an earlier one are not for it.
    reader: u64,
    holds_requests: bool,
    /// The peer takes no requests.
    refuses_requests: bool,
    /// Somebody may have given up waiting for a request of the lane.
    has_abandoned: bool,
    /// Somebody may have given up waiting for a request that the peer has in hand.
    has_abandoned_in_hand: bool,
    replies: Lane<Reply>,
    requests: Lane<Request>,
    events: Lane<Event>,
    /// The fullest that they were, in messages and in bytes.
    peak: Filling,
}

/// Whether the peer is to finish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stop {
    #[default]
    No,
    Asked,
    Told,
}

impl Inbox {
    pub(crate) fn new(limits: InboxLimits) -> Self {
        Self { lanes: Mutex::default(), arrival: Arrival::new(), limits }
    }

    /// Takes the next message, without waiting: a stop, then replies, then requests, then events.
    ///
    /// Requests that nobody waits for any more are left out. Once stop has been said, only replies
    /// follow, as long as some are still to come, and then stop again.
    pub(crate) fn take(&self) -> Taken {
        let mut lanes = self.lanes();
        if lanes.stop == Stop::Asked {
            lanes.stop = Stop::Told;
            return Taken::Stop;
        }
        if let Some(reply) = lanes.replies.pop() {
            lanes.expected = lanes.expected.saturating_sub(1);
            return Taken::Message(Incoming::Reply(reply));
        }
        if lanes.stop == Stop::Told {
            return if lanes.expected == 0 { Taken::Stop } else { Taken::Empty };
        }
        while !lanes.holds_requests
            && let Some(request) = lanes.requests.pop()
        {
            if !request.answer.is_done() {
                return Taken::Message(Incoming::Request(request));
            }
        }
        match lanes.events.pop() {
            Some(event) => Taken::Message(Incoming::Event(event)),
            None => Taken::Empty,
        }
    }

    /// Waits until `take` finds something.
    pub(crate) async fn readable(&self) {
        loop {
            if self.is_readable() {
                return;
            }
            listener!(self.arrival => arrived);
            if self.is_readable() {
                return;
            }
            arrived.await;
        }
    }

    fn is_readable(&self) -> bool {
        let lanes = self.lanes();
        match lanes.stop {
            Stop::Asked => true,
            Stop::Told => !lanes.replies.is_empty() || lanes.expected == 0,
            Stop::No => {
                !lanes.replies.is_empty()
                    || !lanes.events.is_empty()
                    || (!lanes.holds_requests
                        && lanes.requests.items.iter().any(|request| !request.answer.is_done()))
            }
        }
    }

    /// From now on `take` says stop, until `reopen`.
    pub(crate) fn stop(&self) {
        let mut lanes = self.lanes();
        if lanes.stop == Stop::No {
            lanes.stop = Stop::Asked;
        }
        drop(lanes);
        self.arrival.notify(usize::MAX);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.lanes().stop != Stop::No
    }

    /// Ready for a new instance: replies to its predecessor are dropped, all else waits for it.
    pub(super) fn reopen(&self) {
        let mut lanes = self.lanes();
        lanes.stop = Stop::No;
        lanes.expected = 0;
        lanes.reader += 1;
        lanes.holds_requests = false;
        lanes.replies = Lane::default();
    }

    /// Whether requests stay in the inbox for now, because enough of them are in hand.
    pub(crate) fn hold_requests(&self, hold: bool) {
        let mut lanes = self.lanes();
        let released = std::mem::replace(&mut lanes.holds_requests, hold) && !hold;
        if released {
            drop(lanes);
            self.arrival.notify(1);
        }
    }

    /// Whether requests that come are refused, because the peer is down or about to be.
    pub(super) fn refuse_requests(&self, refuse: bool) {
        self.lanes().refuses_requests = refuse;
    }

    /// Nobody waits any more for some request that the peer has in hand or in its inbox.
    pub(super) fn note_abandoned(&self) {
        {
            let mut lanes = self.lanes();
            lanes.has_abandoned = true;
            lanes.has_abandoned_in_hand = true;
        }
        // It may have as many in hand as it can, and wait for another: it is to look again.
        self.hold_requests(false);
    }

    /// Whether somebody may have given up on a request in hand since this was last asked.
    pub(crate) fn take_abandoned_in_hand(&self) -> bool {
        std::mem::take(&mut self.lanes().has_abandoned_in_hand)
    }

    /// One more reply will come; returns for which reader.
    pub(super) fn expect_reply(&self) -> u64 {
        let mut lanes = self.lanes();
        lanes.expected += 1;
        lanes.reader
    }

    /// One fewer will come for that reader.
    pub(super) fn expect_no_reply(&self, reader: u64) {
        let mut lanes = self.lanes();
        if lanes.reader == reader {
            lanes.expected = lanes.expected.saturating_sub(1);
            drop(lanes);
            self.arrival.notify(1);
        }
    }

    /// Drops all that waits; whoever waits for an answer gets `peer-gone`.
    pub(crate) fn clear(&self) {
        let dropped = {
            let mut lanes = self.lanes();
            (
                std::mem::take(&mut lanes.replies),
                std::mem::take(&mut lanes.requests),
                std::mem::take(&mut lanes.events),
            )
        };
        // Outside the lock: dropping a request answers it, and the answer may go into this inbox.
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
        self.arrival.notify(1);
    }

    /// Appends a request, or gives it back.
    pub(super) fn push_request(&self, request: Request) -> Result<(), Refused> {
        let mut lanes = self.lanes();
        if lanes.refuses_requests {
            return Err(Refused { request, because: Refusal::Down });
        }
        let mut abandoned = Vec::new();
        if !lanes.requests.has_room(&request, self.limits) && std::mem::take(&mut lanes.has_abandoned) {
            // Requests that nobody waits for any more must not keep others out.
            abandoned = lanes.requests.retain(|waiting| !waiting.answer.is_done());
        }
        if !lanes.requests.has_room(&request, self.limits) {
            drop(lanes);
            drop(abandoned);
            return Err(Refused { request, because: Refusal::Full });
        }
        lanes.requests.push_back(request);
        lanes.note_peak();
        drop(lanes);
        self.arrival.notify(1);
        Ok(())
    }

    /// Appends an event, at the cost of the oldest ones if there is no room; returns how many those
    /// were.
    pub(super) fn push_event(&self, event: Event) -> u32 {
        let mut lanes = self.lanes();
        let mut lost = 0;
        let mut dropped = Vec::new();
        let beside =
            InboxLimits { bytes: self.limits.bytes.saturating_sub(lanes.replies.bytes), ..self.limits };
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
        self.arrival.notify(1);
        lost
    }

    /// Appends the reply that `reader` expects; one that has ended gets none. The oldest events make room
    /// for it; returns how many.
    pub(super) fn push_reply(&self, mut reply: Reply, reader: u64) -> u32 {
        let mut lanes = self.lanes();
        if lanes.reader != reader {
            return 0;
        }
        if !lanes.replies.has_bytes(&reply, self.limits) {
            reply.outcome = Err(Error::LimitExceeded {
                name: "inbox.bytes",
                used: lanes.replies.bytes + reply.bytes(),
                allowed: self.limits.bytes,
            });
        }
        lanes.replies.push_back(reply);
        let mut dropped = Vec::new();
        while lanes.replies.bytes + lanes.events.bytes > self.limits.bytes
            && let Some(oldest) = lanes.events.pop()
        {
            dropped.push(oldest);
        }
        lanes.note_peak();
        drop(lanes);
        self.arrival.notify(1);
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
        let messages = lanes.replies.items.len() + lanes.requests.items.len() + lanes.events.items.len();
        let bytes = lanes.replies.bytes + lanes.requests.bytes + lanes.events.bytes;
        (u64::try_from(messages).unwrap_or(u64::MAX), bytes)
    }

    /// How full it is, and at most was.
    pub(crate) fn filling(&self) -> (Filling, Filling) {
        let lanes = self.lanes();
        (lanes.filling(), lanes.peak)
    }

    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lanes {
    fn filling(&self) -> Filling {
        let messages = self.requests.items.len().max(self.events.items.len());
        // Replies have no number of their own, and are counted with the events in bytes.
        let bytes = self.requests.bytes.max(self.replies.bytes + self.events.bytes);
        Filling { messages: u64::try_from(messages).unwrap_or(u64::MAX), bytes }
    }

    fn note_peak(&mut self) {
        let Filling { messages, bytes } = self.filling();
        self.peak = Filling { messages: messages.max(self.peak.messages), bytes: bytes.max(self.peak.bytes) };
    }
}

/// Messages of one kind, in order, and what they count in bytes.
#[derive(Debug)]
struct Lane<T> {
    items: VecDeque<T>,
    bytes: u64,
}

impl<T: Weigh> Lane<T> {
    fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    fn has_room(&self, item: &T, limits: InboxLimits) -> bool {
        u32::try_from(self.items.len()).is_ok_and(|count| count < limits.messages)
            && self.has_bytes(item, limits)
    }

    /// An empty lane takes any message: what is larger than the lane was refused as too large.
    fn has_bytes(&self, item: &T, limits: InboxLimits) -> bool {
        self.items.is_empty() || self.bytes + item.bytes() <= limits.bytes
    }

    fn push_back(&mut self, item: T) {
        self.bytes += item.bytes();
        self.items.push_back(item);
    }

    fn push_front(&mut self, item: T) {
        self.bytes += item.bytes();
        self.items.push_front(item);
    }

    fn pop(&mut self) -> Option<T> {
        let item = self.items.pop_front()?;
        self.bytes -= item.bytes();
        if self.items.is_empty() && self.items.capacity() > 64 {
            // A burst must not be paid for with memory for ever after.
            self.items = VecDeque::new();
        }
        Some(item)
    }

    /// Keeps what satisfies `keep`, in order, and returns the rest for the caller to drop.
    fn retain(&mut self, keep: impl Fn(&T) -> bool) -> Vec<T> {
        let (kept, dropped) = std::mem::take(&mut self.items).into_iter().partition(|item| keep(item));
        self.items = kept;
        self.bytes = self.items.iter().map(Weigh::bytes).sum();
        Vec::from(dropped)
    }
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Self { items: VecDeque::new(), bytes: 0 }
    }
}

/// What a message counts against its lane's bytes.
trait Weigh {
    fn bytes(&self) -> u64;
}

impl Weigh for Reply {
    fn bytes(&self) -> u64 {
        let length = match &self.outcome {
            Ok(payload) => payload.len(),
            Err(Error::Handler(error)) => error.code.len() + error.message.len(),
            // Texts of Main's own, and short.
            Err(_) => 0,
        };
        ENVELOPE_BYTES + length as u64
    }
}

impl Weigh for Request {
    fn bytes(&self) -> u64 {
        ENVELOPE_BYTES + self.payload.len() as u64
    }
}

impl Weigh for Event {
    fn bytes(&self) -> u64 {
        ENVELOPE_BYTES + self.published.payload.len() as u64
    }
}
