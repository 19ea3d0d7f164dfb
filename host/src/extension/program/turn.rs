//! Turns to load: so many files are read, compiled and verified at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::LoadFault;

/// The right to work on a file, which whatever works on it holds: also a thread or a process that goes on when
/// nobody waits for it any more.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    _permit: Option<Arc<OwnedSemaphorePermit>>,
}

impl Turn {
    /// Waits for one of those that the semaphore has.
    pub(super) async fn take(turns: &Arc<Semaphore>) -> Result<Self, LoadFault> {
        let permit = turns.clone().acquire_owned().await.map_err(|_| LoadFault::CutOff)?;
        Ok(Self { _permit: Some(Arc::new(permit)) })
    }

    /// Of somebody who shares with nobody.
    #[cfg(feature = "compiler")]
    pub(super) const fn alone() -> Self {
        Self { _permit: None }
    }

    /// Does work that blocks, on the pool for that.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, LoadFault> + Send + 'static,
    ) -> Result<T, LoadFault> {
        let turn = self.clone();
        let work = move || {
            let _turn = turn;
            work()
        };
        tokio::task::spawn_blocking(work).await.unwrap_or(Err(LoadFault::CutOff))
    }
}
