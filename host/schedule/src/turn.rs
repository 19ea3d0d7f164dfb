//! When an extension runs: the busy ones one after the other, behind those that were waiting, and
//! none above its share.
//!
//! An extension that is woken by a message runs as soon as the worker thread comes to it. One that
//! has used up its slice and could go on is *busy*: it waits for its turn. One busy extension runs
//! at a time, so that however many are busy, a message waits for one slice, not for one of each. When
//! extensions have run for long enough, whoever is next waits for the worker's next [`Look`] at timers and
//! sockets, whether it is busy or was woken: extensions that wake each other all the time would else
//! keep it from that. Who is over its `cpu-share` is not run until it is under it again.

mod look;
mod share;
#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
    },
    task::{Context, Poll, Wake, Waker, ready},
    time::{Duration, Instant},
};

use futures_util::task::AtomicWaker;
use tokio::{
    task::unconstrained,
    time::{Sleep, sleep},
};
use weir_metrics::{Usage, nanoseconds};
use weir_names::CpuShare;

use self::{look::Look, share::Share};
use super::handoff;

/// The busy extensions of one Main, in the order of their turns.
#[derive(Debug, Default)]
pub struct Turns {
    queue: Mutex<Queue>,
    pub look: Arc<Look>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Arc<Ticket>>,
    /// Somebody has the turn.
    is_taken: bool,
}

/// A place in the queue, or a wait for the worker's next look at timers and sockets alone.
///
/// Its holder may be woken by anything at any time, and runs only when it is called.
#[derive(Debug, Default)]
struct Ticket {
    has_turn: AtomicBool,
    is_called: AtomicBool,
    task: AtomicWaker,
}

impl Ticket {
    fn call(&self) {
        self.is_called.store(true, Ordering::Release);
        self.task.wake();
    }

    /// Ready when it is called.
    fn poll(&self, context: &Context<'_>) -> Poll<()> {
        self.task.register(context.waker());
        if self.is_called.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Turns {
    /// Takes a place at the end for a task.
    fn join(&self, task: &Waker) -> Arc<Ticket> {
        let ticket = Arc::<Ticket>::default();
        ticket.task.register(task);
        let mut queue = self.queue();
        queue.waiting.push_back(ticket.clone());
        if !queue.is_taken {
            queue.call_next(&self.look);
        }
        ticket
    }

    /// Gives up a place, or the turn.
    fn leave(&self, ticket: &Arc<Ticket>) {
        let mut queue = self.queue();
        if ticket.has_turn.load(Ordering::Relaxed) {
            queue.call_next(&self.look);
        } else {
            queue.waiting.retain(|other| !Arc::ptr_eq(other, ticket));
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn call_next(&mut self, look: &Arc<Look>) {
        let next = self.waiting.pop_front();
        self.is_taken = next.is_some();
        if let Some(ticket) = next {
            ticket.has_turn.store(true, Ordering::Relaxed);
            if look.is_due() {
                look.wait(ticket);
            } else {
                ticket.call();
            }
        }
    }
}

/// Lets others run, as a guest that has used up its slice.
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

/// Which activation of an extension is under way, and since when.
#[derive(Debug)]
pub struct Activity {
    number: AtomicU64,
    created: Instant,
    started: AtomicU64,
}

impl Activity {
    pub fn new() -> Self {
        Self { number: AtomicU64::new(0), created: Instant::now(), started: AtomicU64::new(0) }
    }

    pub fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    /// When the activation began.
    pub fn began(&self) -> Instant {
        self.created + Duration::from_nanos(self.started.load(Ordering::Relaxed))
    }

    /// Since the activation began.
    pub fn elapsed(&self) -> Duration {
        self.began().elapsed()
    }

    pub fn begin(&self, now: Instant) {
        self.started.store(nanoseconds(now.saturating_duration_since(self.created)), Ordering::Relaxed);
        // Nobody else writes it.
        self.number.store(self.number().wrapping_add(1), Ordering::Relaxed);
    }
}

/// The share of one extension, which no restart renews.
#[derive(Debug)]
pub struct SharedShare(Mutex<Share>);

impl SharedShare {
    pub fn new(share: CpuShare) -> Self {
        Self(Mutex::new(Share::new(share, Instant::now())))
    }

    fn lock(&self) -> MutexGuard<'_, Share> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guest that runs in turn and within its share. Dropped, it gives up its place.
pub struct InTurn<F> {
    guest: Pin<Box<F>>,
    /// How the guest is woken in the task that polled it last.
    wakeups: Option<(Arc<Wakeups>, Waker)>,
    turns: Arc<Turns>,
    ticket: Option<Arc<Ticket>>,
    /// It was woken, and lets the worker look at timers and sockets first.
    look: Option<Arc<Ticket>>,
    share: Share,
    /// Where the share is kept between instances.
    kept: Arc<SharedShare>,
    /// Others spend of that at the same time.
    is_shared: bool,
    delay: Option<Delay>,
    activity: Arc<Activity>,
    usage: Arc<Usage>,
}

/// A wait until the guest is under its share again.
struct Delay {
    over: Pin<Box<Sleep>>,
    began: Instant,
}

impl<F: Future> InTurn<F> {
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
            wakeups: None,
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

    /// With a share that others spend of at the same time.
    pub fn among_others(mut self) -> Self {
        self.is_shared = true;
        self
    }

    /// Ready when the guest may run.
    fn poll_permission(&mut self, context: &mut Context<'_>) -> Poll<Instant> {
        loop {
            if let Some(delay) = &mut self.delay {
                ready!(delay.over.as_mut().poll(context));
                self.usage.add_delay(nanoseconds(delay.began.elapsed()));
                self.delay = None;
                // Delays end together: without turns, so many would run at once.
                self.join(context);
            }
            let (now, uncounted) = handoff::begin();
            self.turns.look.ran(nanoseconds(uncounted));
            let Some(wait) = self.share.wait(now) else {
                if self.ticket.is_none() && self.look.is_none() && self.turns.look.is_due() {
                    let look = self.look.insert(Arc::default()).clone();
                    look.task.register(context.waker());
                    self.turns.look.wait(look);
                }
                return match self.ticket.as_ref().or(self.look.as_ref()) {
                    Some(ticket) => ticket.poll(context).map(|()| now),
                    None => Poll::Ready(now),
                };
            };
            // A turn that cannot be used is somebody else's.
            self.leave();
            self.delay = Some(Delay { over: Box::pin(sleep(wait)), began: now });
        }
    }

    /// Takes a place in the queue.
    fn join(&mut self, context: &Context<'_>) {
        self.ticket = Some(self.turns.join(context.waker()));
    }
}

impl<F> InTurn<F> {
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
        // Nearly always it is the same task. Of another the guest is told now, since it is polled.
        this.wakeups.take_if(|(wakeups, _)| !wakeups.task.will_wake(context.waker()));
        let (wakeups, waker) = this.wakeups.get_or_insert_with(|| Wakeups::of(context.waker()));
        wakeups.begin();
        // Fuel and turns bound it. The runtime's budget, which all that are handed the thread would share, would have it
        // find nothing to read where there is something.
        let result = pin!(unconstrained(this.guest.as_mut())).poll(&mut Context::from_waker(waker));
        let is_busy = wakeups.end();
        let end = Instant::now();
        let (before, since) = handoff::end(end);
        let spent = nanoseconds(before + since);
        this.usage.add_cpu(spent);
        this.usage.cpu_second.add(end, spent);
        this.share.spend(spent);
        if this.is_shared {
            *this.kept.lock() = this.share;
        }
        this.turns.look.ran(nanoseconds(since));
        let (had_turn, looked) = (this.ticket.take(), this.look.take());
        for ticket in had_turn.iter().chain(&looked) {
            this.turns.look.answered(ticket);
        }
        if result.is_pending() {
            // What comes after its end is no other's time, and takes long.
            handoff::note_wait(end);
            if !handoff::has_next() {
                handoff::hand(|| this.turns.look.call_next());
            }
            if is_busy {
                this.join(context);
            }
        }
        if let Some(ticket) = &had_turn {
            this.turns.leave(ticket);
        }
        result
    }
}

impl<F> Drop for InTurn<F> {
    fn drop(&mut self) {
        if !self.is_shared {
            *self.kept.lock() = self.share;
        }
        self.leave();
        handoff::forget_wait();
    }
}

/// Tells a guest that was woken while it ran, and so could go on, from one that waits.
#[derive(Debug)]
struct Wakeups {
    task: Waker,
    state: AtomicU8,
}

/// The guest runs.
const RUNNING: u8 = 1;
/// It was woken.
const WOKEN: u8 = 2;

impl Wakeups {
    /// Of a guest in that task.
    fn of(task: &Waker) -> (Arc<Self>, Waker) {
        let wakeups = Arc::new(Self { task: task.clone(), state: AtomicU8::new(0) });
        (wakeups.clone(), wakeups.into())
    }

    fn begin(&self) {
        self.state.store(RUNNING, Ordering::Release);
    }

    /// Whether it was woken meanwhile.
    fn end(&self) -> bool {
        // In one step: a wake-up goes to the task, or is seen here.
        self.state.swap(0, Ordering::AcqRel) & WOKEN != 0
    }
}

impl Wake for Wakeups {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.fetch_or(WOKEN, Ordering::AcqRel) & RUNNING == 0 {
            handoff::hand(|| self.task.wake_by_ref());
        }
    }
}
