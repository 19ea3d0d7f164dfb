//! Handoff: whoever an extension has just woken runs next, with the caches still warm and without a way through the
//! runtime's queue, as L4 switches from the caller of a process to the one that answers it, and as tokio's
//! threads have a slot for the task that was woken last. Whoever calls an extension and waits for the answer, from a
//! task of Main's or from an extension, has it run [at once](switch), and nearly always finds the answer there.
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
    ptr,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use futures_util::task::{ArcWake, waker_ref};
use tokio::task::coop::has_budget_remaining;

use crate::blocking::is_worker_thread;

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
    /// When the guest of the first one began to run.
    began: Option<Instant>,
    /// Time for which others ran within the calls of the guest that runs now.
    lent: Duration,
    within: Within,
}

/// Where those of a chain are polled.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Within {
    /// In the runtime's task of the first one.
    #[default]
    Own,
    /// In a task of Main's, which waits for an answer.
    Task,
    /// In the call of a guest, which waits for an answer.
    Guest,
}

impl Chain {
    /// Runs one after the other.
    fn run() {
        for _ in 0..AT_MOST {
            // All share what the runtime lets one task do before others.
            if !has_budget_remaining() {
                break;
            }
            let Some(next) = CHAIN.with_borrow_mut(|chain| chain.as_mut()?.next.take()) else { break };
            next.run();
        }
    }

    /// Time since the first one's guest began to run.
    fn took() -> Duration {
        let took = |chain: &Chain| {
            // What comes after its end is a guest's own time, too.
            let end = chain.waits_since.unwrap_or_else(Instant::now);
            Some(end.saturating_duration_since(chain.began?))
        };
        CHAIN.with_borrow(|chain| chain.as_ref().and_then(took)).unwrap_or_default()
    }
}

/// Notes when a guest, or a task of Main's, began to wait: whoever is handed the thread runs from then on.
pub(crate) fn note_wait(time: Instant) {
    CHAIN.with_borrow_mut(|chain| {
        if let Some(chain) = chain {
            chain.waits_since = Some(time);
        }
    });
}

/// The time at which a guest begins to run.
pub(super) fn begin() -> Instant {
    let now = forget_wait().unwrap_or_else(Instant::now);
    CHAIN.with_borrow_mut(|chain| {
        if let Some(chain) = chain {
            chain.began.get_or_insert(now);
            chain.lent = Duration::ZERO;
        }
    });
    now
}

/// Time for which others ran within the calls of the guest that has just run.
pub(super) fn take_lent() -> Duration {
    CHAIN.with_borrow_mut(|chain| chain.as_mut().map(|chain| mem::take(&mut chain.lent))).unwrap_or_default()
}

/// What comes from here on is no other guest's time.
pub(super) fn forget_wait() -> Option<Instant> {
    // A thread that ends has none.
    CHAIN.try_with(|chain| chain.borrow_mut().as_mut()?.waits_since.take()).ok().flatten()
}

/// Whether somebody is to run next, as whoever waits for an answer.
pub(super) fn has_next() -> bool {
    let has_next = |chain: &Chain| chain.next.is_some() || chain.within != Within::Own;
    CHAIN.with_borrow(|chain| chain.as_ref().is_some_and(has_next))
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

/// Sends by `send`, and has whoever that wakes run before it returns, and whom those hand the thread: for who would wait
/// for them anyway, a task of Main's or a guest.
///
/// On another thread than the worker they run there, and so do those that are sent to by a guest which runs within the
/// call of another, so that stacks do not pile up.
pub(crate) fn switch<T>(send: impl FnOnce() -> T) -> T {
    /// The chain before, which goes on when this is dropped.
    struct Before(Option<Chain>);
    impl Drop for Before {
        fn drop(&mut self) {
            let mut before = self.0.take();
            let within = CHAIN.take();
            if let Some(Chain { next: Some(next), .. }) = within {
                match &mut before {
                    Some(before) if before.next.is_none() => before.next = Some(next),
                    _ => next.schedule(),
                }
            }
            CHAIN.set(before);
        }
    }
    let place = CHAIN.with_borrow(|chain| match chain {
        None => is_worker_thread().then_some(Within::Task),
        Some(chain) => (chain.within != Within::Guest).then_some(Within::Guest),
    });
    let Some(within) = place.filter(|_| has_budget_remaining()) else { return send() };
    let mut before = Before(CHAIN.with(|chain| chain.replace(Some(Chain { within, ..Chain::default() }))));
    let sent = send();
    Chain::run();
    if let Some(before) = &mut before.0 {
        before.lent += Chain::took();
    }
    sent
}

/// A task that can be handed the thread. Dropped, what it does is dropped.
pub(crate) struct Handoff<F: Future>(Arc<Node<F>>);

struct Node<F: Future> {
    work: Mutex<Work<F>>,
    /// The runtime's task, which has one waker for as long as it is, and where the chain of its thread is in memory,
    /// by which threads are told apart.
    task: OnceLock<(Waker, usize)>,
}

enum Work<F: Future> {
    Going(Pin<Box<F>>),
    Ended(Result<F::Output, Box<dyn Any + Send>>),
    Over,
}

fn address(chain: &RefCell<Option<Chain>>) -> usize {
    ptr::from_ref(chain).addr()
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
        node.task.get_or_init(|| (context.waker().clone(), CHAIN.with(address)));
        CHAIN.set(Some(Chain::default()));
        let has_ended = node.poll(&mut node.work());
        Chain::run();
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
    fn poll(self: &Arc<Self>, work: &mut Work<F>) -> bool {
        let Work::Going(going) = work else { return true };
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
        // One that is polled already, and waits within its own call for the one that woke it, is polled again.
        if self.work.try_lock().map_or(true, |mut work| self.poll(&mut work)) {
            self.schedule();
        }
    }

    fn schedule(&self) {
        if let Some((task, _)) = self.task.get() {
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
        // A thread that ends has none, and on that of another Main it is not to run.
        let hand = |chain: &RefCell<Option<Chain>>| {
            let (_, home) = node.task.get()?;
            (*home == address(chain)).then_some(())?;
            Some(chain.borrow_mut().as_mut()?.next.replace(node.clone()))
        };
        let former = if IS_HANDED.get() { CHAIN.try_with(hand).ok().flatten() } else { None };
        match former {
            None => node.schedule(),
            Some(None) => {}
            Some(Some(former)) => former.schedule(),
        }
    }
}
