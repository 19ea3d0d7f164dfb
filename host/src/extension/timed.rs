//! Processor time of one task, measured around each poll.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Instant,
};

/// A future that adds the time of each poll to a counter, in nanoseconds.
pub(super) struct Timed<F> {
    inner: Pin<Box<F>>,
    nanoseconds: Arc<AtomicU64>,
}

impl<F: Future> Timed<F> {
    pub(super) fn new(inner: F, nanoseconds: Arc<AtomicU64>) -> Self {
        Self { inner: Box::pin(inner), nanoseconds }
    }
}

impl<F: Future> Future for Timed<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let start = Instant::now();
        let poll = self.inner.as_mut().poll(context);
        let spent = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(spent, Ordering::Relaxed);
        poll
    }
}
