//! One guest's place in one queue.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Poll, Waker},
};

use futures_util::task::AtomicWaker;

/// A place in the queue of turns, or only a wait for the worker's next look at timers and sockets.
///
/// Anything may wake its holder at any time; it runs only when called.
#[derive(Debug, Default)]
pub(crate) struct Ticket {
    /// Set with the turn, before its holder is called.
    pub(crate) has_turn: AtomicBool,
    is_called: AtomicBool,
    task: AtomicWaker,
}

impl Ticket {
    #[inline]
    pub(crate) fn register(&self, task: &Waker) {
        self.task.register(task);
    }

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
