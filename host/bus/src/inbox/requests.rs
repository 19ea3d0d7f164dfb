//! The requests of an inbox: how they get in or wait for room, and what happens when their senders give up. Also its
//! replies: how many are still to come, and how the oldest events make room for them.

use std::{collections::VecDeque, sync::Arc};

use weir_names::Error;

use super::{Inbox, lane::Weigh, lanes::wake};
use crate::{
    id::InstanceId,
    message::{Reply, Request},
    room::Room,
};

#[derive(Debug)]
pub(crate) struct Refused {
    /// The request, for the caller to drop outside the lock.
    pub(crate) request: Request,
    pub(crate) because: Refusal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Full,
    Down,
}

impl Inbox {
    /// Appends a request, or gives it back if there is no room or no peer serves the inbox.
    pub(crate) fn push_request(&self, request: Request) -> Result<(), Refused> {
        let mut lanes = self.lanes.lock();
        if !lanes.is_served() {
            return Err(Refused { request, because: Refusal::Down });
        }
        let mut abandoned = Vec::new();
        if !lanes.has_room_for(&request) && std::mem::take(&mut lanes.has_abandoned) {
            // Requests without a waiting sender must not keep others out.
            abandoned = lanes.requests.retain(|waiting| !waiting.responder.is_done());
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

    /// Appends a request, or lets it wait for room. In the latter case, returns the room that the sender can wait for.
    /// Gives the request back if no peer serves the inbox.
    pub(crate) fn park_request(&self, request: Request) -> Result<Option<Arc<Room>>, Refused> {
        let mut lanes = self.lanes.lock();
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

    /// Sets whether requests stay in the inbox for now, because this instance has enough in hand.
    pub fn hold_requests(&self, instance: InstanceId, hold: bool) {
        let mut lanes = self.lanes.lock();
        let Some(own) = lanes.instance(instance) else { return };
        let released = std::mem::replace(&mut own.holds_requests, hold) && !hold;
        if released {
            wake(lanes);
        }
    }

    /// Notes that the sender of some request in the inbox or in hand waits no more.
    pub(crate) fn note_abandoned(&self) {
        let mut lanes = self.lanes.lock();
        lanes.has_abandoned = true;
        lanes.parked.retain(|(_, request)| !request.responder.is_done());
        let mut released = false;
        if !lanes.parked.is_empty() {
            // Requests without a waiting sender must not keep others out. Dropping them under the lock is safe here,
            // because nobody waits for their answers.
            lanes.requests.retain(|waiting| !waiting.responder.is_done());
            lanes.admit_requests();
            released = true;
        }
        for instance in &mut lanes.instances {
            instance.has_abandoned_in_hand = true;
            // An instance with all it may hold in hand must look again.
            released |= std::mem::take(&mut instance.holds_requests);
        }
        if released {
            wake(lanes);
        }
    }

    /// Whether a sender may have given up on a request in this instance's hand since the last call.
    pub fn take_abandoned_in_hand(&self, instance: InstanceId) -> bool {
        self.lanes.lock().instance(instance).is_some_and(|own| std::mem::take(&mut own.has_abandoned_in_hand))
    }

    /// Drops the requests for which `is_hopeless` holds, if no peer serves the inbox. Their senders get `peer-gone`.
    pub fn drop_requests(&self, is_hopeless: impl Fn(&Request) -> bool) {
        let mut lanes = self.lanes.lock();
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

    pub(crate) fn expect_reply(&self, instance: InstanceId) {
        if let Some(own) = self.lanes.lock().instance(instance) {
            own.expected += 1;
        }
    }

    /// Counts one reply less that is still to come to this instance.
    pub(crate) fn expect_no_reply(&self, instance: InstanceId) {
        if let Some(own) = self.lanes.lock().instance(instance) {
            own.expected = own.expected.saturating_sub(1);
        }
        self.wake();
    }

    /// Appends the reply that `instance` expects; an ended instance gets none. A reply that does not fit beside waiting
    /// ones becomes an error. Returns how many of the oldest events made room for it.
    pub(crate) fn push_reply(&self, mut reply: Reply, instance: InstanceId) -> u32 {
        let mut lanes = self.lanes.lock();
        let (allowed, waiting) = (lanes.limits.bytes, lanes.reply_bytes());
        let Some(own) = lanes.instance(instance) else { return 0 };
        // With no reply waiting, any reply fits: a reply that is too large in itself was refused before.
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
}
