//! Where a command runs: on the worker thread among extensions, or on its caller's thread.

use std::{convert::Infallible, future::poll_fn, pin::pin, sync::Arc, time::Instant};

use tokio::{sync::Semaphore, time::timeout_at};
use weir_metrics::{Usage, moment};
use weir_schedule::{Activity, Alarm, InTurn, SharedShare, Turns};

/// Where a command runs.
#[derive(Clone, Debug)]
pub enum RunsOn {
    /// The command runs on the worker thread, in turn with extensions and within a share. Blocking work goes to the
    /// thread pool.
    Worker {
        /// The turns, shared with extensions.
        turns: Arc<Turns>,
        /// The share of the worker thread, common to all commands.
        share: Arc<SharedShare>,
        /// A permit for each thread of the pool that commands may take.
        threads: Arc<Semaphore>,
    },
    /// The command runs on the caller's thread, which [`drive`](weir_schedule::drive) blocks with this alarm.
    Thread(Arc<Alarm>),
}

/// Why work was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The deadline passed.
    TimedOut,
    /// The part of Main that does the work is closing.
    Interrupted,
}

impl RunsOn {
    /// Whether blocking work may block the polling thread.
    pub fn may_block(&self) -> bool {
        matches!(self, Self::Thread(_))
    }

    /// Does blocking work on the thread pool, or on the caller's thread. Fails if the work panics on the pool.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, tokio::task::JoinError> {
        match self {
            Self::Worker { threads, .. } => {
                // The permit is held as long as the thread is taken, even if nobody waits any more.
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

    /// Waits for `work` until the deadline, or until `closing` is closed.
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

    /// Runs a guest on the worker thread within its turns and share, or on the caller's thread.
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
                // Nothing else runs on this thread, so the guest has a whole slice at each poll.
                poll_fn(|context| {
                    activity.begin(moment(Instant::now()));
                    guest.as_mut().poll(context)
                })
                .await
            }
        }
    }
}
