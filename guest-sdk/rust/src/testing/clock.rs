//! The time of a test, which passes only when the test advances it, or waits while nothing can run.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    fmt,
    future::Future,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
    time::Duration,
};

/// The time of a [`Harness`](super::Harness). It starts at zero. While the test waits for the extension and nothing can
/// run, it jumps to the next awaited moment, so a test of a timeout takes no time.
/// [`Harness::advance`](super::Harness::advance) lets time pass without such a wait.
#[derive(Clone, Default)]
pub struct Clock(Rc<State>);

#[derive(Default)]
struct State {
    now: Cell<Duration>,
    /// The number of the next sleep. It tells sleeps apart that end at the same moment.
    next: Cell<u64>,
    sleepers: RefCell<BTreeMap<(Duration, u64), Waker>>,
}

impl Clock {
    /// Time since the start of the harness.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.0.now.get()
    }

    /// Waits, for example in a fake contract before it answers.
    pub fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + use<> {
        let number = self.0.next.get();
        self.0.next.set(number.wrapping_add(1));
        Sleep { clock: self.clone(), place: (self.now().saturating_add(duration), number) }
    }

    /// The earliest moment that is awaited. `None` if nothing sleeps.
    pub(super) fn next(&self) -> Option<Duration> {
        self.0.sleepers.borrow().first_key_value().map(|((at, _), _)| *at)
    }

    pub(super) fn advance_to(&self, now: Duration) {
        self.0.now.set(now.max(self.now()));
        loop {
            let mut sleepers = self.0.sleepers.borrow_mut();
            match sleepers.first_entry() {
                Some(first) if first.key().0 <= now => {
                    let waker = first.remove();
                    drop(sleepers);
                    waker.wake();
                }
                _ => return,
            }
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({:?})", self.now())
    }
}

struct Sleep {
    clock: Clock,
    /// The moment of its end, and its number.
    place: (Duration, u64),
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.clock.now() >= self.place.0 {
            return Poll::Ready(());
        }
        self.clock.0.sleepers.borrow_mut().insert(self.place, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.clock.0.sleepers.borrow_mut().remove(&self.place);
    }
}
