//! Senders that wait for room in an inbox or a queue.
//!
//! Waiting messages stand in line behind the inbox or queue. The code that makes room moves the first one in and tells
//! its sender. So no message overtakes another, and one freed place wakes one sender.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    task::Poll,
};

use futures_util::task::AtomicWaker;

/// A sender's wait until everything it sent has found room or was turned away.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// How many messages still wait.
    left: AtomicU32,
    /// How many messages have found room.
    admitted: AtomicU32,
    is_overdue: AtomicBool,
    waker: AtomicWaker,
}

impl Room {
    /// Counts one more message that waits, and returns its place.
    pub(crate) fn ticket(self: &Arc<Self>) -> Ticket {
        self.left.fetch_add(1, Ordering::AcqRel);
        Ticket { room: self.clone(), admits: false }
    }

    /// Whether any message that waited has found room.
    pub(crate) fn is_admitted(&self) -> bool {
        self.admitted.load(Ordering::Acquire) > 0
    }

    /// Whether any message still waits.
    pub(crate) fn is_waiting(&self) -> bool {
        self.left.load(Ordering::Acquire) > 0
    }

    pub(crate) fn is_overdue(&self) -> bool {
        self.is_overdue.load(Ordering::Acquire)
    }

    /// Notes that the deadline has passed, and wakes the sender.
    pub(crate) fn expire(&self) {
        self.is_overdue.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Returns when no message waits any more, or when the deadline has passed.
    pub(crate) async fn settled(&self) {
        poll_fn(|context| {
            self.waker.register(context.waker());
            match self.left.load(Ordering::Acquire) == 0 || self.is_overdue() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }
}

/// The place of one message that waits. If the ticket is dropped without [`admit`](Self::admit), the message was turned
/// away.
#[derive(Debug)]
pub(crate) struct Ticket {
    room: Arc<Room>,
    admits: bool,
}

impl Ticket {
    /// Says that the message has found room.
    pub(crate) fn admit(mut self) {
        self.admits = true;
    }

    pub(crate) fn is_of(&self, room: &Arc<Room>) -> bool {
        Arc::ptr_eq(&self.room, room)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.admits {
            self.room.admitted.fetch_add(1, Ordering::AcqRel);
        }
        if self.room.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.room.waker.wake();
        }
    }
}
