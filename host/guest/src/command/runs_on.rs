//! Where a command runs: on the worker thread among the extensions, or on the thread of whoever waits for it.

use std::{convert::Infallible, future::poll_fn, pin::pin, sync::Arc, time::Instant};

use tokio::{sync::Semaphore, time::timeout_at};
use weir_metrics::Usage;
use weir_schedule::{Activity, Alarm, InTurn, SharedShare, Turns};

/// Where a command runs.
#[derive(Clone, Debug)]
pub enum RunsOn {
    /// On the worker thread, in turn with extensions and within a share. What blocks goes to the pool, and to so many
    /// threads of it.
    Worker {
        /// Shared with extensions.
        turns: Arc<Turns>,
        /// Of all commands together.
        share: Arc<SharedShare>,
        /// Threads of the pool that may be taken.
        threads: Arc<Semaphore>,
    },
    /// On a thread of its caller's, which [`drive`](weir_schedule::drive) blocks with this alarm.
    Thread(Arc<Alarm>),
}

/// Why something did not come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Its deadline was over.
    TimedOut,
    /// What it belongs to is closing.
    Interrupted,
}

impl RunsOn {
    /// Whether what blocks may block whoever polls.
    pub fn may_block(&self) -> bool {
        matches!(self, Self::Thread(_))
    }

    /// Does work that blocks where it may.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, tokio::task::JoinError> {
        match self {
            Self::Worker { threads, .. } => {
                // Held as long as the thread is taken, whether or not somebody still waits.
                let permit = threads.clone().acquire_owned().await;
                let work = move || {
                    let _permit = permit;
                    work()
                };
                tokio::task::spawn_blocking(work).await
            }
            Self::Thread(_) => Ok(work()),
        }
    }

    /// Waits until a deadline at most, and as long as nothing is closing.
    pub async fn until<T>(
        &self,
        deadline: Instant,
        closing: &async_channel::Receiver<Infallible>,
        work: impl Future<Output = T>,
    ) -> Result<T, Cut> {
        let work = async {
            tokio::select! {
                biased;
                _closed = closing.recv() => Err(Cut::Interrupted),
                done = work => Ok(done),
            }
        };
        match self {
            Self::Worker { .. } => timeout_at(deadline.into(), work).await.unwrap_or(Err(Cut::TimedOut)),
            Self::Thread(alarm) => alarm.within(Some(deadline), work).await.unwrap_or(Err(Cut::TimedOut)),
        }
    }

    /// Polls a guest as it is right in this place.
    pub(super) async fn run<T>(
        &self,
        guest: impl Future<Output = T>,
        activity: Arc<Activity>,
        usage: &Arc<Usage>,
    ) -> T {
        match self {
            Self::Worker { turns, share, .. } => {
                InTurn::new(guest, turns.clone(), share.clone(), activity, usage.clone()).among_others().await
            }
            Self::Thread(_) => {
                let mut guest = pin!(guest);
                // Nobody else runs on this thread: each time it is polled, the guest has a slice before it.
                poll_fn(|context| {
                    activity.begin(Instant::now());
                    guest.as_mut().poll(context)
                })
                .await
            }
        }
    }
}
