//! The worker's looks at timers and sockets, between which extensions run for so long and no longer.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Wake, Waker},
    time::Duration,
};

use weir_metrics::nanoseconds;

use crate::{processor_time::processor_time, ticket::Ticket};

/// Time for which extensions may run before the worker looks at its timers and sockets.
const EVERY: Duration = Duration::from_micros(100);

/// Who waits for the next look, in the order in which they came.
///
/// The first of them is called by the look, and each other one by whoever has run, waits now, and has handed the thread to
/// nobody, as long as there is time. One is called at a time: the next when that has run, or does not run after all, which
/// also has the next look asked for.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// Nanoseconds for which extensions ran since the last one.
    ran: AtomicU64,
    /// Processor time of the worker thread at the last one, in nanoseconds.
    processor_time: AtomicU64,
    waiting: Mutex<Waiting>,
    /// The runtime wakes it after its next look, and somebody may wait for that.
    is_asked_for: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiting {
    tickets: VecDeque<Arc<Ticket>>,
    /// The one that was called, until it runs.
    called: Option<Arc<Ticket>>,
}

impl Look {
    /// Extensions have run for as long as they may without one.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.ran.load(Ordering::Relaxed) >= nanoseconds(EVERY)
    }

    /// Counts time for which an extension ran.
    #[inline]
    pub(crate) fn ran(&self, time: u64) {
        let before = self.ran.load(Ordering::Relaxed);
        self.ran.store(before.saturating_add(time), Ordering::Relaxed);
    }

    /// How much of such a time the processor can have worked for the guest that runs now: no more than since the last look.
    pub(crate) fn worked(&self, time: u64) -> u64 {
        let since_look = processor_time().saturating_sub(self.processor_time.load(Ordering::Relaxed));
        time.min(since_look)
    }

    /// Has a ticket wait for it.
    pub(crate) fn wait(self: &Arc<Self>, ticket: Arc<Ticket>) {
        self.waiting().tickets.push_back(ticket);
        self.ask();
    }

    /// Whoever holds the ticket waits no longer, or does not run though it was called.
    pub(crate) fn leave(self: &Arc<Self>, ticket: &Arc<Ticket>) {
        self.waiting().tickets.retain(|other| !Arc::ptr_eq(other, ticket));
        self.answered(ticket);
    }

    /// Whoever holds the ticket has run; it may not have waited for a look at all.
    pub(crate) fn answered(self: &Arc<Self>, ticket: &Arc<Ticket>) {
        self.waiting().called.take_if(|called| Arc::ptr_eq(called, ticket));
        self.ask();
    }

    /// Sees to it that the next look calls somebody, if anybody waits for it.
    fn ask(self: &Arc<Self>) {
        if !self.waiting().tickets.is_empty() && !self.is_asked_for.swap(true, Ordering::AcqRel) {
            // That is what tokio does with a task that yields: it is pending, and has put the waker there.
            let _pending =
                pin!(tokio::task::yield_now()).poll(&mut Context::from_waker(&Waker::from(self.clone())));
        }
    }

    /// Calls whoever is next, if there still is time before the look that is due.
    #[inline]
    pub(crate) fn call_next(&self) {
        if self.is_asked_for.load(Ordering::Relaxed) && !self.is_due() {
            self.call();
        }
    }

    fn call(&self) {
        let mut waiting = self.waiting();
        if waiting.called.is_none() {
            waiting.called = waiting.tickets.pop_front();
            let called = waiting.called.clone();
            drop(waiting);
            if let Some(ticket) = called {
                ticket.call();
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Look {
    fn wake(self: Arc<Self>) {
        self.ran.store(0, Ordering::Relaxed);
        self.processor_time.store(processor_time(), Ordering::Relaxed);
        // Whoever finds it asked for is in the queue by then. To ask for another here would panic: the runtime
        // has its list of those that yielded in hand.
        self.is_asked_for.swap(false, Ordering::AcqRel);
        self.call();
    }
}
