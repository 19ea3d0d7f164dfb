//! The tasks that handlers spawn, and their handles.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    fmt,
    future::Future,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use futures_util::future::LocalBoxFuture;

/// Tasks that have not run yet, oldest first.
pub(crate) type Spawned = Rc<RefCell<VecDeque<Rc<dyn Run>>>>;

/// A task without the type of its result.
pub(crate) trait Run {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<()>;
}

/// A task of [`Context::spawn`](crate::Context::spawn). Awaiting it gives the result.
///
/// Dropping it cancels the task: the task's future is dropped where it waits. [`detach`](Self::detach) lets
/// the task go on.
#[must_use = "a task that is dropped is cancelled"]
pub struct Task<T>(Rc<Shared<T>>);

struct Shared<T> {
    /// `None` while the task is polled, and once it has ended or is cancelled.
    future: Cell<Option<LocalBoxFuture<'static, T>>>,
    outcome: Cell<Option<T>>,
    is_cancelled: Cell<bool>,
    is_detached: Cell<bool>,
    /// Wakes the task itself.
    task: Cell<Option<Waker>>,
    /// Wakes the future that waits for the outcome.
    handle: Cell<Option<Waker>>,
}

impl<T: 'static> Task<T> {
    pub(crate) fn spawn(future: LocalBoxFuture<'static, T>, spawned: &Spawned) -> Self {
        let shared = Rc::new(Shared {
            future: Cell::new(Some(future)),
            outcome: Cell::default(),
            is_cancelled: Cell::default(),
            is_detached: Cell::default(),
            task: Cell::default(),
            handle: Cell::default(),
        });
        spawned.borrow_mut().push_back(shared.clone());
        Self(shared)
    }
}

impl<T> Task<T> {
    /// Lets the task go on by itself. Its result is dropped.
    pub fn detach(self) {
        self.0.is_detached.set(true);
    }
}

impl<T> Future for Task<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        if let Some(outcome) = self.0.outcome.take() {
            return Poll::Ready(outcome);
        }
        self.0.handle.set(Some(cx.waker().clone()));
        Poll::Pending
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        if !self.0.is_detached.get() {
            self.0.is_cancelled.set(true);
            drop(self.0.future.take());
            wake(&self.0.task);
        }
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").finish_non_exhaustive()
    }
}

impl<T> Run for Shared<T> {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(mut future) = self.future.take() else {
            return Poll::Ready(());
        };
        match future.as_mut().poll(cx) {
            Poll::Ready(outcome) => {
                self.outcome.set(Some(outcome));
                wake(&self.handle);
            }
            // The handle was dropped while the task was polled.
            Poll::Pending if self.is_cancelled.get() => {}
            Poll::Pending => {
                self.future.set(Some(future));
                self.task.set(Some(cx.waker().clone()));
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }
}

fn wake(waker: &Cell<Option<Waker>>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}
