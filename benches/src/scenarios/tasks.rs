//! Native tasks on their own thread, as Main has one worker: the baseline of extensions.

use std::{
    sync::mpsc,
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context, Result};
use tokio::{runtime, sync::oneshot};

pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A thread with a runtime that has timers and sockets, like Main's. Dropped, it ends its tasks and itself.
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
            // Stopped by dropping the sender.
            let _stopped = runtime.block_on(stopped);
        })?;
        Ok(Self { runtime: handle, stop: Some(stop), thread: Some(thread) })
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        // Not awaited: it ends by itself, or with the runtime.
        let _detached = self.runtime.spawn(task);
    }

    pub(super) fn run<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> Result<T> {
        let (tell, told) = mpsc::sync_channel(1);
        self.spawn(async move {
            // Fails if nothing waits any more.
            let _told = tell.send(task.await);
        });
        told.recv_timeout(PATIENCE).context("a task does not end")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported already.
            let _ended = thread.join();
        }
    }
}
