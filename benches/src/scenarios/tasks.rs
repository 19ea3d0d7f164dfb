//! Native tasks on a thread of their own, as Main has one worker: what extensions are compared with.

use std::{
    sync::mpsc,
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context, Result};
use tokio::{runtime, sync::oneshot};

/// Longer than anything that is measured.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A thread with a runtime that has timers and sockets, as Main's has. Dropped, it ends, and its tasks with it.
#[derive(Debug)]
pub(super) struct Worker {
    runtime: runtime::Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    pub(super) fn start() -> Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("native".to_owned()).spawn(move || {
            // Dropped, which is how it is stopped.
            let _stopped = runtime.block_on(stopped);
        })?;
        Ok(Self { runtime: handle, stop: Some(stop), thread: Some(thread) })
    }

    /// Starts a task there.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        // Nobody waits for it: it ends by itself, or with the runtime.
        let _detached = self.runtime.spawn(task);
    }

    /// Runs something there to its end.
    pub(super) fn run<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> Result<T> {
        let (tell, told) = mpsc::sync_channel(1);
        self.spawn(async move {
            // It fails if nobody waits any more.
            let _told = tell.send(task.await);
        });
        told.recv_timeout(PATIENCE).context("a task does not end")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic there has been told already.
            let _ended = thread.join();
        }
    }
}
