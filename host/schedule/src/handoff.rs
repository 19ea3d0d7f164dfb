//! The task of an extension, which another extension's task can run from within its own poll: see [`chain`].
//!
//! Knows nothing of what a task does.

#[cfg(test)]
mod tests;

use std::{
    any::Any,
    fmt, mem,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, Waker},
};

use futures_util::task::{ArcWake, waker_ref};
use parking_lot::Mutex;

use crate::chain::{self, HandedTask, run_next};

/// A task that another task can hand the thread to. Dropping it drops its work.
pub struct Handoff<F: Future>(Arc<Node<F>>);

impl<F: Future> fmt::Debug for Handoff<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handoff").finish_non_exhaustive()
    }
}

struct Node<F: Future> {
    work: Mutex<Work<F>>,
    /// The waker of the runtime's task, which stays the same, and the address of its thread's chain.
    task: OnceLock<(Waker, usize)>,
}

enum Work<F: Future> {
    Going(Pin<Box<F>>),
    /// The work has ended, with an output or a panic that the runtime's task has not taken yet.
    Ended(Result<F::Output, Box<dyn Any + Send>>),
    /// The output or panic was taken, or the [`Handoff`] was dropped.
    Over,
}

impl<F: Future<Output: Send> + Send + 'static> Handoff<F> {
    /// Wraps the work of an extension's task.
    pub fn new(work: F) -> Self {
        Self(Arc::new(Node { work: Mutex::new(Work::Going(Box::pin(work))), task: OnceLock::new() }))
    }
}

impl<F: Future<Output: Send> + Send + 'static> Future for Handoff<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let node = &self.0;
        node.task.get_or_init(|| (context.waker().clone(), chain::home()));
        if !chain::first(|| node.poll(&mut node.work.lock())) {
            return Poll::Pending;
        }
        let ended = mem::replace(&mut *node.work.lock(), Work::Over);
        match ended {
            Work::Ended(Ok(output)) => Poll::Ready(output),
            Work::Ended(Err(panic)) => resume_unwind(panic),
            _ => Poll::Pending,
        }
    }
}

impl<F: Future> Drop for Handoff<F> {
    fn drop(&mut self) {
        // The work is dropped now, though a waker may keep the node for longer.
        let work = mem::replace(&mut *self.0.work.lock(), Work::Over);
        drop(work);
    }
}

impl<F: Future<Output: Send> + Send + 'static> Node<F> {
    /// Polls the work on this thread. Returns true if the work has ended, now or before.
    fn poll(self: &Arc<Self>, work: &mut Work<F>) -> bool {
        let Work::Going(going) = work else { return true };
        let waker = waker_ref(self);
        let poll = || going.as_mut().poll(&mut Context::from_waker(&waker));
        let ended = match catch_unwind(AssertUnwindSafe(poll)) {
            Ok(Poll::Pending) => return false,
            Ok(Poll::Ready(output)) => Ok(output),
            // A panic ends this task, not the task that polls it.
            Err(panic) => Err(panic),
        };
        *work = Work::Ended(ended);
        true
    }
}

impl<F: Future<Output: Send> + Send + 'static> HandedTask for Node<F> {
    fn run(self: Arc<Self>) {
        // Locked work is being polled: it waits in its own call for the task that woke it, and is polled again later.
        // If the work has ended, the runtime polls its task, which returns the outcome.
        if self.work.try_lock().is_none_or(|mut work| self.poll(&mut work)) {
            self.schedule();
        }
    }

    fn schedule(&self) {
        if let Some((task, _)) = self.task.get() {
            task.wake_by_ref();
        }
    }
}

impl<F: Future<Output: Send> + Send + 'static> ArcWake for Node<F> {
    fn wake_by_ref(node: &Arc<Self>) {
        let is_next = node.task.get().is_some_and(|(_, home)| run_next(*home, || node.clone()));
        if !is_next {
            node.schedule();
        }
    }
}
