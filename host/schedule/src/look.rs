//! The worker's looks at timers and sockets, and for how long extensions run between them.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Wake, Waker},
    time::Duration,
};

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use weir_metrics::nanoseconds;

use crate::turns::Ticket;

/// Time for which extensions may run before the worker looks at its timers and sockets.
///
/// In tests of this crate only what a test counts itself makes a look due: the machine may pause them at any time.
const EVERY: Duration = if cfg!(test) { Duration::MAX } else { Duration::from_micros(100) };

/// The tickets that wait for the next look, in order.
///
/// The look calls the first. Each other one is called by a guest that ran, now waits, and handed the thread to nobody,
/// while there is time. One is called at a time: the next when that one has run, or will not run. Either also asks for
/// the next look.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// Nanoseconds that extensions ran since the last look.
    pub(crate) ran: AtomicU64,
    /// Processor time of the worker thread at the last look, in nanoseconds.
    processor_time: AtomicU64,
    waiting: Mutex<Waiting>,
    /// The runtime wakes it after its next look; a ticket may wait for that.
    is_asked_for: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiting {
    tickets: VecDeque<Arc<Ticket>>,
    /// The one that was called, until it runs.
    called: Option<Arc<Ticket>>,
}

impl Look {
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.ran.load(Ordering::Relaxed) >= nanoseconds(EVERY)
    }

    /// Counts nanoseconds for which an extension ran.
    #[inline]
    pub(crate) fn ran(&self, time: u64) {
        let before = self.ran.load(Ordering::Relaxed);
        self.ran.store(before.saturating_add(time), Ordering::Relaxed);
    }

    /// How much of `time` can be the running guest's processor time: no more than since the last look.
    pub(crate) fn worked(&self, time: u64) -> u64 {
        let since_look = processor_time().saturating_sub(self.processor_time.load(Ordering::Relaxed));
        time.min(since_look)
    }

    pub(crate) fn wait(self: &Arc<Self>, ticket: Arc<Ticket>) {
        self.waiting.lock().tickets.push_back(ticket);
        self.ask();
    }

    /// The ticket's holder waits no longer, or does not run though it was called.
    pub(crate) fn leave(self: &Arc<Self>, ticket: &Arc<Ticket>) {
        self.waiting.lock().tickets.retain(|other| !Arc::ptr_eq(other, ticket));
        self.answered(ticket);
    }

    /// The ticket's holder has run, perhaps without waiting for a look.
    pub(crate) fn answered(self: &Arc<Self>, ticket: &Arc<Ticket>) {
        self.waiting.lock().called.take_if(|called| Arc::ptr_eq(called, ticket));
        self.ask();
    }

    /// Has the next look call a ticket, if any waits.
    fn ask(self: &Arc<Self>) {
        if !self.waiting.lock().tickets.is_empty() && !self.is_asked_for.swap(true, Ordering::AcqRel) {
            // As for a task that yields: pending, with its waker left for after the look.
            let _pending =
                pin!(tokio::task::yield_now()).poll(&mut Context::from_waker(&Waker::from(self.clone())));
        }
    }

    /// Calls the next one, if there is time left before the next look is due.
    #[inline]
    pub(crate) fn call_next(&self) {
        if self.is_asked_for.load(Ordering::Relaxed) && !self.is_due() {
            self.call();
        }
    }

    fn call(&self) {
        let mut waiting = self.waiting.lock();
        if waiting.called.is_none() {
            waiting.called = waiting.tickets.pop_front();
            let called = waiting.called.clone();
            drop(waiting);
            if let Some(ticket) = called {
                ticket.call();
            }
        }
    }
}

impl Wake for Look {
    fn wake(self: Arc<Self>) {
        self.ran.store(0, Ordering::Relaxed);
        self.processor_time.store(processor_time(), Ordering::Relaxed);
        // A guest that finds it asked for is in the queue by then. Asking again here would panic: the runtime has its
        // list of yielded tasks in hand.
        self.is_asked_for.swap(false, Ordering::AcqRel);
        self.call();
    }
}

/// Nanoseconds that the processor has worked for this thread, which stand still while the process does. Takes a system
/// call.
pub(crate) fn processor_time() -> u64 {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).map(nanoseconds).unwrap_or_default()
}
