//! What runs next on a thread, without a way through the runtime's queue: the task that was woken last.
//!
//! Those that run so, one after the other, are a *chain*. L4 switches so from the caller of a process to the one that
//! answers it, and tokio's threads have such a slot, too. A task that calls an extension and waits for the answer
//! has it run [at once](switch), and nearly always finds the answer there.

use std::{
    cell::Cell,
    ptr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::coop::has_budget_remaining;

use crate::worker_thread::is_worker_thread;

/// A task that can be handed the thread.
pub(crate) trait HandedTask: Send + Sync {
    /// Polls it, on this thread.
    fn run(self: Arc<Self>);

    /// Has the runtime poll it.
    fn schedule(&self);
}

/// Tasks that run one after the other without a look at what else the worker has to do. Extensions end that
/// sooner, when they have run for as long as the worker may go without a look at its timers.
pub(crate) const AT_MOST: usize = 64;

thread_local! {
    pub(crate) static CHAIN: Chain = const { Chain::new() };
    /// Whether what is woken now is to run next.
    static IS_HANDED: Cell<bool> = const { Cell::new(false) };
}

/// Such tasks of this thread, of which each is polled after the other.
pub(crate) struct Chain {
    within: Cell<Within>,
    /// The one that is to run next.
    next: Cell<Option<Arc<dyn HandedTask>>>,
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
pub(crate) enum Within {
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
    pub(crate) fn during<T>(&self, within: Within, work: impl FnOnce() -> T) -> T {
        struct Former<'c> {
            chain: &'c Chain,
            within: Within,
            next: Option<Arc<dyn HandedTask>>,
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
#[inline]
pub fn note_wait(time: Instant) {
    CHAIN.with(|chain| {
        if chain.within.get() != Within::Nothing {
            chain.waits_since.set(Some(time));
        }
    });
}

/// The time at which a guest begins to run, and for how long, until then, the one ran in whose call it is to
/// run, if nobody has counted that yet.
#[inline]
pub(crate) fn begin() -> (Instant, Duration) {
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
#[inline]
pub(crate) fn end(now: Instant) -> (Duration, Duration) {
    CHAIN.with(|chain| {
        let since = chain.since.take().map(|since| now.saturating_duration_since(since));
        (chain.before.take(), since.unwrap_or_default())
    })
}

/// What comes from here on is no other guest's time.
#[inline]
pub(crate) fn forget_wait() {
    // A thread that ends has none.
    let _ending = CHAIN.try_with(|chain| chain.waits_since.set(None));
}

/// Whether somebody is to run next, as whoever waits for an answer.
#[inline]
pub(crate) fn has_next() -> bool {
    CHAIN.with(|chain| {
        let next = chain.next.take();
        let has_next = next.is_some() || matches!(chain.within.get(), Within::Task | Within::Guest);
        chain.next.set(next);
        has_next
    })
}

/// Polls a task of the runtime's as the first of a chain, and then those that are handed the thread.
pub(crate) fn first<T>(poll: impl FnOnce() -> T) -> T {
    CHAIN.with(|chain| {
        chain.during(Within::Own, || {
            let polled = poll();
            chain.run();
            polled
        })
    })
}

/// Where the chain of this thread is in memory, by which threads are told apart.
pub(crate) fn home() -> usize {
    CHAIN.with(address)
}

/// Has a task run next that is at home there, if it was woken by [`hand`] and another is polled on this thread, which
/// is its home; else nothing is done with it.
pub(crate) fn run_next(home: usize, task: impl FnOnce() -> Arc<dyn HandedTask>) -> bool {
    let run_next = |chain: &Chain| {
        // Not on the thread of another Main.
        let is_next = home == address(chain) && chain.within.get() != Within::Nothing;
        if is_next && let Some(former) = chain.next.replace(Some(task())) {
            former.schedule();
        }
        is_next
    };
    // A thread that ends has none.
    IS_HANDED.get() && CHAIN.try_with(run_next).unwrap_or(false)
}

/// Wakes whoever is to run next, if it is such a task and another is polled on this thread: it then runs as
/// soon as that has been, and whoever was to run next takes the way of all others.
#[inline]
pub(crate) fn hand(wake: impl FnOnce()) {
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

fn address(chain: &Chain) -> usize {
    ptr::from_ref(chain).addr()
}
