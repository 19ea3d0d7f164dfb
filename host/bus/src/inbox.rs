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
//!
//! Knows nothing of peers, routes, grants or who subscribed: its callers do.

mod event_lane;
mod event_lanes;
mod events;
mod handover;
mod lane;
mod lanes;
mod limits;
mod readers;
mod replies;
pub(crate) mod requests;
mod taking;

use std::{
    future::poll_fn,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

pub(crate) use self::event_lane::EventOrigin;
pub use self::{
    event_lane::{LaneSettings, LaneStats},
    limits::{Filling, InboxLimits},
    readers::Seat,
    taking::{TakeOptions, Taken},
};
use self::{
    lanes::{Lanes, wake},
    readers::StopState,
};
use crate::id::ReaderId;

/// What waits for one peer.
#[derive(Debug)]
pub struct Inbox {
    lanes: Mutex<Lanes>,
}

impl Inbox {
    /// An inbox with one reader, which is the current one.
    pub fn new(limits: InboxLimits) -> Self {
        Self { lanes: Mutex::new(Lanes::new(limits)) }
    }

    /// Takes the next message, without waiting: a stop, then replies, then requests, then events.
    ///
    /// Requests that nobody waits for any more are left out. Once stop has been said, only replies
    /// follow, as long as some are still to come, and then stop again. An instance that has ended, as
    /// all others see it, is told to stop.
    pub fn take(&self, reader: ReaderId) -> Taken {
        self.take_with(reader, &TakeOptions { events: true, hold: None, task: None })
    }

    /// The same, in another way.
    pub(crate) fn take_with(&self, reader: ReaderId, options: &TakeOptions<'_>) -> Taken {
        let mut lanes = self.lanes();
        let (taken, has_admitted) = lanes.take(reader, options);
        let waiting = has_admitted.then(|| lanes.waiting());
        let former = match (&taken, options.task) {
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

    /// From now on `take` says stop to this reader.
    pub fn stop(&self, reader: ReaderId) {
        if let Some(own) = self.lanes().reader(reader)
            && own.stop == StopState::No
        {
            own.stop = StopState::Asked;
        }
        self.wake();
    }

    /// The same to all readers.
    pub(crate) fn stop_all(&self) {
        for own in self.lanes().readers.iter_mut().filter(|own| own.stop == StopState::No) {
            own.stop = StopState::Asked;
        }
        self.wake();
    }

    /// Whether `take` says stop to this reader, or has.
    pub fn is_stopping(&self, reader: ReaderId) -> bool {
        self.lanes().reader(reader).is_none_or(|own| own.stop != StopState::No)
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

    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
