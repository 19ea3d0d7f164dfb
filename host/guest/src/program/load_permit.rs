//! Permits to load: so many files are read, verified and looked up in the cache at once, and as many are compiled. Who
//! waits for a compilation has no permit to load, so that nobody waits for it who need not be compiled.
//!
//! A file system that hangs holds the permits of those who read from it, whether or not somebody still waits for them.
//! What is late is given up, and nobody waits for permits that are all held so.

use std::{
    path::{Path, PathBuf},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};

use super::{LoadRequest, error::LoadFault};

/// Time to open a file and read it, beside what it takes by its size: more than any has that is not on a file system
/// that hangs.
pub(super) const READ: Duration = Duration::from_secs(60);

/// Bytes that are read in a second of the slowest storage.
const SLOWEST: u64 = 4 << 20;

/// How often those who wait for a permit look whether one will come.
pub(super) const LOOK: Duration = Duration::from_secs(5);

/// The permits that there are.
#[derive(Debug)]
pub(super) struct LoadPermits {
    pub(super) free: Arc<Semaphore>,
    pub(super) at_once: u32,
    /// As many, for what is compiled.
    pub(super) compiling: Arc<Semaphore>,
    /// Those under way, each in a permit.
    reads: Mutex<Vec<Reading>>,
}

/// A file that is being read.
#[derive(Debug)]
struct Reading {
    /// None: what is read is in memory, and only what is kept of it in a file.
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

    /// Waits until nobody has one.
    pub(super) async fn all(&self) {
        // They fail only where the semaphores are closed, which nobody does.
        let (_loading, _compiling) =
            tokio::join!(self.free.acquire_many(self.at_once), self.compiling.acquire_many(self.at_once));
    }

    /// As long as a file hangs, no other thread is sent after it; and where as many hang as there are permits, none will
    /// come.
    fn check(&self, path: Option<&Path>) -> Result<(), LoadFault> {
        let (now, mut hanging) = (Instant::now(), 0);
        for reading in &*self.reads() {
            if reading.late <= now {
                hanging += 1;
                if path.is_some() && reading.path.as_deref() == path {
                    return Err(LoadFault::hanging("an earlier try to read it hangs".to_owned()));
                }
            }
        }
        if hanging < self.at_once {
            return Ok(());
        }
        Err(LoadFault::hanging("as many others hang as are read at once".to_owned()))
    }

    /// Those of which the threads are not back.
    fn reads(&self) -> MutexGuard<'_, Vec<Reading>> {
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        reads.retain(|reading| reading.thread.strong_count() > 0);
        reads
    }
}

/// The right to work on a file, which whatever works on it holds: also a thread or a process that goes on when
/// nobody waits for it any more.
#[derive(Clone, Debug)]
pub(super) struct LoadPermit {
    /// None: of somebody who shares with nobody, or who waits for a compilation.
    _turn: Option<Arc<OwnedSemaphorePermit>>,
    /// To compile it, too.
    _compiling: Option<Arc<OwnedSemaphorePermit>>,
    permits: Arc<LoadPermits>,
    threads: Threads,
    /// Of the file, if it is one.
    path: Option<Arc<Path>>,
    /// In which it must be read.
    time: Duration,
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

impl LoadPermit {
    /// Waits for one, as long as one can come; if whoever waits may block, it does what blocks, and sets its own
    /// deadline.
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

    /// The same without the turn to load, which others have meanwhile.
    #[cfg(feature = "compiler")]
    pub(super) fn meanwhile(&self) -> Self {
        Self { _turn: None, ..self.clone() }
    }

    /// Lets others load until it can be compiled, and then has its turn again.
    #[cfg(feature = "compiler")]
    pub(super) async fn for_compiling(mut self) -> Result<Self, LoadFault> {
        self._turn = None;
        let compiling = self.permits.compiling.clone().acquire_owned().await;
        self._compiling = Some(Arc::new(compiling.map_err(|_| LoadFault::CutOff)?));
        self.again().await
    }

    /// The same permit for what takes long: it takes a thread of its own, not of the pool.
    #[cfg(feature = "compiler")]
    pub(super) fn for_long(self) -> Self {
        let threads = if self.threads == Threads::Pool { Threads::Own } else { self.threads };
        Self { threads, ..self }
    }

    /// The same permit for a task of the runtime's, which must not block.
    #[cfg(feature = "compiler")]
    pub(super) fn for_task(self) -> Self {
        let threads = if self.threads == Threads::Waiting { Threads::Own } else { self.threads };
        Self { threads, ..self }
    }

    /// Of somebody who shares with nobody.
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

    /// Does work that reads the file, or what is kept of it, or keeps that. Gives up what is late; that keeps its
    /// thread, and with it the permit.
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

    /// Does work that blocks.
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
