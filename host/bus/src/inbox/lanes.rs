//! Everything that the inbox's one lock guards: lanes, instances and seats.
//!
//! Decides an instance's next message, and what gets in when there is room again.

use std::{collections::VecDeque, sync::Arc, task::Waker};

use parking_lot::MutexGuard;

use super::{
    Filling, InboxLimits, TakeOptions, Taken, event_lanes::EventLanes, handover::EndedByCaller, lane::Lane,
};
use crate::{
    id::InstanceId,
    message::{Incoming, Reply, Request},
    room::Ticket,
};

#[derive(Debug, Default)]
pub(super) struct Lanes {
    pub(super) limits: InboxLimits,
    /// The instances. Each seat has at most three: the current one, its successor and its predecessor.
    pub(super) instances: Vec<InstanceEntry>,
    pub(super) seats: Vec<SeatState>,
    pub(super) last_instance: InstanceId,
    /// Whether the sender of a request in the lane may have stopped waiting.
    pub(super) has_abandoned: bool,
    pub(super) requests: Lane<Request>,
    /// Requests that wait for room behind `requests`.
    pub(super) parked: VecDeque<(Ticket, Request)>,
    pub(super) events: EventLanes,
    /// The most messages and bytes so far.
    pub(super) peak: Filling,
}

impl Lanes {
    pub(super) fn new(limits: InboxLimits) -> Self {
        Self {
            limits,
            instances: vec![InstanceEntry::new(InstanceId::FIRST)],
            seats: vec![SeatState { current: InstanceId::FIRST, refuses: false }],
            last_instance: InstanceId::FIRST,
            ..Self::default()
        }
    }

    pub(super) fn instance(&mut self, id: InstanceId) -> Option<&mut InstanceEntry> {
        self.instances.iter_mut().find(|instance| instance.id == id)
    }

    pub(super) fn is_current(&self, instance: InstanceId) -> bool {
        self.seats.iter().any(|sitting| sitting.current == instance)
    }

    /// Takes the next message. Also returns whether an event got in for which other instances must be woken.
    pub(super) fn take(&mut self, instance: InstanceId, options: &TakeOptions<'_>) -> (Taken, bool) {
        let is_current = self.is_current(instance);
        let Some(own) = self.instance(instance) else { return (Taken::Stop, false) };
        // If a sender has given up on a request in hand, the instance may have fewer in hand than it thinks.
        let has_fewer = own.has_abandoned_in_hand && !options.counts_abandoned;
        own.holds_requests = options.hold.unwrap_or(own.holds_requests) && !has_fewer;
        if own.stop == StopState::Asked {
            own.stop = StopState::Told;
            return (Taken::Stop, false);
        }
        if let Some(reply) = own.replies.pop() {
            own.expected = own.expected.saturating_sub(1);
            let has_admitted = self.admit_events() && !is_current;
            return (Taken::Message(Incoming::Reply(reply)), has_admitted);
        }
        if own.stop == StopState::Told {
            return (if own.expected == 0 { Taken::Stop } else { Taken::Empty }, false);
        }
        if !is_current {
            return (Taken::Empty, false);
        }
        let holds_requests = own.holds_requests;
        while !holds_requests && let Some(request) = self.requests.pop() {
            self.admit_requests();
            if !request.responder.is_done() {
                if let Some(span) = request.responder.span() {
                    span.note_taken();
                }
                return (Taken::Message(Incoming::Request(request)), false);
            }
        }
        match options.events.then(|| self.events.pop(instance)).flatten() {
            Some(event) => {
                self.admit_events();
                (Taken::Message(Incoming::Event(event)), false)
            }
            None => (Taken::Empty, false),
        }
    }

    /// Notes the task in which the instance waits. Returns the former task, to be dropped outside the lock.
    pub(super) fn wait(&mut self, instance: InstanceId, task: &Waker) -> Option<Waker> {
        let own = self.instance(instance)?;
        match &own.task {
            Some(known) if known.will_wake(task) => None,
            _ => own.task.replace(task.clone()),
        }
    }

    /// Whether `take` has a message or a stop for this instance.
    pub(super) fn is_readable(&mut self, instance: InstanceId) -> bool {
        let is_current = self.is_current(instance);
        let Some(own) = self.instance(instance) else { return true };
        match own.stop {
            StopState::Asked => true,
            StopState::Told => !own.replies.is_empty() || own.expected == 0,
            StopState::No => {
                let has_replies = !own.replies.is_empty();
                let holds_requests = own.holds_requests;
                has_replies
                    || (is_current
                        && (self.events.has_any_for(instance) || (!holds_requests && self.has_request())))
            }
        }
    }

    /// Whether a request is there whose sender still waits.
    fn has_request(&mut self) -> bool {
        let mut is_there = !self.requests.is_empty();
        self.has_abandoned &= is_there;
        if self.has_abandoned {
            is_there = false;
            let sees = || {
                is_there = true;
                None::<()>
            };
            let _stays = self.requests.items.take(|request| !request.responder.is_done(), sees);
        }
        is_there
    }

    /// Takes the wakers of all instances, because different messages may be for different instances. The caller wakes
    /// them outside the lock, because a waker may run any code.
    pub(super) fn waiting(&mut self) -> Vec<Waker> {
        self.instances.iter_mut().filter_map(|instance| instance.task.take()).collect()
    }

    /// Whether the peer at any seat lets requests into the inbox.
    pub(super) fn is_served(&self) -> bool {
        self.seats.iter().any(|sitting| !sitting.refuses)
    }

    pub(super) fn reply_bytes(&self) -> u64 {
        self.instances.iter().map(|instance| instance.replies.bytes).sum()
    }

    /// Returns the limits for events: waiting replies take up some of their bytes.
    pub(super) fn beside_replies(&self) -> InboxLimits {
        InboxLimits { bytes: self.limits.bytes.saturating_sub(self.reply_bytes()), ..self.limits }
    }

    pub(super) fn has_room_for(&self, request: &Request) -> bool {
        self.parked.is_empty() && self.requests.has_room(request, self.limits)
    }

    /// Lets in events that wait for room and fit now. Returns whether any got in.
    pub(super) fn admit_events(&mut self) -> bool {
        let limits = self.beside_replies();
        self.events.admit(limits)
    }

    /// Lets in requests that wait for room and fit now, in order. Drops those whose senders wait no more.
    pub(super) fn admit_requests(&mut self) {
        while let Some((_, request)) = self.parked.front()
            && (request.responder.is_done() || self.requests.has_room(request, self.limits))
            && let Some((ticket, request)) = self.parked.pop_front()
        {
            if !request.responder.is_done() {
                self.requests.push_back(request);
                ticket.admit();
            }
        }
    }

    pub(super) fn filling(&self) -> Filling {
        let messages = self.requests.items.len().max(self.events.messages);
        // Replies have no count of their own; their bytes count with the events.
        let bytes = self.requests.bytes.max(self.reply_bytes() + self.events.bytes);
        Filling { messages: u64::try_from(messages).unwrap_or(u64::MAX), bytes }
    }

    pub(super) fn note_peak(&mut self) {
        let Filling { messages, bytes } = self.filling();
        self.peak = Filling { messages: messages.max(self.peak.messages), bytes: bytes.max(self.peak.bytes) };
    }
}

/// The place of a peer that serves an inbox, alone or beside others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat(pub(super) usize);

impl Seat {
    /// The first seat, which every inbox has.
    pub const FIRST: Self = Self(0);
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SeatState {
    /// The instance that gets requests and events. It may have ended.
    pub(super) current: InstanceId,
    pub(super) refuses: bool,
}

#[derive(Debug, Default)]
pub(super) struct InstanceEntry {
    pub(super) id: InstanceId,
    pub(super) stop: StopState,
    /// How many replies are still to come.
    pub(super) expected: u32,
    pub(super) holds_requests: bool,
    /// Whether the sender of a request in hand may have stopped waiting.
    pub(super) has_abandoned_in_hand: bool,
    pub(super) replies: Lane<Reply>,
    /// Wakes the one task in which the instance waits.
    pub(super) task: Option<Waker>,
    /// Whom a caller tells that wants the work for its request ended.
    pub(super) ended_by_caller: Option<Arc<dyn EndedByCaller>>,
}

impl InstanceEntry {
    pub(super) fn new(id: InstanceId) -> Self {
        Self { id, ..Self::default() }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum StopState {
    #[default]
    No,
    /// The next `take` tells the instance to stop.
    Asked,
    /// The instance was told to stop. It gets only the replies that it expects.
    Told,
}

/// Wakes all instances, after letting the lock go.
pub(super) fn wake(mut lanes: MutexGuard<'_, Lanes>) {
    // Nearly always there is one instance, which is woken without a vector.
    if let [only] = lanes.instances.as_mut_slice() {
        let task = only.task.take();
        drop(lanes);
        return task.into_iter().for_each(Waker::wake);
    }
    let waiting = lanes.waiting();
    drop(lanes);
    waiting.into_iter().for_each(Waker::wake);
}
