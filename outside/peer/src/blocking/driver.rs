//! The thread of a session, with its runtime.

use std::{
    io,
    path::Path,
    sync::mpsc::sync_channel,
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
    time,
};
use weir_names::Error;

use crate::{ConnectError, Options, Peer};

/// The thread of a session. Dropped, it waits for the thread.
///
/// The values of the session must be dropped first: then the session ends, and its task with it.
#[derive(Debug)]
pub(super) struct Driver {
    runtime: Handle,
    /// Dropped, it ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Driver {
    pub(super) fn start(path: &Path, options: Options) -> Result<(Peer, Self), ConnectError> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (handle, path) = (runtime.handle().clone(), path.to_owned());
        let (stop, stopped) = oneshot::channel();
        // The channel carries one message: the connected peer.
        let (sender, receiver) = sync_channel(1);
        let thread = thread::Builder::new().name("weir-peer".to_owned()).spawn(move || {
            runtime.block_on(async {
                let connected = Peer::connect(&path, options).await;
                let session = connected.as_ref().ok().map(Peer::session_state);
                if sender.send(connected).is_err() {
                    return;
                }
                // The values of the session keep the sender, so the runtime outlives all that waits on it.
                drop(stopped.await);
                if let Some(session) = session {
                    session.over().await;
                }
            });
        })?;
        let driver = Self { runtime: handle, stop: Some(stop), thread: Some(thread) };
        let connected = receiver.recv().map_err(|_| io::Error::other("the session's thread ended"))?;
        Ok((connected?, driver))
    }

    /// Waits for a future on the caller's thread. The session's thread drives its I/O and timers.
    pub(super) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Waits for a future on the caller's thread, for at most this long.
    pub(super) fn wait_within<F: Future>(&self, timeout: Duration, future: F) -> Result<F::Output, Error> {
        self.wait(async { time::timeout(timeout, future).await.map_err(|_| Error::Timeout) })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed, and the session has ended with it.
            drop(thread.join());
        }
    }
}
