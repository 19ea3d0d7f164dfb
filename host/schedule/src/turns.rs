//! The turns of busy extensions. One of them runs at a time.
//!
//! So a message waits for one slice at most, however many extensions are busy.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

use crate::look::Look;

/// The busy extensions of one Main, in the order of their turns.
#[derive(Debug, Default)]
pub struct Turns {
    pub(crate) queue: Mutex<WaitingTurns>,
    /// The looks at timers and sockets, which all guests wait for.
    pub(crate) look: Arc<Look>,
}

#[derive(Debug, Default)]
pub(crate) struct WaitingTurns {
    pub(crate) waiting: VecDeque<Arc<Ticket>>,
    /// Whether a ticket has the turn now.
    pub(crate) is_taken: bool,
}

impl Turns {
    /// Puts a new ticket at the end of the queue. Calling it wakes `task`.
    pub(crate) fn join(&self, task: &Waker) -> Arc<Ticket> {
        let ticket = Arc::<Ticket>::default();
        ticket.register(task);
        let mut queue = self.queue.lock();
        queue.waiting.push_back(ticket.clone());
        if !queue.is_taken {
            queue.call_next(&self.look);
        }
        ticket
    }

    /// Gives up a place in the queue, or the turn. In the latter case the next ticket gets the turn.
    pub(crate) fn leave(&self, ticket: &Arc<Ticket>) {
        let mut queue = self.queue.lock();
        if ticket.has_turn.load(Ordering::Relaxed) {
            queue.call_next(&self.look);
        } else {
            queue.waiting.retain(|other| !Arc::ptr_eq(other, ticket));
        }
    }
}

impl WaitingTurns {
    /// Gives the turn to the next ticket. Its holder is called at once, or waits for the look first if one is due.
    fn call_next(&mut self, look: &Arc<Look>) {
        let next = self.waiting.pop_front();
        self.is_taken = next.is_some();
        if let Some(ticket) = next {
            ticket.has_turn.store(true, Ordering::Relaxed);
            if look.is_due() {
                look.wait(ticket);
            } else {
                ticket.call();
            }
        }
    }
}

/// A place in the queue of turns, or only a wait for the worker's next look at timers and sockets.
///
/// The holder may be woken at any time, but it runs only when it is called.
#[derive(Debug, Default)]
pub(crate) struct Ticket {
    /// Whether the holder has its turn. Set before the holder is called.
    pub(crate) has_turn: AtomicBool,
    is_called: AtomicBool,
    task: AtomicWaker,
}

impl Ticket {
    #[inline]
    pub(crate) fn register(&self, task: &Waker) {
        self.task.register(task);
    }

    /// Wakes the holder, and lets it run when it is polled.
    pub(crate) fn call(&self) {
        self.is_called.store(true, Ordering::Release);
        self.task.wake();
    }

    #[inline]
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<()> {
        self.task.register(context.waker());
        if self.is_called.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }
}
