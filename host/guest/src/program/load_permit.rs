//! Permits to load bound how many files are read, verified and looked up in the cache at once. As many may be compiled
//! at once. A load that waits to compile holds no permit to load, so it delays no load that needs no compiling.
//!
//! Reads on a file system that hangs keep their permits, even when nobody waits for them any more. A late read is given
//! up. While hanging reads hold all permits, further loads fail at once.

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

/// The time to open and read a file, besides the time for its size. Any file system needs less, unless it hangs.
pub(super) const READ: Duration = Duration::from_secs(60);

/// How many bytes a second the slowest storage reads.
const SLOWEST: u64 = 4 << 20;

/// How often a waiting load checks whether a permit can still come.
pub(super) const LOOK: Duration = Duration::from_secs(5);

/// The permits of one Main to load and to compile, and its reads under way.
#[derive(Debug)]
pub(super) struct LoadPermits {
    /// The free permits to load.
    pub(super) free: Arc<Semaphore>,
    /// The number of all permits to load.
    pub(super) at_once: u32,
    /// The free permits to compile. There are as many as to load.
    pub(super) compiling: Arc<Semaphore>,
    /// The reads under way, each with a permit.
    reads: Mutex<Vec<Reading>>,
}

/// A read that is under way on a thread.
#[derive(Debug)]
struct Reading {
    /// The path, unless the component is in memory and only its cache entry is a file.
    path: Option<PathBuf>,
    /// The time from which the read counts as hanging.
    late: Instant,
    /// Can be upgraded as long as the thread is busy with the read.
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

    /// Waits until no permit is taken.
    pub(super) async fn all(&self) {
        // These fail only if the semaphores are closed, which never happens.
        let (_loading, _compiling) =
            tokio::join!(self.free.acquire_many(self.at_once), self.compiling.acquire_many(self.at_once));
    }

    /// Fails while an earlier read of this file hangs, so that no other thread follows it. Also fails while as many
    /// reads hang as there are permits, because no permit will come.
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

    /// Returns the reads whose threads are still busy.
    fn reads(&self) -> MutexGuard<'_, Vec<Reading>> {
        let mut reads = self.reads.lock();
        reads.retain(|reading| reading.thread.strong_count() > 0);
        reads
    }
}

/// The right to work on a file. The work itself holds it, also in a thread or process that nobody waits for any more.
#[derive(Clone, Debug)]
pub(super) struct LoadPermit {
    /// The turn to load. A permit has none while it waits for its turn or to compile, or if it shares with no others.
    _turn: Option<Arc<OwnedSemaphorePermit>>,
    /// The right to compile, once the permit has it.
    _compiling: Option<Arc<OwnedSemaphorePermit>>,
    permits: Arc<LoadPermits>,
    threads: Threads,
    /// The path, if the component is a file.
    path: Option<Arc<Path>>,
    /// The time in which the file must be read.
    time: Duration,
}

/// Which threads do blocking work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Threads {
    /// The threads of the blocking pool.
    Pool,
    /// The waiting thread itself, because waiting loads could use up the pool.
    Waiting,
    /// A new one for each piece of work.
    #[cfg(feature = "compiler")]
    Own,
}

impl LoadPermit {
    /// Waits for a permit, and fails as soon as none can come. If the caller may block, its own thread does the
    /// blocking work, and the caller sets its own deadline.
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

    /// Waits for a turn to load, and fails as soon as none can come.
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

    /// Returns this permit without its turn to load, which goes to others meanwhile.
    #[cfg(feature = "compiler")]
    pub(super) fn meanwhile(&self) -> Self {
        Self { _turn: None, ..self.clone() }
    }

    /// Gives up the turn to load, waits for the right to compile, and then waits for a turn again.
    #[cfg(feature = "compiler")]
    pub(super) async fn for_compiling(mut self) -> Result<Self, LoadFault> {
        self._turn = None;
        let compiling = self.permits.compiling.clone().acquire_owned().await;
        self._compiling = Some(Arc::new(compiling.map_err(|_| LoadFault::CutOff)?));
        self.again().await
    }

    /// Returns this permit for long work, which gets a thread of its own and none of the pool.
    #[cfg(feature = "compiler")]
    pub(super) fn for_long(self) -> Self {
        let threads = if self.threads == Threads::Pool { Threads::Own } else { self.threads };
        Self { threads, ..self }
    }

    /// Returns this permit for a task of the runtime, which must not block.
    #[cfg(feature = "compiler")]
    pub(super) fn for_task(self) -> Self {
        let threads = if self.threads == Threads::Waiting { Threads::Own } else { self.threads };
        Self { threads, ..self }
    }

    /// Makes a permit that shares with no others, for work outside a Main.
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

    /// Does work that reads the file, or reads or writes its cache entry. Work that is late is given up, but keeps its
    /// thread and the permit. Work on the waiting thread is never given up.
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

    /// Does blocking work on the threads that this permit uses.
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
