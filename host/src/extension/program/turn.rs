//! Turns to load: so many files are read, compiled and verified at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::LoadFault;

/// The right to work on a file, which whatever works on it holds: also a thread or a process that goes on when
/// nobody waits for it any more.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    _permit: Option<Arc<OwnedSemaphorePermit>>,
    threads: Threads,
}

/// Which threads do what blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Threads {
    /// Those of the pool.
    Pool,
    /// That of whoever waits: it needs none of the pool, which can be used up by others who wait.
    Waiting,
    /// One for each piece of work.
    #[cfg(feature = "compiler")]
    Own,
}

impl Turn {
    /// Waits for one of those that the semaphore has; with `may_block`, what blocks is done by whoever waits for it.
    pub(super) async fn take(turns: &Arc<Semaphore>, may_block: bool) -> Result<Self, LoadFault> {
        let permit = turns.clone().acquire_owned().await.map_err(|_| LoadFault::CutOff)?;
        let threads = if may_block { Threads::Waiting } else { Threads::Pool };
        Ok(Self { _permit: Some(Arc::new(permit)), threads })
    }

    /// The same turn for a task of the runtime's, which must not block.
    #[cfg(feature = "compiler")]
    pub(super) fn for_task(self) -> Self {
        let threads = if self.threads == Threads::Waiting { Threads::Own } else { self.threads };
        Self { threads, ..self }
    }

    /// Of somebody who shares with nobody.
    #[cfg(feature = "compiler")]
    pub(super) const fn alone() -> Self {
        Self { _permit: None, threads: Threads::Pool }
    }

    /// Does work that blocks.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, LoadFault> + Send + 'static,
    ) -> Result<T, LoadFault> {
        let turn = self.clone();
        let work = move || {
            let _turn = turn;
            work()
        };
        match self.threads {
            Threads::Pool => tokio::task::spawn_blocking(work).await.unwrap_or(Err(LoadFault::CutOff)),
            Threads::Waiting => work(),
            #[cfg(feature = "compiler")]
            Threads::Own => {
                let (done, result) = tokio::sync::oneshot::channel();
                std::thread::Builder::new()
                    .name("weir-load".to_owned())
                    .spawn(move || done.send(work()))
                    .map_err(|error| LoadFault::Compiler(error.to_string()))?;
                result.await.unwrap_or(Err(LoadFault::CutOff))
            }
        }
    }
}
