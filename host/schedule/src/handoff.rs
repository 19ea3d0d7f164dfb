//! Handoff: whoever an extension has just woken runs next, with the caches still warm and without a way
//! through the runtime's queue, as L4 switches from the caller of a process to the one that answers it, and
//! as tokio's threads have a slot for the task that was woken last. Whoever calls an extension and waits for
//! the answer, from a task of Main's or from an extension, has it run [at once](switch), and nearly always
//! finds the answer there.
//!
//! Every extension's task is wrapped here, so that one can be run from within the poll of another. Knows
//! nothing of what a task does.

#[cfg(test)]
mod tests;

use std::{
    any::Any,
    cell::Cell,
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

use crate::is_worker_thread;

/// Tasks that run one after the other without a look at what else the worker has to do. Extensions end that
/// sooner, when they have run for as long as the worker may go without a look at its timers.
const AT_MOST: usize = 64;

thread_local! {
    static CHAIN: Chain = const { Chain::new() };
    /// Whether what is woken now is to run next.
    static IS_HANDED: Cell<bool> = const { Cell::new(false) };
}

/// Such tasks of this thread, of which each is polled after the other.
struct Chain {
    within: Cell<Within>,
    /// The one that is to run next.
    next: Cell<Option<Arc<dyn Next>>>,
    /// When the guest of the last one began to wait.
    waits_since: Cell<Option<Instant>>,
    /// When the guest of the first one began to run.
    began: Cell<Option<Instant>>,
    /// Since when the guest that runs now does so, or goes on after a call in which others ran.
    since: Cell<Option<Instant>>,
    /// For how long it ran before such calls.
    before: Cell<Duration>,
    /// Since when the guest ran in whose call these run, until one of them has counted that.
    caller_since: Cell<Option<Instant>>,
}

/// Where those of a chain are polled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// There are none.
    Nothing,
    /// In the runtime's task of the first one.
    Own,
    /// In a task of Main's, which waits for an answer.
    Task,
    /// In the call of a guest, which waits for an answer.
    Guest,
}

impl Chain {
    const fn new() -> Self {
        Self {
            within: Cell::new(Within::Nothing),
            next: Cell::new(None),
            waits_since: Cell::new(None),
            began: Cell::new(None),
            since: Cell::new(None),
            before: Cell::new(Duration::ZERO),
            caller_since: Cell::new(None),
        }
    }

    /// Does `work` as a chain of its own, after which the one before goes on.
    fn during<T>(&self, within: Within, work: impl FnOnce() -> T) -> T {
        struct Former<'c> {
            chain: &'c Chain,
            within: Within,
            next: Option<Arc<dyn Next>>,
            began: Option<Instant>,
            since: Option<Instant>,
            before: Duration,
            caller_since: Option<Instant>,
        }
        impl Drop for Former<'_> {
            fn drop(&mut self) {
                let Self { chain, within, began, since, before, caller_since, .. } = *self;
                chain.within.set(within);
                chain.waits_since.set(None);
                chain.began.set(began);
                chain.since.set(since);
                chain.before.set(before);
                chain.caller_since.set(caller_since);
                // Who is left comes after whoever was to run next, in this chain or else the way of all
                // others.
                match (chain.next.take(), self.next.take()) {
                    (Some(left), None) if within != Within::Nothing => chain.next.set(Some(left)),
                    (left, next) => {
                        chain.next.set(next);
                        left.iter().for_each(|left| left.schedule());
                    }
                }
            }
        }
        // Outside of a call nobody's run goes on: one that was not permitted has left its beginning here.
        let since = self.since.take().filter(|_| within == Within::Guest);
        let _former = Former {
            chain: self,
            within: self.within.replace(within),
            next: self.next.take(),
            began: self.began.take(),
            since,
            before: self.before.take(),
            caller_since: self.caller_since.replace(since),
        };
        work()
    }

    /// Runs one after the other.
    fn run(&self) {
        for _ in 0..AT_MOST {
            let Some(next) = self.next.take() else { return };
            // All share what the runtime lets one task do before others.
            if !has_budget_remaining() {
                return self.next.set(Some(next));
            }
            next.run();
        }
    }

    /// From when to when guests ran, if they did.
    fn ran(&self) -> Option<(Instant, Instant)> {
        // What comes after its end is a guest's own time, too.
        self.began.get().map(|began| (began, self.waits_since.get().unwrap_or_else(Instant::now)))
    }

    /// The guest goes on that called those who ran from then to then.
    fn go_on(&self, (began, ended): (Instant, Instant)) {
        let since = self.since.replace(Some(ended)).unwrap_or(began);
        self.before.set(self.before.get() + began.saturating_duration_since(since));
    }
}

/// Notes when a guest, or a task of Main's, began to wait: whoever is handed the thread runs from then on.
pub fn note_wait(time: Instant) {
    CHAIN.with(|chain| {
        if chain.within.get() != Within::Nothing {
            chain.waits_since.set(Some(time));
        }
    });
}

/// The time at which a guest begins to run, and for how long, until then, the one ran in whose call it is to
/// run, if nobody has counted that yet.
pub(super) fn begin() -> (Instant, Duration) {
    CHAIN.with(|chain| {
        let now = chain.waits_since.take().unwrap_or_else(Instant::now);
        if chain.began.get().is_none() {
            chain.began.set(Some(now));
        }
        chain.since.set(Some(now));
        chain.before.set(Duration::ZERO);
        let caller_since = chain.caller_since.take();
        (now, caller_since.map(|since| now.saturating_duration_since(since)).unwrap_or_default())
    })
}

/// For how long the guest ran that ends its run now: before the calls in which others ran, and since then.
pub(super) fn end(now: Instant) -> (Duration, Duration) {
    CHAIN.with(|chain| {
        let since = chain.since.take().map(|since| now.saturating_duration_since(since));
        (chain.before.take(), since.unwrap_or_default())
    })
}

/// What comes from here on is no other guest's time.
pub(super) fn forget_wait() {
    // A thread that ends has none.
    let _ending = CHAIN.try_with(|chain| chain.waits_since.set(None));
}

/// Whether somebody is to run next, as whoever waits for an answer.
pub(super) fn has_next() -> bool {
    CHAIN.with(|chain| {
        let next = chain.next.take();
        let has_next = next.is_some() || matches!(chain.within.get(), Within::Task | Within::Guest);
        chain.next.set(next);
        has_next
    })
}

/// Wakes whoever is to run next, if it is such a task and another is polled on this thread: it then runs as
/// soon as that has been, and whoever was to run next takes the way of all others.
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

/// Sends by `send`, and has whoever that wakes run before it returns, and whom those hand the thread: for who
/// would wait for them anyway, a task of Main's or a guest. Says until when guests ran in the call of a
/// guest, if they did.
///
/// On another thread than the worker they run there, and so do those that are sent to by a guest which runs
/// within the call of another, so that stacks do not pile up.
pub fn switch<T>(send: impl FnOnce() -> T) -> (T, Option<Instant>) {
    CHAIN.with(|chain| {
        let within = match chain.within.get() {
            Within::Nothing if is_worker_thread() => Within::Task,
            Within::Own | Within::Task => Within::Guest,
            Within::Nothing | Within::Guest => return (send(), None),
        };
        if !has_budget_remaining() {
            return (send(), None);
        }
        let (sent, ran) = chain.during(within, || {
            let sent = send();
            chain.run();
            (sent, if within == Within::Guest { chain.ran() } else { None })
        });
        if let Some(ran) = ran {
            chain.go_on(ran);
        }
        (sent, ran.map(|(_, ended)| ended))
    })
}

/// A task that can be handed the thread. Dropped, what it does is dropped.
pub struct Handoff<F: Future>(Arc<Node<F>>);

struct Node<F: Future> {
    work: Mutex<Work<F>>,
    /// The runtime's task, which has one waker for as long as it is, and where the chain of its thread is in
    /// memory, by which threads are told apart.
    task: OnceLock<(Waker, usize)>,
}

enum Work<F: Future> {
    Going(Pin<Box<F>>),
    Ended(Result<F::Output, Box<dyn Any + Send>>),
    Over,
}

fn address(chain: &Chain) -> usize {
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
    pub fn new(work: F) -> Self {
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
        let has_ended = CHAIN.with(|chain| {
            chain.during(Within::Own, || {
                let has_ended = node.poll(&mut node.work());
                chain.run();
                has_ended
            })
        });
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
        // One that is polled already, and waits within its own call for the one that woke it, is polled
        // again.
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
        let hand = |chain: &Chain| {
            // Not on the thread of another Main.
            let is_at_home = node.task.get().is_some_and(|(_, home)| *home == address(chain));
            let is_next = is_at_home && chain.within.get() != Within::Nothing;
            is_next.then(|| chain.next.replace(Some(node.clone())))
        };
        // A thread that ends has none.
        let former = if IS_HANDED.get() { CHAIN.try_with(hand).ok().flatten() } else { None };
        match former {
            None => node.schedule(),
            Some(None) => {}
            Some(Some(former)) => former.schedule(),
        }
    }
}
