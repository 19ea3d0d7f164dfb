//! Work that a thread of the embedding program drives itself. While the work waits, the thread is parked.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// Polls `work` until it is done. In between it parks the thread, at most until the time in `alarm`.
pub fn drive<T>(work: impl Future<Output = T>, alarm: &Alarm) -> T {
    let mut work = pin!(work);
    let wakeup = Arc::new(ThreadWaker { thread: thread::current(), state: AtomicU8::new(AWAITED) });
    let waker = Waker::from(wakeup.clone());
    let mut context = Context::from_waker(&waker);
    loop {
        alarm.clear();
        wakeup.state.swap(AWAITED, Ordering::Acquire);
        if let Poll::Ready(done) = work.as_mut().poll(&mut context) {
            return done;
        }
        // A wake-up unparks only a thread that is parked. Otherwise the caller's next `park` would return at once.
        if !wakeup.is_still_awaited() {
            continue;
        }
        match alarm.time_left() {
            None => thread::park(),
            Some(left) => thread::park_timeout(left),
        }
    }
}

/// The time at which a thread that drives work must poll it again at the latest.
#[derive(Debug, Default)]
pub struct Alarm(Mutex<Option<Instant>>);

impl Alarm {
    /// Waits for `work` until `deadline`, and returns none after that. Must be awaited in work that [`drive()`] polls
    /// with this alarm.
    pub async fn within<T>(&self, deadline: Option<Instant>, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        poll_fn(|context| match (work.as_mut().poll(context), deadline) {
            (Poll::Ready(done), _) => Poll::Ready(Some(done)),
            (Poll::Pending, Some(deadline)) if deadline <= Instant::now() => Poll::Ready(None),
            (Poll::Pending, deadline) => {
                self.set(deadline);
                Poll::Pending
            }
        })
        .await
    }

    fn set(&self, deadline: Option<Instant>) {
        let mut set = self.0.lock();
        *set = set.into_iter().chain(deadline).min();
    }

    fn clear(&self) {
        *self.0.lock() = None;
    }

    fn time_left(&self) -> Option<Duration> {
        self.0.lock().map(|at| at.saturating_duration_since(Instant::now()))
    }
}

struct ThreadWaker {
    thread: Thread,
    state: AtomicU8,
}

/// The thread polls, and no wake-up has come.
const AWAITED: u8 = 0;
/// A wake-up has come, so the thread must poll again.
const HAS_COME: u8 = 1;
/// The thread is parked, or about to park.
const PARKED: u8 = 2;

impl ThreadWaker {
    /// Makes wake-ups unpark the thread from now on. Returns false and changes nothing if a wake-up has come already.
    fn is_still_awaited(&self) -> bool {
        self.state.compare_exchange(AWAITED, PARKED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(HAS_COME, Ordering::AcqRel) == PARKED {
            self.thread.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is ready when polled again; `wake` has it polled again.
    fn again(wake: impl Fn(&Waker)) -> impl Future<Output = ()> {
        let mut is_second = false;
        poll_fn(move |context| {
            if std::mem::replace(&mut is_second, true) {
                return Poll::Ready(());
            }
            wake(context.waker());
            Poll::Pending
        })
    }

    #[test]
    fn a_wait_leaves_nothing_behind_that_ends_the_callers_next_one() {
        drive(again(Waker::wake_by_ref), &Alarm::default());
        let waits = Duration::from_millis(20);
        let start = Instant::now();
        thread::park_timeout(waits);
        assert!(start.elapsed() >= waits);
    }

    #[test]
    fn whoever_wakes_late_wakes_a_thread_that_is_parked() {
        let late = |waker: &Waker| {
            let waker = waker.clone();
            // It ends with its only act.
            let _waking = thread::spawn(move || {
                thread::park_timeout(Duration::from_millis(2));
                waker.wake();
            });
        };
        drive(again(late), &Alarm::default());
    }
}
