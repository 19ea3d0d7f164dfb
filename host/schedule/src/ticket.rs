//! A place to wait in: of one guest in one queue.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Poll, Waker},
};

use futures_util::task::AtomicWaker;

/// A place in the queue, or a wait for the worker's next look at timers and sockets alone.
///
/// Its holder may be woken by anything at any time, and runs only when it is called.
#[derive(Debug, Default)]
pub(crate) struct Ticket {
    /// Set with the turn, before its holder is called.
    pub(crate) has_turn: AtomicBool,
    is_called: AtomicBool,
    task: AtomicWaker,
}

impl Ticket {
    /// Has this task woken when its holder is called.
    #[inline]
    pub(crate) fn register(&self, task: &Waker) {
        self.task.register(task);
    }

    /// Its holder may run.
    pub(crate) fn call(&self) {
        self.is_called.store(true, Ordering::Release);
        self.task.wake();
    }

    /// Ready when it is called.
    #[inline]
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<()> {
        self.task.register(context.waker());
        if self.is_called.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }
}
