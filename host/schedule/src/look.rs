//! The worker's looks at timers and sockets, and the time for which extensions run between two looks.

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

/// The time for which extensions may run before the worker looks at its timers and sockets.
///
/// In tests of this crate, no look becomes due by itself, because the machine may pause a test at any time.
const EVERY: Duration = if cfg!(test) { Duration::MAX } else { Duration::from_micros(100) };

/// The tickets that wait for the next look, in order.
///
/// The look calls the first ticket. A guest that stops without handing over the thread calls the next one, while there
/// is time. One ticket is called at a time, until its holder has run or given up. When that happens, or a ticket is
/// added, the next look is asked for if tickets wait.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// Nanoseconds that extensions ran since the last look.
    pub(crate) ran: AtomicU64,
    /// Processor time of the worker thread at the last look, in nanoseconds.
    processor_time: AtomicU64,
    waiting: Mutex<Waiting>,
    /// Whether the runtime wakes this after its next look.
    is_asked_for: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiting {
    tickets: VecDeque<Arc<Ticket>>,
    /// The ticket that was called, until its holder has run or gives up.
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

    /// Returns how much of `time` the running guest can have worked: no more than the thread's processor time since the
    /// last look.
    pub(crate) fn worked(&self, time: u64) -> u64 {
        let since_look = processor_time().saturating_sub(self.processor_time.load(Ordering::Relaxed));
        time.min(since_look)
    }

    /// Adds a ticket at the end, to be called after a look.
    pub(crate) fn wait(self: &Arc<Self>, ticket: Arc<Ticket>) {
        self.waiting.lock().tickets.push_back(ticket);
        self.ask();
    }

    /// Removes the ticket, because its holder waits no longer or will not run although it was called.
    pub(crate) fn leave(self: &Arc<Self>, ticket: &Arc<Ticket>) {
        self.waiting.lock().tickets.retain(|other| !Arc::ptr_eq(other, ticket));
        self.answered(ticket);
    }

    /// Notes that the ticket's holder has run, so that another ticket can be called.
    pub(crate) fn answered(self: &Arc<Self>, ticket: &Arc<Ticket>) {
        self.waiting.lock().called.take_if(|called| Arc::ptr_eq(called, ticket));
        self.ask();
    }

    /// Makes the next look call a ticket, if any waits.
    fn ask(self: &Arc<Self>) {
        if !self.waiting.lock().tickets.is_empty() && !self.is_asked_for.swap(true, Ordering::AcqRel) {
            // Polls like a task that yields: the runtime keeps this waker, and wakes it after its next look.
            let _pending =
                pin!(tokio::task::yield_now()).poll(&mut Context::from_waker(&Waker::from(self.clone())));
        }
    }

    /// Calls the next ticket, if there is time left before the next look is due.
    #[inline]
    pub(crate) fn call_next(&self) {
        if self.is_asked_for.load(Ordering::Relaxed) && !self.is_due() {
            self.call();
        }
    }

    /// Calls the first ticket, unless another one is called now.
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
        // Cleared before the call, so that later tickets ask again. Asking here would panic, because the runtime is
        // going through its list of yielded tasks.
        self.is_asked_for.swap(false, Ordering::AcqRel);
        self.call();
    }
}

/// Returns the nanoseconds for which the processor has worked for this thread. They do not grow while the process is
/// stopped. Takes a system call.
pub(crate) fn processor_time() -> u64 {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).map(nanoseconds).unwrap_or_default()
}
