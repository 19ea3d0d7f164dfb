//! The messages that wait for one peer. Replies, requests and events wait apart, so a flood in one delays no other:
//! each instance's replies and the requests in a channel, the events of each subscription in a lane of their own.
//!
//! Requests and events are each bounded by count and bytes. Replies are bounded by the requests that the peer has under
//! way and are never shed; one that does not fit by bytes arrives as an error. Replies share the bytes of the events,
//! and the oldest events make room for them. Behind a full lane, messages of senders that wait for room keep their
//! order. All lanes share one lock. An instance that finds nothing leaves its waker before it unlocks, so it need not
//! look again.
//!
//! The inbox belongs to the peer, and the peer's instances read it. Requests and events go to the current instance.
//! Others may read beside it: one that will take over, or one that finishes. They get only the replies to what they
//! sent. A peer with copies has a **seat** for each, with its own current instance; these compete for requests and
//! events.
//!
//! Knows nothing of peers, routes, grants or subscribers: its callers do.

mod event_lane;
mod event_lanes;
mod events;
mod handover;
mod lane;
mod lanes;
pub(crate) mod requests;

use std::{
    future::poll_fn,
    task::{Context, Poll, Waker},
};

use parking_lot::Mutex;

pub(crate) use self::event_lane::EventOrigin;
use self::lanes::{Lanes, StopState, wake};
pub use self::{
    event_lane::{LaneSettings, LaneStats},
    handover::EndedByCaller,
    lanes::Seat,
};
use crate::{id::InstanceId, message::Incoming};

/// The messages that wait for one peer.
#[derive(Debug)]
pub struct Inbox {
    lanes: Mutex<Lanes>,
}

impl Inbox {
    /// An inbox with one instance, the current one.
    pub fn new(limits: InboxLimits) -> Self {
        Self { lanes: Mutex::new(Lanes::new(limits)) }
    }

    /// Takes the next message, without waiting: a stop, then replies, then requests, then events.
    ///
    /// Leaves out requests that are waited for no more, and requests that the instance holds back. Only a current
    /// instance gets requests and events. After a stop come only the replies still expected, and then stop again. An
    /// ended instance is told to stop.
    pub fn take(&self, instance: InstanceId) -> Taken {
        self.take_with(
            instance,
            &TakeOptions { events: true, hold: None, counts_abandoned: false, task: None },
        )
    }

    /// Takes the next message like [`take`](Self::take), with options.
    pub(crate) fn take_with(&self, instance: InstanceId, options: &TakeOptions<'_>) -> Taken {
        let mut lanes = self.lanes.lock();
        let (taken, has_admitted) = lanes.take(instance, options);
        let waiting = has_admitted.then(|| lanes.waiting());
        let former = match (&taken, options.task) {
            (Taken::Empty, Some(task)) => lanes.wait(instance, task),
            _ => None,
        };
        drop(lanes);
        drop(former);
        if let Some(waiting) = waiting {
            waiting.into_iter().for_each(Waker::wake);
        }
        taken
    }

    /// Waits until `take` finds something. Only one task may wait for each instance.
    pub fn readable(&self, instance: InstanceId) -> impl Future<Output = ()> {
        poll_fn(move |context| self.poll_readable(instance, context))
    }

    /// Waits until `take` finds something, or `other` holds. The code that makes `other` hold must [wake](Self::wake)
    /// the instance.
    pub fn readable_or(&self, instance: InstanceId, other: impl Fn() -> bool) -> impl Future<Output = ()> {
        // `other` is asked after the waker is left, so a change in between wakes the instance. It is asked outside the
        // lock, because the code that changes it may wait for the lock.
        poll_fn(move |context| match self.poll_readable(instance, context) {
            Poll::Pending if !other() => Poll::Pending,
            _ => Poll::Ready(()),
        })
    }

    /// Makes `take` tell this instance to stop.
    pub fn stop(&self, instance: InstanceId) {
        if let Some(own) = self.lanes.lock().instance(instance)
            && own.stop == StopState::No
        {
            own.stop = StopState::Asked;
        }
        self.wake();
    }

    pub(crate) fn stop_all(&self) {
        for own in self.lanes.lock().instances.iter_mut().filter(|own| own.stop == StopState::No) {
            own.stop = StopState::Asked;
        }
        self.wake();
    }

    /// Whether `take` says stop to this instance, or has said it.
    pub fn is_stopping(&self, instance: InstanceId) -> bool {
        self.lanes.lock().instance(instance).is_none_or(|own| own.stop != StopState::No)
    }

    /// Messages and bytes that wait in all lanes, without those that wait for room.
    pub fn depth(&self) -> (u64, u64) {
        let lanes = self.lanes.lock();
        let replies: usize = lanes.instances.iter().map(|instance| instance.replies.items.len()).sum();
        let messages = replies + lanes.requests.items.len() + lanes.events.messages;
        let bytes = lanes.reply_bytes() + lanes.requests.bytes + lanes.events.bytes;
        (u64::try_from(messages).unwrap_or(u64::MAX), bytes)
    }

    /// How full the inbox is now, and the most that it has held.
    pub fn filling(&self) -> (Filling, Filling) {
        let lanes = self.lanes.lock();
        (lanes.filling(), lanes.peak)
    }

    /// Wakes all instances that wait.
    pub fn wake(&self) {
        wake(self.lanes.lock());
    }

    fn poll_readable(&self, instance: InstanceId, context: &Context<'_>) -> Poll<()> {
        let mut lanes = self.lanes.lock();
        if lanes.is_readable(instance) {
            return Poll::Ready(());
        }
        let former = lanes.wait(instance, context.waker());
        drop(lanes);
        drop(former);
        Poll::Pending
    }
}

/// How much may wait in an inbox. The limits hold for requests and for events separately.
#[derive(Clone, Copy, Debug, Default)]
pub struct InboxLimits {
    /// Messages that may wait.
    pub messages: u32,
    /// Bytes that may wait, envelopes included.
    pub bytes: u64,
}

/// How full an inbox is. Its limits hold for requests and for events separately, so each figure is the greater of the
/// two. Bytes of replies count with the events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filling {
    /// Messages that wait.
    pub messages: u64,
    /// Bytes that wait, envelopes included.
    pub bytes: u64,
}

/// What a look into the inbox found.
#[derive(Debug)]
pub enum Taken {
    /// The instance must finish.
    Stop,
    /// Nothing, for now.
    Empty,
    /// The next message.
    Message(Incoming),
}

/// How to take a message.
#[derive(Clone, Copy, Debug)]
pub struct TakeOptions<'w> {
    /// Whether to take events, too.
    pub events: bool,
    /// Whether requests stay in the inbox from now on; `None` leaves this as it is. Requests do not stay while a sender
    /// may have given up on a request in hand.
    pub hold: Option<bool>,
    /// Whether `hold` counts requests in hand that were given up. It then holds whatever senders do.
    pub counts_abandoned: bool,
    /// The task to wake later, if there is nothing now.
    pub task: Option<&'w Waker>,
}
