//! Handoff: whoever an extension has just woken runs next, with the caches still warm and without a way through the
//! runtime's queue, as L4 switches from the caller of a process to the one that answers it, and as tokio's
//! threads have a slot for the task that was woken last.
//!
//! Every extension's task is wrapped here, so that one can be run from within the poll of another. Knows
//! nothing of what a task does.

#[cfg(test)]
mod tests;

use std::{
    any::Any,
    cell::{Cell, RefCell},
    mem,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    task::{Context, Poll, Waker},
    time::Instant,
};

use futures_util::task::{ArcWake, waker_ref};
use tokio::task::coop::has_budget_remaining;

/// Tasks that run one after the other without a look at what else the worker has to do. Extensions end that
/// sooner, when they have run for as long as the worker may go without a look at its timers.
const AT_MOST: usize = 64;

thread_local! {
    /// While such a task is polled on this thread.
    static CHAIN: RefCell<Option<Chain>> = const { RefCell::new(None) };
    /// Whether what is woken now is to run next.
    static IS_HANDED: Cell<bool> = const { Cell::new(false) };
}

/// Such tasks, of which each is polled after the other.
#[derive(Default)]
struct Chain {
    /// The one that is to run next.
    next: Option<Arc<dyn Next>>,
    /// When the guest of the last one began to wait.
    waits_since: Option<Instant>,
}

/// Notes when a guest began to wait: whoever is handed the thread runs from then on.
pub(super) fn note_wait(time: Instant) {
    CHAIN.with_borrow_mut(|chain| {
        if let Some(chain) = chain {
            chain.waits_since = Some(time);
        }
    });
}

/// The time at which a guest begins to run.
pub(super) fn begin() -> Instant {
    forget_wait().unwrap_or_else(Instant::now)
}

/// What comes from here on is no other guest's time.
pub(super) fn forget_wait() -> Option<Instant> {
    // A thread that ends has none.
    CHAIN.try_with(|chain| chain.borrow_mut().as_mut()?.waits_since.take()).ok().flatten()
}

/// Whether somebody is to run next.
pub(super) fn has_next() -> bool {
    CHAIN.with_borrow(|chain| chain.as_ref().is_some_and(|chain| chain.next.is_some()))
}

/// Wakes whoever is to run next, if it is such a task and another is polled on this thread: it then runs as soon
/// as that has been, and whoever was to run next takes the way of all others.
pub(super) fn hand(wake: impl FnOnce()) {
    struct Handing;
    impl Drop for Handing {
        fn drop(&mut self) {
            IS_HANDED.set(false);
        }
    }
    IS_HANDED.set(true);
    let _handing = Handing;
    wake();
}

/// A task that can be handed the thread. Dropped, what it does is dropped.
pub(crate) struct Handoff<F: Future>(Arc<Node<F>>);

struct Node<F: Future> {
    work: Mutex<Work<F>>,
    /// The runtime's task, which has one waker for as long as it is.
    task: OnceLock<Waker>,
}

enum Work<F: Future> {
    Going(Pin<Box<F>>),
    Ended(Result<F::Output, Box<dyn Any + Send>>),
    Over,
}

trait Next: Send + Sync {
    /// Polls it, on this thread.
    fn run(self: Arc<Self>);

    /// Has the runtime poll it.
    fn schedule(&self);
}

impl<F> Handoff<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    pub(crate) fn new(work: F) -> Self {
        Self(Arc::new(Node { work: Mutex::new(Work::Going(Box::pin(work))), task: OnceLock::new() }))
    }
}

impl<F> Future for Handoff<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let node = &self.0;
        node.task.get_or_init(|| context.waker().clone());
        CHAIN.set(Some(Chain::default()));
        let has_ended = node.poll();
        for _ in 0..AT_MOST {
            // All share what the runtime lets one task do before others.
            if !has_budget_remaining() {
                break;
            }
            let Some(next) = CHAIN.with_borrow_mut(|chain| chain.as_mut()?.next.take()) else { break };
            next.run();
        }
        // Nobody is polled from here on: it takes the way of all others.
        if let Some(Chain { next: Some(next), .. }) = CHAIN.take() {
            next.schedule();
        }
        if !has_ended {
            return Poll::Pending;
        }
        let ended = mem::replace(&mut *node.work(), Work::Over);
        match ended {
            Work::Ended(Ok(output)) => Poll::Ready(output),
            Work::Ended(Err(panic)) => resume_unwind(panic),
            _ => Poll::Pending,
        }
    }
}

impl<F: Future> Drop for Handoff<F> {
    fn drop(&mut self) {
        // A waker may keep the node for longer.
        let work = mem::replace(&mut *self.0.work(), Work::Over);
        drop(work);
    }
}

impl<F: Future> Node<F> {
    fn work(&self) -> MutexGuard<'_, Work<F>> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> Node<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    /// On this thread; whether it has ended, with that or before.
    fn poll(self: &Arc<Self>) -> bool {
        let mut work = self.work();
        let Work::Going(going) = &mut *work else { return true };
        let waker = waker_ref(self);
        let poll = || going.as_mut().poll(&mut Context::from_waker(&waker));
        let ended = match catch_unwind(AssertUnwindSafe(poll)) {
            Ok(Poll::Pending) => return false,
            Ok(Poll::Ready(output)) => Ok(output),
            // It is its own task's, and not that of whoever handed it the thread.
            Err(panic) => Err(panic),
        };
        *work = Work::Ended(ended);
        true
    }
}

impl<F> Next for Node<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn run(self: Arc<Self>) {
        if self.poll() {
            self.schedule();
        }
    }

    fn schedule(&self) {
        if let Some(task) = self.task.get() {
            task.wake_by_ref();
        }
    }
}

impl<F> ArcWake for Node<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn wake_by_ref(node: &Arc<Self>) {
        // A thread that ends has none.
        let hand =
            |chain: &RefCell<Option<Chain>>| Some(chain.borrow_mut().as_mut()?.next.replace(node.clone()));
        let former = if IS_HANDED.get() { CHAIN.try_with(hand).ok().flatten() } else { None };
        match former {
            None => node.schedule(),
            Some(None) => {}
            Some(Some(former)) => former.schedule(),
        }
    }
}
