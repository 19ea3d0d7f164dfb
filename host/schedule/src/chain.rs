//! A *chain*: tasks that run one after the other on a thread, each woken by another, past the runtime's queue.
//!
//! The L4 kernels switch from a caller to the process that answers in this way, and tokio's threads have a slot for the
//! next task too. The callee runs [at once](switch), so that its caller nearly always finds the answer there.

use std::{cell::Cell, ptr, sync::Arc, time::Instant};

use tokio::task::coop::has_budget_remaining;
use weir_metrics::moment;

use crate::blocking::is_worker_thread;

pub(crate) trait HandedTask: Send + Sync {
    /// Polls the task on this thread.
    fn run(self: Arc<Self>);

    /// Wakes the runtime's task, so that the runtime polls it later.
    fn schedule(&self);
}

/// How many tasks of a chain run before the worker does anything else. Extensions end a chain sooner when a look at
/// timers is due.
pub(crate) const AT_MOST: usize = 64;

thread_local! {
    pub(crate) static CHAIN: Chain = const { Chain::new() };
    /// Whether a task that is woken now runs next.
    static IS_HANDED: Cell<bool> = const { Cell::new(false) };
}

/// The chain of one thread. Times are [`moment`]s and durations nanoseconds, because `Instant`s would make each turn
/// much slower.
pub(crate) struct Chain {
    within: Cell<Within>,
    next: Cell<Option<Arc<dyn HandedTask>>>,
    /// When the last guest began to wait.
    waits_since: Cell<Option<u64>>,
    /// When the first guest began to run.
    began: Cell<Option<u64>>,
    /// When the running guest began, or went on after a call in which others ran.
    since: Cell<Option<u64>>,
    /// How long the running guest ran before calls in which others ran.
    before: Cell<u64>,
    /// When the calling guest of this chain began, until a task of the chain has counted that.
    caller_since: Cell<Option<u64>>,
}

/// Where a chain is polled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Within {
    Nothing,
    /// In the runtime's task of the chain's first task.
    Own,
    /// In a task of Main's that waits for an answer.
    Task,
    /// In the call of a guest that waits for an answer.
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
            before: Cell::new(0),
            caller_since: Cell::new(None),
        }
    }

    /// Does `work` as a chain of its own. Then the former chain goes on.
    pub(crate) fn during<T>(&self, within: Within, work: impl FnOnce() -> T) -> T {
        struct Former<'c> {
            chain: &'c Chain,
            within: Within,
            next: Option<Arc<dyn HandedTask>>,
            began: Option<u64>,
            since: Option<u64>,
            before: u64,
            caller_since: Option<u64>,
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
                // A task that is left runs next in the former chain, if that has no next task. Else it goes into the
                // runtime's queue.
                match (chain.next.take(), self.next.take()) {
                    (Some(left), None) if within != Within::Nothing => chain.next.set(Some(left)),
                    (left, next) => {
                        chain.next.set(next);
                        left.iter().for_each(|left| left.schedule());
                    }
                }
            }
        }
        // Outside a guest's call, no guest runs now. A guest that got no permission may have left its beginning here.
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

    /// Runs the next task, and those that are woken in turn, until none is left or a bound of the chain is reached.
    fn run(&self) {
        for _ in 0..AT_MOST {
            let Some(next) = self.next.take() else { return };
            // The chain shares the runtime's budget for one task.
            if !has_budget_remaining() {
                return self.next.set(Some(next));
            }
            next.run();
        }
    }

    /// Returns from when to when guests ran in this chain, if any did.
    fn ran(&self) -> Option<(u64, u64)> {
        // If the last guest ended instead of waiting, the clean-up until now counts as its time.
        self.began.get().map(|began| (began, self.waits_since.get().unwrap_or_else(now)))
    }

    /// Resumes the time of the calling guest, after others ran from `began` to `ended`.
    fn go_on(&self, (began, ended): (u64, u64)) {
        let since = self.since.replace(Some(ended)).unwrap_or(began);
        self.before.set(self.before.get().saturating_add(began.saturating_sub(since)));
    }
}

/// Notes the [`moment`] at which a guest, or a task of Main, began to wait. The next task's time counts from then on.
#[inline]
pub fn note_wait(time: u64) {
    CHAIN.with(|chain| {
        if chain.within.get() != Within::Nothing {
            chain.waits_since.set(Some(time));
        }
    });
}

/// Begins a guest's run. Returns when it began, and how long its caller ran before, if that was not counted yet.
#[inline]
pub(crate) fn begin() -> (u64, u64) {
    CHAIN.with(|chain| {
        let now = chain.waits_since.take().unwrap_or_else(now);
        if chain.began.get().is_none() {
            chain.began.set(Some(now));
        }
        chain.since.set(Some(now));
        chain.before.set(0);
        let caller_since = chain.caller_since.take();
        (now, caller_since.map_or(0, |since| now.saturating_sub(since)))
    })
}

/// Ends a guest's run. Returns how long it ran before its last call in which others ran, and how long since then.
#[inline]
pub(crate) fn end(now: u64) -> (u64, u64) {
    CHAIN.with(|chain| {
        let since = chain.since.take().map_or(0, |since| now.saturating_sub(since));
        (chain.before.take(), since)
    })
}

/// Forgets when a guest began to wait, so that the time since then does not count as the next guest's.
#[inline]
pub(crate) fn forget_wait() {
    // The chain may be gone when a thread ends.
    let _ending = CHAIN.try_with(|chain| chain.waits_since.set(None));
}

/// Whether the chain knows its next task: one that was woken to run next, or the caller that waits for an answer.
#[inline]
pub(crate) fn has_next() -> bool {
    CHAIN.with(|chain| {
        let next = chain.next.take();
        let has_next = next.is_some() || matches!(chain.within.get(), Within::Task | Within::Guest);
        chain.next.set(next);
        has_next
    })
}

/// Polls a task of the runtime as the first of a chain, and then the rest of the chain.
pub(crate) fn first<T>(poll: impl FnOnce() -> T) -> T {
    CHAIN.with(|chain| {
        chain.during(Within::Own, || {
            let polled = poll();
            chain.run();
            polled
        })
    })
}

/// Returns the address of this thread's chain, which tells threads apart.
pub(crate) fn home() -> usize {
    CHAIN.with(address)
}

/// Makes `task` run next and returns true, if [`hand`] wakes it, `home` is this thread, and a chain is polled here.
/// Otherwise returns false and does not call `task`.
pub(crate) fn run_next(home: usize, task: impl FnOnce() -> Arc<dyn HandedTask>) -> bool {
    let run_next = |chain: &Chain| {
        // A task of another Main has another thread.
        let is_next = home == address(chain) && chain.within.get() != Within::Nothing;
        if is_next && let Some(former) = chain.next.replace(Some(task())) {
            former.schedule();
        }
        is_next
    };
    // The chain may be gone when a thread ends.
    IS_HANDED.get() && CHAIN.try_with(run_next).unwrap_or(false)
}

/// Calls `wake`, and makes the task that it wakes run next, if a chain is polled on this thread. The task that was to
/// run next goes into the runtime's queue.
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

/// Calls `send`, and runs the chain of tasks that it wakes before it returns. It is for a task of Main or a guest that
/// waits for the answer. If other guests ran in a guest's call, also returns the [`moment`] at which they stopped.
///
/// On threads other than the worker, and once the runtime's budget for the task is used up, it does no more than call
/// `send`. The same holds for a guest that runs within another guest's call, because stacks must not pile up.
pub fn switch<T>(send: impl FnOnce() -> T) -> (T, Option<u64>) {
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

fn now() -> u64 {
    moment(Instant::now())
}

fn address(chain: &Chain) -> usize {
    ptr::from_ref(chain).addr()
}
