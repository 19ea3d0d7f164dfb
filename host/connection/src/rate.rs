//! How fast a session's messages are read: a token bucket that holds the messages of one second.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

const BURST: Duration = Duration::from_secs(1);

/// A session begins with an eighth of its bucket, so that connecting again and again does not get around the rate.
const FIRST: u32 = 8;

/// When the next message of a session may be read: see `limits.message-rate`.
#[derive(Debug)]
pub struct Rate {
    /// The time of one message at this rate.
    each: Duration,
    /// When the bucket would be full again: the virtual time of the generic cell rate algorithm.
    full_at: Instant,
    pause: Option<Pin<Box<Sleep>>>,
}

impl Rate {
    /// A rate of `per_second` messages a second, where 0 counts as 1.
    #[must_use]
    pub fn new(per_second: u32) -> Self {
        let each = BURST / per_second.max(1);
        Self { each, full_at: Instant::now() + (BURST - BURST / FIRST), pause: None }
    }

    /// Ready once one more message may be read, and counts it.
    pub fn poll_one(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(context));
                self.pause = None;
            }
            let now = Instant::now();
            if self.full_at <= now + BURST {
                self.full_at = self.full_at.max(now) + self.each;
                return Poll::Ready(());
            }
            self.pause = Some(Box::pin(sleep_until(self.full_at - BURST)));
        }
    }

    /// Counts messages that were read together with one that was ready: the next one waits for them, too.
    pub fn owe(&mut self, messages: u32) {
        self.full_at += self.each.saturating_mul(messages);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_eighth_of_a_second_comes_at_once_and_the_rest_at_the_rate() {
        let (mut rate, began) = (Rate::new(100), Instant::now());
        for _ in 0..13 {
            poll_fn(|context| rate.poll_one(context)).await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        for _ in 0..200 {
            poll_fn(|context| rate.poll_one(context)).await;
        }
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(1990) && took <= Duration::from_millis(2210), "{took:?}");
    }
}
