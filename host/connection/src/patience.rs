//! How long the other end of a connection may take nothing of what waits for it.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::{Sleep, sleep};

/// A timer that runs only while the other end does not take what waits for it: see `limits.stall-timeout`.
#[derive(Debug)]
pub struct Patience {
    limit: Duration,
    /// The timer, and what the other end had taken when it began.
    running: Option<(Pin<Box<Sleep>>, u64)>,
}

impl Patience {
    /// A timer that ends once the other end has taken nothing for `limit`.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        Self { limit, running: None }
    }

    /// Stops the timer, because nothing waits or the other end takes it.
    pub fn renew(&mut self) {
        self.running = None;
    }

    /// Ready once the other end has taken nothing for too long, with how long that is. `taken` counts what it took without
    /// a [`renew`](Self::renew), such as parts of a large message on a slow network.
    pub fn poll_over(&mut self, taken: u64, context: &mut Context<'_>) -> Poll<Duration> {
        loop {
            let (timer, before) = self.running.get_or_insert_with(|| (Box::pin(sleep(self.limit)), taken));
            ready!(timer.as_mut().poll(context));
            if *before == taken {
                return Poll::Ready(self.limit);
            }
            self.running = None;
        }
    }
}
