//! `handler-timeout`: the limit on the time for which an event or a job may be in hand.

#[cfg(test)]
mod tests;

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};
use weir_metrics::{moment, nanoseconds};

use super::{Handling, held::Held};

/// How many parts the limit has. A pause of Main uses up at most one.
const PARTS: u64 = 16;

/// The shortest time between two looks is this part of the limit, because looking at many jobs takes time.
const LOOKS: u64 = 64;

/// How late a timer may be on a busy machine. For the time beyond that, Main did not run.
const LATE: Duration = Duration::from_millis(10);

/// Looks at the age of the events and jobs in hand while the instance waits. While nothing is in hand, no timer is set,
/// and a timer that was set before fires at most once more.
pub(crate) struct HandlerLimit {
    held: Arc<Held>,
    /// The limit in nanoseconds.
    allowed: u64,
    /// A warning was given for the messages that came into hand at this time or before.
    warned: Option<u64>,
    /// The timer, kept from one message to the next because a new one costs more.
    timer: Option<Pin<Box<Sleep>>>,
    /// Whether the timer is set for what is in hand now.
    is_set: bool,
}

impl HandlerLimit {
    pub(crate) fn new(held: Arc<Held>, allowed: Duration) -> Self {
        Self { held, allowed: nanoseconds(allowed), warned: None, timer: None, is_set: false }
    }

    /// Is ready with the age of the oldest message once that has been in hand for too long. Calls `warn` for a message
    /// in hand for half of that time. To be polled whenever the instance waits.
    #[inline]
    pub(crate) fn poll(&mut self, context: &mut Context<'_>, warn: impl Fn(&Handling)) -> Poll<Duration> {
        if self.held.is_any() {
            return self.poll_timer(context, &warn);
        }
        self.is_set = false;
        Poll::Pending
    }

    // Kept out of line, because an instance nearly always waits with nothing in hand.
    #[inline(never)]
    fn poll_timer(&mut self, context: &mut Context<'_>, warn: &dyn Fn(&Handling)) -> Poll<Duration> {
        loop {
            let set = self.timer.as_mut().filter(|_| self.is_set);
            let now = if let Some(timer) = set {
                ready!(timer.as_mut().poll(context));
                let now = Instant::now();
                let late = now.saturating_duration_since(timer.deadline() + LATE);
                if !late.is_zero() {
                    self.held.pause(nanoseconds(late), moment(now.into_std()));
                }
                now
            } else {
                let now = Instant::now();
                self.forgive(now);
                now
            };
            let Some(next) = self.look(now, warn) else { return Poll::Pending };
            match next {
                Next::Over(age) => return Poll::Ready(age),
                Next::In(time) => self.set(now + time),
            }
        }
    }

    fn set(&mut self, deadline: Instant) {
        match &mut self.timer {
            Some(timer) => timer.as_mut().reset(deadline),
            none => *none = Some(Box::pin(sleep_until(deadline))),
        }
        self.is_set = true;
    }

    /// Forgives the age of the oldest message when the timer is first set, but for one part of the limit. The message
    /// came just now, or else Main stood still in between.
    fn forgive(&self, now: Instant) {
        let now = moment(now.into_std());
        let age = self.held.since(None).map_or(0, |since| self.held.time(now).saturating_sub(since.oldest));
        let pause = age.saturating_sub(self.allowed / PARTS);
        if pause > 0 {
            self.held.pause(pause, now);
        }
    }

    /// Returns whether a message has been in hand for too long, or when to look again. Returns none if nothing is in
    /// hand.
    fn look(&mut self, now: Instant, warn: &dyn Fn(&Handling)) -> Option<Next> {
        let now = self.held.time(moment(now.into_std()));
        let since = self.held.since(self.warned)?;
        let age = now.saturating_sub(since.oldest);
        if age >= self.allowed {
            return Some(Next::Over(Duration::from_nanos(age)));
        }
        let half = self.allowed / 2;
        let mut left = self.allowed - age;
        if let Some(fresh) = since.oldest_after {
            let age = now.saturating_sub(fresh);
            if age < half {
                left = left.min(half - age);
            } else if let Some(handling) = self.held.oldest(self.warned) {
                warn(&handling);
                self.warned = Some(now - half);
            }
        }
        let time = left.clamp(self.allowed / LOOKS, self.allowed / PARTS);
        Some(Next::In(Duration::from_nanos(time)))
    }
}

/// What a look decides: the limit is exceeded by a message of this age, or the next look comes after this time.
enum Next {
    Over(Duration),
    In(Duration),
}
