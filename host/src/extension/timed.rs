//! Processor time of one task, measured around each poll.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};

use crate::usage::Usage;

/// A future that adds the time of each poll to what the extension has used.
pub(super) struct Timed<F> {
    inner: Pin<Box<F>>,
    usage: Arc<Usage>,
}

impl<F: Future> Timed<F> {
    pub(super) fn new(inner: F, usage: Arc<Usage>) -> Self {
        Self { inner: Box::pin(inner), usage }
    }
}

impl<F: Future> Future for Timed<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let start = Instant::now();
        let poll = self.inner.as_mut().poll(context);
        let spent = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.usage.add_cpu(spent);
        poll
    }
}
