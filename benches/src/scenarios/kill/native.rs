//! The same in native code: a task that is asleep and is dropped at a deadline.

use std::{
    future::pending,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use tokio::sync::{mpsc, oneshot};

/// A thread with a runtime like Main's, where a task that sleeps for ever awaits its deadline whenever
/// it is told to.
#[derive(Debug)]
pub(super) struct NativeTask {
    orders: Option<mpsc::Sender<oneshot::Sender<()>>>,
    thread: Option<JoinHandle<()>>,
    timeout: Duration,
}

impl NativeTask {
    pub(super) fn start(timeout: Duration) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        // One order at a time.
        let (orders, mut ordered) = mpsc::channel::<oneshot::Sender<()>>(1);
        let work = async move {
            while let Some(gone) = ordered.recv().await {
                let stop_by = tokio::time::Instant::now() + timeout;
                let asleep = tokio::spawn(tokio::time::timeout_at(stop_by, pending::<()>()));
                // Whoever ordered waits for it.
                let _outcome = asleep.await;
                let _gave_up = gone.send(());
            }
        };
        let thread =
            thread::Builder::new().name("native".to_owned()).spawn(move || runtime.block_on(work))?;
        Ok(Self { orders: Some(orders), thread: Some(thread), timeout })
    }

    /// Tells it to stop; the time from the deadline to its end.
    pub(super) fn stop(&self) -> Result<Duration> {
        let start = Instant::now();
        let (gone, is_gone) = oneshot::channel();
        let orders = self.orders.as_ref().context("it has ended")?;
        orders.blocking_send(gone)?;
        is_gone.blocking_recv()?;
        Ok(start.elapsed().saturating_sub(self.timeout))
    }
}

impl Drop for NativeTask {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // It has nothing that could panic.
            let _ended = thread.join();
        }
    }
}
