//! The instance of a peer: how it begins, takes over, takes messages and ends.

use std::sync::{Arc, atomic::Ordering};

use super::{Peer, phase::Phase};
use crate::{
    id::InstanceId,
    inbox::{EndedByCaller, TakeOptions, Taken},
    message::{Incoming, Reply, Request},
    waiter::Waiter,
};

impl Peer {
    /// Begins a new instance after the former one has ended. It serves nothing yet, and gets the messages in the inbox.
    pub fn begin_instance(&self) {
        self.inbox().close(self.inbox().current(self.seat()));
        self.begin_beside();
        self.become_current();
        self.set_phase(Phase::Starting);
    }

    /// Begins a new instance while another one serves. The other one gets requests and events until
    /// [`become_current`](Self::become_current).
    pub fn begin_beside(&self) {
        self.served.lock().clear();
        self.instance.store(self.inbox().open().0, Ordering::Release);
    }

    /// Makes requests and events go to this instance from now on. The former one is told to stop.
    pub fn become_current(&self) {
        self.inbox().set_current(self.seat(), self.instance(), self.limits.inbox);
    }

    /// Ends the instance. Replies to it are dropped from now on.
    pub fn end_instance(&self) {
        self.inbox().close(self.instance());
    }

    /// Gives back the messages that an instance which ended had not reached. `lost` counts the events that it had in
    /// hand, by subscription.
    pub fn give_back(&self, unreached: Vec<Incoming>, lost: &[(u32, u64)]) {
        self.inbox().give_back(self.instance(), unreached, lost);
    }

    /// Tells the instance to stop.
    pub fn stop(&self) {
        self.inbox().stop(self.instance());
    }

    /// Sets whom a caller tells that wants the work of the present instance for its request ended.
    pub fn set_ended_by_caller(&self, ended: Arc<dyn EndedByCaller>) {
        self.inbox().set_ended_by_caller(self.instance(), ended);
    }

    /// Whether the present instance was the last that took this request.
    pub fn has_in_hand(&self, request: &Waiter) -> bool {
        request.taker() == self.instance()
    }

    /// Whether the instance was told to stop, or has ended.
    pub fn is_stopping(&self) -> bool {
        self.inbox().is_stopping(self.instance())
    }

    /// Waits until [`take`](Self::take) finds something for the present instance.
    pub fn readable(&self) -> impl Future<Output = ()> {
        self.inbox().readable(self.instance())
    }

    /// Waits until [`take`](Self::take) finds something, or `other` holds.
    pub fn readable_or(&self, other: impl Fn() -> bool) -> impl Future<Output = ()> {
        self.inbox().readable_or(self.instance(), other)
    }

    /// Sets whether requests stay in the inbox for now, because the instance has enough in hand.
    pub fn hold_requests(&self, hold: bool) {
        self.inbox().hold_requests(self.instance(), hold);
    }

    /// Whether a sender may have given up on a request in hand since the last call.
    pub fn take_abandoned_in_hand(&self) -> bool {
        self.inbox().take_abandoned_in_hand(self.instance())
    }

    /// Whether this instance gets the peer's requests and events, and not another instance.
    pub fn is_current(&self) -> bool {
        self.inbox().is_current(self.instance())
    }

    /// Whether this instance gets the peer's requests and events, and was not told to stop.
    pub fn is_serving(&self) -> bool {
        self.inbox().is_serving(self.instance())
    }

    /// Takes the next message, without waiting. Requests for operations that this instance does not serve are answered
    /// with an error and skipped.
    #[inline]
    pub fn take(&self) -> Taken {
        self.take_with(&TakeOptions { events: true, hold: None, counts_abandoned: false, task: None })
    }

    /// Takes the next message like [`take`](Self::take), with options.
    pub fn take_with(&self, options: &TakeOptions<'_>) -> Taken {
        loop {
            let mut taken = self.inbox().take_with(self.instance(), options);
            // Changed in place, to avoid another move of the message.
            let Taken::Message(message) = &mut taken else { return taken };
            match message {
                Incoming::Request(request) => match self.number_of(request) {
                    Some(number) => {
                        request.number = number;
                        request.responder.take(self.instance(), self.is_canary(), self.operations());
                    }
                    None => {
                        self.refuse(taken);
                        continue;
                    }
                },
                Incoming::Reply(Reply { outcome: Ok(payload), .. }) => self.note_size(payload),
                Incoming::Reply(_) | Incoming::Event(_) => {}
            }
            self.stats().count_received();
            return taken;
        }
    }

    #[inline]
    pub(crate) fn instance(&self) -> InstanceId {
        InstanceId(self.instance.load(Ordering::Acquire))
    }

    /// Whether the peer's instance has yet to take over from the current one.
    pub(crate) fn is_successor(&self) -> bool {
        self.instance() > self.inbox().current(self.seat())
    }

    /// Whether another instance has taken over from the peer's instance.
    pub(crate) fn is_predecessor(&self) -> bool {
        self.instance() < self.inbox().current(self.seat())
    }

    fn refuse(&self, taken: Taken) {
        if let Taken::Message(Incoming::Request(request)) = taken {
            if request.responder.stats().is_some() {
                // Another instance serves the operation.
                request.responder.take(self.instance(), self.is_canary(), self.operations());
            }
            let unknown = Err(self.no_operation(request.responder.operation()));
            request.responder.give(unknown);
        }
    }

    /// Returns the number of the requested operation at this instance. `None` if this instance does not serve it.
    fn number_of(&self, request: &Request) -> Option<u32> {
        if request.instance == self.instance() {
            return Some(request.number);
        }
        let (_, number) = self.find(request.responder.operation())?;
        request.responder.count_from_now(self.operations());
        Some(number)
    }
}
