//! Decides when a guest is polled: in its turn, within its share, and not when a look at timers and sockets is due.
//!
//! A guest that a message wakes runs when the worker thread comes to it. A guest that used up its slice and could go on
//! is *busy*: it waits for its turn.

#[cfg(test)]
mod tests;

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll, Wake, Waker, ready},
    time::{Duration, Instant},
};

use tokio::{
    task::unconstrained,
    time::{Sleep, sleep},
};
use weir_metrics::{Usage, measure_ending, moment, nanoseconds};

use crate::{
    activity::Activity,
    chain,
    share::{Share, SharedShare},
    turns::{Ticket, Turns},
};

/// For a slice longer than this, ten times the usual, the processor time is read. Either Main was stopped, or the guest
/// did one long piece of work, such as `memory.fill`. Reading it for every slice would cost a system call each.
const LONG: Duration = Duration::from_micros(2500);

/// Lets others run once, like a guest that has used up its slice.
pub async fn end_slice() {
    let mut has_ended = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_ended, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A guest that runs in turn and within its share. Dropping it gives up its place in the queues.
pub struct InTurn<F> {
    guest: Pin<Box<F>>,
    /// The guest's waker in the task that polled it last.
    guest_waker: Option<(Arc<GuestWaker>, Waker)>,
    turns: Arc<Turns>,
    /// The guest's place among the busy guests, if it waits for its turn or has it.
    ticket: Option<Arc<Ticket>>,
    /// The guest's wait for the worker's look at timers and sockets, after the guest was woken.
    look: Option<Arc<Ticket>>,
    share: Share,
    /// Keeps the share between instances.
    kept: Arc<SharedShare>,
    /// Whether other guests spend from `kept` at the same time.
    is_shared: bool,
    /// The guest's wait for credit, if it has used more than its share.
    delay: Option<Delay>,
    activity: Arc<Activity>,
    usage: Arc<Usage>,
}

struct Delay {
    over: Pin<Box<Sleep>>,
    /// When the delay began, as a [`moment`].
    began: u64,
}

impl<F: Future> InTurn<F> {
    /// Wraps a guest that runs in these turns and within this share. Its processor time is counted in `usage`.
    pub fn new(
        guest: F,
        turns: Arc<Turns>,
        share: Arc<SharedShare>,
        activity: Arc<Activity>,
        usage: Arc<Usage>,
    ) -> Self {
        let own_share = *share.lock();
        Self {
            guest: Box::pin(guest),
            guest_waker: None,
            turns,
            ticket: None,
            look: None,
            share: own_share,
            kept: share,
            is_shared: false,
            delay: None,
            activity,
            usage,
        }
    }

    /// Makes the guest read and write its share on each poll, because others spend from it at the same time.
    pub fn among_others(mut self) -> Self {
        self.is_shared = true;
        self
    }

    /// Waits until the guest may run: for its share, then for its turn if it is busy, or for a look that is due.
    /// Returns the [`moment`] from which the run counts.
    fn poll_permission(&mut self, context: &mut Context<'_>) -> Poll<u64> {
        loop {
            if let Some(delay) = &mut self.delay {
                ready!(delay.over.as_mut().poll(context));
                self.usage.add_delay(moment(Instant::now()).saturating_sub(delay.began));
                self.delay = None;
                // Delays of many guests can end together. Without turns, these guests would all run at once.
                self.join(context);
            }
            let (now, uncounted) = chain::begin();
            self.turns.look.ran(uncounted);
            let Some(wait) = self.share.wait(now) else {
                if self.ticket.is_none() && self.look.is_none() && self.turns.look.is_due() {
                    let look = self.look.insert(Arc::default()).clone();
                    look.register(context.waker());
                    self.turns.look.wait(look);
                }
                return match self.ticket.as_ref().or(self.look.as_ref()) {
                    Some(ticket) => ticket.poll(context).map(|()| now),
                    None => Poll::Ready(now),
                };
            };
            // Gives up the turn, which another guest can use.
            self.leave();
            self.delay = Some(Delay { over: Box::pin(sleep(wait)), began: now });
        }
    }

    /// Makes the guest wait for its turn, behind the other busy guests.
    fn join(&mut self, context: &Context<'_>) {
        self.ticket = Some(self.turns.join(context.waker()));
    }
}

impl<F> InTurn<F> {
    /// Gives up the wait for the look, and the turn or the wait for it.
    fn leave(&mut self) {
        if let Some(look) = self.look.take() {
            self.turns.look.leave(&look);
        }
        if let Some(ticket) = self.ticket.take() {
            if ticket.has_turn.load(Ordering::Relaxed) {
                self.turns.look.leave(&ticket);
            }
            self.turns.leave(&ticket);
        }
    }
}

impl<F: Future> Future for InTurn<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        if this.is_shared {
            this.share = *this.kept.lock();
        }
        let start = ready!(this.poll_permission(context));
        this.activity.begin(start);
        // Nearly always the same task polls, and its waker is kept. Another task's waker replaces it.
        this.guest_waker.take_if(|(of, _)| !of.task.will_wake(context.waker()));
        let (guest_waker, waker) = this.guest_waker.get_or_insert_with(|| GuestWaker::of(context.waker()));
        guest_waker.begin();
        // Fuel and turns bound the guest. The runtime's budget is shared by the whole chain: under it, the guest could
        // find nothing to read where there is something.
        let result = pin!(unconstrained(this.guest.as_mut())).poll(&mut Context::from_waker(waker));
        let is_busy = guest_waker.end();
        let end = moment(Instant::now());
        let (before, since) = chain::end(end);
        let mut spent = before.saturating_add(since);
        if spent > nanoseconds(LONG) {
            spent = this.turns.look.worked(spent);
        }
        this.activity.work(spent);
        spent = spent.saturating_add(this.kept.take_elsewhere());
        this.usage.add_cpu(spent);
        this.usage.cpu_second.add_at(end, spent);
        measure_ending(end);
        if this.is_shared {
            // Others may have spent from it within this run.
            let mut kept = this.kept.lock();
            kept.spend(spent);
            this.share = *kept;
        } else {
            this.share.spend(spent);
        }
        this.turns.look.ran(since);
        let (had_turn, looked) = (this.ticket.take(), this.look.take());
        for ticket in had_turn.iter().chain(&looked) {
            this.turns.look.answered(ticket);
        }
        if result.is_pending() {
            // Not noted when the guest ends: the clean-up takes long, and must not count as the next guest's time.
            chain::note_wait(end);
            if !chain::has_next() {
                chain::hand(|| this.turns.look.call_next());
            }
            if is_busy {
                this.join(context);
            } else {
                this.activity.wait();
            }
        }
        if let Some(ticket) = &had_turn {
            this.turns.leave(ticket);
        }
        result
    }
}

impl<F> fmt::Debug for InTurn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InTurn").finish_non_exhaustive()
    }
}

impl<F> Drop for InTurn<F> {
    fn drop(&mut self) {
        if !self.is_shared {
            *self.kept.lock() = self.share;
        }
        self.leave();
        chain::forget_wait();
    }
}

/// The guest's waker. It tells a guest that was woken while it ran, and so can go on, from a guest that waits.
#[derive(Debug)]
struct GuestWaker {
    task: Waker,
    state: AtomicU8,
}

/// The guest is being polled.
const RUNNING: u8 = 1;
/// The guest was woken.
const WOKEN: u8 = 2;

impl GuestWaker {
    fn of(task: &Waker) -> (Arc<Self>, Waker) {
        let guest = Arc::new(Self { task: task.clone(), state: AtomicU8::new(0) });
        (guest.clone(), guest.into())
    }

    fn begin(&self) {
        self.state.store(RUNNING, Ordering::Release);
    }

    /// Ends the poll. Returns whether the guest was woken during it.
    fn end(&self) -> bool {
        // One atomic step, so that a wake-up either goes to the task or is seen here.
        self.state.swap(0, Ordering::AcqRel) & WOKEN != 0
    }
}

impl Wake for GuestWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.fetch_or(WOKEN, Ordering::AcqRel) & RUNNING == 0 {
            chain::hand(|| self.task.wake_by_ref());
        }
    }
}
