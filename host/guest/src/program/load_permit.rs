//! Permits to load: they bound how many files are read, verified and looked up in the cache at once, and as many that
//! are compiled. A load that waits to compile holds no permit to load, so it delays no load that needs no compiling.
//!
//! A file system that hangs holds the permits of its readers, even when nobody waits for them. A late read is given up.
//! When hanging reads hold all permits, nobody waits for one.

use std::{
    path::{Path, PathBuf},
    pin::pin,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};

use super::{LoadRequest, error::LoadFault};

/// Time to open and read a file, besides the time for its size: more than any file system needs unless it hangs.
pub(super) const READ: Duration = Duration::from_secs(60);

/// Bytes a second of the slowest storage.
const SLOWEST: u64 = 4 << 20;

/// How often a waiting load checks whether a permit can still come.
pub(super) const LOOK: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct LoadPermits {
    pub(super) free: Arc<Semaphore>,
    pub(super) at_once: u32,
    /// As many, to compile.
    pub(super) compiling: Arc<Semaphore>,
    /// Reads under way, each in a permit.
    reads: Mutex<Vec<Reading>>,
}

#[derive(Debug)]
struct Reading {
    /// None if the component is in memory, and only its cache entry is a file.
    path: Option<PathBuf>,
    late: Instant,
    /// Gone when the thread is back.
    thread: Weak<()>,
}

impl LoadPermits {
    pub(super) fn new(at_once: u16) -> Self {
        Self {
            free: Arc::new(Semaphore::new(at_once.into())),
            at_once: at_once.into(),
            compiling: Arc::new(Semaphore::new(at_once.into())),
            reads: Mutex::default(),
        }
    }

    /// Waits until none is taken.
    pub(super) async fn all(&self) {
        // They fail only if the semaphores are closed, which never happens.
        let (_loading, _compiling) =
            tokio::join!(self.free.acquire_many(self.at_once), self.compiling.acquire_many(self.at_once));
    }

    /// Fails while this file hangs, so no other thread follows; and when as many files hang as there are permits,
    /// because none will come.
    fn check(&self, path: Option<&Path>) -> Result<(), LoadFault> {
        let (now, mut hanging) = (Instant::now(), 0);
        for reading in &*self.reads() {
            if reading.late <= now {
                hanging += 1;
                if path.is_some() && reading.path.as_deref() == path {
                    return Err(LoadFault::hanging("an earlier read of it hangs".to_owned()));
                }
            }
        }
        if hanging < self.at_once {
            return Ok(());
        }
        Err(LoadFault::hanging("all reads that may run at once hang".to_owned()))
    }

    /// Reads with a busy thread.
    fn reads(&self) -> MutexGuard<'_, Vec<Reading>> {
        let mut reads = self.reads.lock();
        reads.retain(|reading| reading.thread.strong_count() > 0);
        reads
    }
}

/// The right to work on a file. The work itself holds it, so a thread or process that goes on unawaited does, too.
#[derive(Clone, Debug)]
pub(super) struct LoadPermit {
    /// The turn to load. None for a permit that shares with nobody, and while it waits to compile.
    _turn: Option<Arc<OwnedSemaphorePermit>>,
    /// The right to compile, too.
    _compiling: Option<Arc<OwnedSemaphorePermit>>,
    permits: Arc<LoadPermits>,
    threads: Threads,
    /// The path, if it is a file.
    path: Option<Arc<Path>>,
    /// Time in which it must be read.
    time: Duration,
}

/// Which threads do blocking work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Threads {
    /// The pool's.
    Pool,
    /// The waiting thread: waiting loads could use up the pool.
    Waiting,
    /// A new one for each piece of work.
    #[cfg(feature = "compiler")]
    Own,
}

impl LoadPermit {
    /// Waits for a permit, as long as one can come. If the caller may block, its thread does the blocking work, and it
    /// sets its own deadline.
    pub(super) async fn take(permits: &Arc<LoadPermits>, wanted: LoadRequest<'_>) -> Result<Self, LoadFault> {
        let permit = Self {
            _turn: None,
            _compiling: None,
            permits: permits.clone(),
            threads: if wanted.may_block { Threads::Waiting } else { Threads::Pool },
            path: wanted.component.path().map(Into::into),
            time: READ + Duration::from_secs(wanted.limits.file_size / SLOWEST),
        };
        permit.again().await
    }

    /// Waits for a turn to load, as `take` does.
    pub(super) async fn again(mut self) -> Result<Self, LoadFault> {
        let mut turn = pin!(self.permits.free.clone().acquire_owned());
        let check = || self.permits.check(self.path.as_deref());
        check()?;
        let turn = if self.threads == Threads::Waiting {
            turn.await
        } else {
            loop {
                if let Ok(turn) = timeout(LOOK, &mut turn).await {
                    break turn;
                }
                check()?;
            }
        };
        self._turn = Some(Arc::new(turn.map_err(|_| LoadFault::CutOff)?));
        Ok(self)
    }

    /// This permit without its turn to load, which goes to others meanwhile.
    #[cfg(feature = "compiler")]
    pub(super) fn meanwhile(&self) -> Self {
        Self { _turn: None, ..self.clone() }
    }

    /// Lets others load until it may compile; then it gets its turn again.
    #[cfg(feature = "compiler")]
    pub(super) async fn for_compiling(mut self) -> Result<Self, LoadFault> {
        self._turn = None;
        let compiling = self.permits.compiling.clone().acquire_owned().await;
        self._compiling = Some(Arc::new(compiling.map_err(|_| LoadFault::CutOff)?));
        self.again().await
    }

    /// This permit for long work, which gets a thread of its own and none of the pool.
    #[cfg(feature = "compiler")]
    pub(super) fn for_long(self) -> Self {
        let threads = if self.threads == Threads::Pool { Threads::Own } else { self.threads };
        Self { threads, ..self }
    }

    /// This permit for a task of the runtime, which must not block.
    #[cfg(feature = "compiler")]
    pub(super) fn for_task(self) -> Self {
        let threads = if self.threads == Threads::Waiting { Threads::Own } else { self.threads };
        Self { threads, ..self }
    }

    /// A permit that shares with nobody.
    #[cfg(feature = "compiler")]
    pub(super) fn alone(path: &Path) -> Self {
        let permits = Arc::new(LoadPermits::new(1));
        Self {
            _turn: None,
            _compiling: None,
            permits,
            threads: Threads::Pool,
            path: Some(path.into()),
            time: READ,
        }
    }

    /// Does work that reads the file or its cache entry, or writes that. Gives up late work, which keeps its thread and
    /// so the permit.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, LoadFault> + Send + 'static,
    ) -> Result<T, LoadFault> {
        let thread = Arc::new(());
        let (path, late) = (self.path.as_deref().map(Path::to_path_buf), Instant::now() + self.time);
        self.permits.reads().push(Reading { path, late, thread: Arc::downgrade(&thread) });
        let read = self.blocking(move || {
            let _thread = thread;
            work()
        });
        if self.threads == Threads::Waiting {
            return read.await;
        }
        timeout(self.time, read).await.unwrap_or_else(|_| Err(LoadFault::late(self.time)))
    }

    /// Does blocking work.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, LoadFault> + Send + 'static,
    ) -> Result<T, LoadFault> {
        let permit = self.clone();
        let work = move || {
            let _turn = permit;
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
