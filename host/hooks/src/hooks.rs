//! The hooks of one Main, its directories, and how they begin and end with it.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    convert::Infallible,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{runtime::Handle, sync::Semaphore, task::JoinHandle, time::timeout};
use weir_config::{ConfigErrors, NetGrant};
use weir_guest::{AT_ONCE, Programs, Quotas, RunsOn, Sandbox};
use weir_names::HookDirName;
use weir_schedule::{Alarm, BlockingError, SharedShare, Turns, drive, refuse_in_async};

use crate::{HookCall, HookDirConfig, HookReport, files::KnownHooks, run::Run};

/// Time for runs on other threads to notice that Main ends.
const GRACE: Duration = Duration::from_secs(2);

/// Why the hooks of a directory were not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HookError {
    /// No directory of that name is configured.
    #[error("there are no hooks `{0}`: `[hooks.{0}]` would configure them")]
    Unknown(String),
    /// A directory that was configured in Rust, with values that cannot be.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// What the call passes cannot be passed on.
    #[error("{0}")]
    Invalid(String),
    /// The directory cannot be read.
    #[error("cannot read the directory `{}`", dir.display())]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The directory has more hooks than there may be.
    #[error("the directory `{}` has more than {allowed} hooks", dir.display())]
    TooMany {
        /// The directory.
        dir: PathBuf,
        /// How many there may be.
        allowed: usize,
    },
    /// The time for all hooks was over before the first could run: as many runs as may be at once were under
    /// way, or the file system did not answer.
    #[error(
        "the time for all hooks was over before the first could run: as many runs as may be at once were under way, \
         or the directory did not answer"
    )]
    TimedOut,
    /// Main has ended.
    #[error("main has ended")]
    Ended,
}

/// The hooks of one Main.
#[derive(Clone, Debug)]
pub struct Hooks(pub(crate) Arc<Shared>);

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) programs: Programs<Sandbox>,
    /// Directories whose size is bounded.
    pub(crate) quotas: Quotas,
    worker: Handle,
    turns: Arc<Turns>,
    threads: Arc<Semaphore>,
    /// One for each command that runs: the pools have room for so many.
    pub(crate) places: Semaphore,
    configured: Mutex<BTreeMap<HookDirName, HookDir>>,
    /// None: Main has ended.
    gate: Mutex<Option<Gate>>,
}

/// What every run holds.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    /// Main waits until nobody has one.
    _under_way: async_channel::Sender<Infallible>,
    /// Closed when Main ends.
    pub(crate) closing: async_channel::Receiver<Infallible>,
}

/// Ends all runs, and waits for that.
#[derive(Debug)]
pub struct Closing {
    hooks: Hooks,
    _open: async_channel::Sender<Infallible>,
    under_way: async_channel::Receiver<Infallible>,
}

/// A directory of hooks that can be run. Clones are the same directory.
#[derive(Clone, Debug)]
pub struct HookDir(Arc<Dir>);

#[derive(Debug)]
pub(crate) struct Dir {
    pub(crate) hooks: Hooks,
    pub(crate) config: HookDirConfig,
    pub(crate) net: Arc<[NetGrant]>,
    pub(crate) share: Arc<SharedShare>,
    pub(crate) at_once: Semaphore,
    pub(crate) known: Mutex<KnownHooks>,
}

impl Hooks {
    /// What blocks, of runs on the worker, takes so many `threads` of the pool at most.
    pub fn new(
        programs: Programs<Sandbox>,
        worker: Handle,
        turns: Arc<Turns>,
        threads: usize,
    ) -> (Self, Closing) {
        let (under_way, all_done) = async_channel::bounded(1);
        let (open, closing) = async_channel::bounded(1);
        let hooks = Self(Arc::new(Shared {
            programs,
            worker,
            turns,
            quotas: Quotas::default(),
            threads: Arc::new(Semaphore::new(threads)),
            places: places(AT_ONCE),
            configured: Mutex::default(),
            gate: Mutex::new(Some(Gate { _under_way: under_way, closing })),
        }));
        (hooks.clone(), Closing { hooks, _open: open, under_way: all_done })
    }

    /// The directory that the operator has configured under this name.
    ///
    /// # Errors
    ///
    /// [`HookError::Unknown`] if there is none.
    pub fn get(&self, name: &str) -> Result<HookDir, HookError> {
        self.configured().get(name).cloned().ok_or_else(|| HookError::Unknown(name.to_owned()))
    }

    /// The names of the directories that the operator has configured.
    #[must_use]
    pub fn names(&self) -> Vec<HookDirName> {
        self.configured().keys().cloned().collect()
    }

    /// A directory of the embedding program's own. Keep it, and run it again and again: what is compiled
    /// stays with it.
    ///
    /// # Errors
    ///
    /// [`HookError::Config`] if a value cannot be.
    pub fn open(&self, config: HookDirConfig) -> Result<HookDir, HookError> {
        config.check()?;
        Ok(self.dir(config))
    }

    /// Has the directories that are configured now. One that has not changed keeps what it has compiled. Main calls
    /// it, with what was checked.
    #[doc(hidden)]
    pub fn configure(&self, dirs: BTreeMap<HookDirName, HookDirConfig>) {
        let mut configured = self.configured();
        let mut before = std::mem::take(&mut *configured);
        for (name, config) in dirs {
            let dir = match before.remove(&name) {
                Some(dir) if dir.0.config == config => dir,
                _ => self.dir(config),
            };
            configured.insert(name, dir);
        }
    }

    fn dir(&self, config: HookDirConfig) -> HookDir {
        HookDir(Arc::new(Dir {
            hooks: self.clone(),
            net: config.grants.net.clone().into(),
            share: Arc::new(SharedShare::new(config.limits.cpu_share)),
            at_once: places(config.at_once),
            known: Mutex::default(),
            config,
        }))
    }

    fn configured(&self) -> MutexGuard<'_, BTreeMap<HookDirName, HookDir>> {
        self.0.configured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn gate(&self) -> MutexGuard<'_, Option<Gate>> {
        self.0.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn places(number: u32) -> Semaphore {
    Semaphore::new(usize::try_from(number).unwrap_or(Semaphore::MAX_PERMITS))
}

impl Closing {
    /// Interrupts what runs, and lets nothing begin any more; ends when all of it has ended, but for what hangs in the
    /// kernel.
    pub async fn close(self) {
        let Self { hooks, _open, under_way } = self;
        hooks.gate().take();
        // Each of them has all of this.
        hooks.configured().clear();
        drop(_open);
        // It fails when nobody is left.
        let _ended = timeout(GRACE, under_way.recv()).await;
    }
}

impl HookDir {
    /// What is configured of it.
    #[must_use]
    pub fn config(&self) -> &HookDirConfig {
        &self.0.config
    }

    /// Runs the hooks of the directory, sorted by name, on Main's worker thread: the next only if the one
    /// before ended well or with a warning. What is in the directory is looked at anew each time.
    ///
    /// Dropped, it ends the hook that runs.
    ///
    /// # Errors
    ///
    /// Fails if no hook could be run at all. That a hook fails is in the report.
    pub async fn run(&self, call: HookCall) -> Result<HookReport, HookError> {
        let run = Run::new(self.0.clone(), call)?;
        let Shared { turns, threads, worker, .. } = &*self.0.hooks.0;
        let (turns, threads) = (turns.clone(), threads.clone());
        let runs_on = RunsOn::Worker { turns, share: self.0.share.clone(), threads };
        let mut task = Aborted(worker.spawn(run.run(runs_on)));
        match (&mut task.0).await {
            Ok(report) => report,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(HookError::Ended),
        }
    }

    /// The same for blocking code, on this thread: it costs no hop to Main's worker thread and back, and what hooks
    /// do with files is done here, but for streams that they poll.
    ///
    /// # Errors
    ///
    /// [`BlockingError::InAsync`] inside an async task, and otherwise as [`run`](Self::run).
    pub fn run_blocking(&self, call: HookCall) -> Result<HookReport, BlockingError<HookError>> {
        refuse_in_async()?;
        let run = Run::new(self.0.clone(), call)?;
        let alarm = Arc::new(Alarm::default());
        // Timers and sockets are the worker's.
        let _context = self.0.hooks.0.worker.enter();
        Ok(drive(run.run(RunsOn::Thread(alarm.clone())), &alarm)?)
    }
}

/// A task that ends with whoever waits for it.
#[derive(Debug)]
struct Aborted<T>(JoinHandle<T>);

impl<T> Drop for Aborted<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
