//! The hooks of a Main: their directories, start and end.

use std::{collections::BTreeMap, convert::Infallible, path::PathBuf, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::Semaphore, task::JoinHandle, time::timeout};
use weir_config::{ConfigErrors, NetGrant};
use weir_guest::{AT_ONCE, HttpOutlet, Programs, Quotas, RunsOn, Sandbox, SharedResources};
use weir_names::HookDirName;
use weir_schedule::{Alarm, BlockingError, SharedShare, drive, refuse_in_async};

use crate::{HookCall, HookCounts, HookDirConfig, HookReport, files::KnownHooks, run::Run, told::Lines};

/// How long runs on other threads may take to notice the end of Main.
const GRACE: Duration = Duration::from_secs(2);

/// Why a directory's hooks were not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HookError {
    /// No directory of this name is configured.
    #[error("no hooks `{0}` are configured: add `[hooks.{0}]`")]
    Unknown(String),
    /// The directory was configured in Rust with faulty values.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// The call has faulty input.
    #[error("{0}")]
    Invalid(String),
    /// The directory cannot be read.
    #[error("cannot read the directory `{}`", dir.display())]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The directory has too many hooks.
    #[error("the directory `{}` has more than {allowed} hooks", dir.display())]
    TooMany {
        /// The directory.
        dir: PathBuf,
        /// The maximum.
        allowed: usize,
    },
    /// The total time limit passed before the first hook: all places were taken, or the file system did not answer.
    #[error(
        "the time for all hooks was over before the first could run: all `at-once` places were taken, or the \
         directory did not answer"
    )]
    TimedOut,
    /// Main has ended.
    #[error("main has ended")]
    Ended,
}

impl HookError {
    /// The error in one word, as callers of `hooks@1` get it.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown",
            Self::Invalid(_) => "invalid",
            Self::TimedOut => "timed-out",
            Self::Config(_) | Self::Directory { .. } | Self::TooMany { .. } | Self::Ended => "failed",
        }
    }
}

/// The hooks of a Main.
#[derive(Clone, Debug)]
pub struct Hooks(pub(crate) Arc<Shared>);

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) programs: Programs<Sandbox>,
    /// The use of granted directories with bounds.
    pub(crate) quotas: Quotas,
    pub(crate) worker: Handle,
    pub(crate) resources: SharedResources,
    /// A permit for each thread of the pool that runs on the worker may use.
    threads: Arc<Semaphore>,
    /// One permit for each command that runs: as many as the pools have room for.
    pub(crate) places: Semaphore,
    configured: Mutex<BTreeMap<HookDirName, HookDir>>,
    pub(crate) counts: HookCounts,
    /// What each run must hold. `None` once Main has ended.
    pub(crate) gate: Mutex<Option<Gate>>,
}

/// Held by every run, so that Main can wait for it and end it.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    /// Main waits until all clones of this are dropped.
    _under_way: async_channel::Sender<Infallible>,
    /// Closed when Main ends.
    pub(crate) closing: async_channel::Receiver<Infallible>,
}

/// Ends all runs and waits for them, when Main ends.
#[derive(Debug)]
pub struct Closing {
    hooks: Hooks,
    _open: async_channel::Sender<Infallible>,
    under_way: async_channel::Receiver<Infallible>,
}

/// A directory of hooks. Clones share it.
#[derive(Clone, Debug)]
pub struct HookDir(Arc<Dir>);

#[derive(Debug)]
pub(crate) struct Dir {
    pub(crate) hooks: Hooks,
    /// The configured name. `None` for a directory of the embedding program.
    pub(crate) name: Option<HookDirName>,
    pub(crate) lines: Lines,
    /// Lines about what hooks were refused.
    pub(crate) refusals: Lines,
    pub(crate) config: HookDirConfig,
    pub(crate) net: Arc<[NetGrant]>,
    pub(crate) outlet: HttpOutlet,
    /// The owner whose entries in stores the hooks use.
    pub(crate) owner: String,
    pub(crate) share: Arc<SharedShare>,
    pub(crate) at_once: Semaphore,
    pub(crate) known: Mutex<KnownHooks>,
    /// One permit, for the task that loads what a run had no time for.
    pub(crate) loads: Arc<Semaphore>,
}

impl Dir {
    pub(crate) fn on_worker(&self) -> RunsOn {
        let Shared { resources, threads, .. } = &*self.hooks.0;
        RunsOn::Worker { turns: resources.turns.clone(), share: self.share.clone(), threads: threads.clone() }
    }
}

impl Hooks {
    /// Starts without directories. The blocking work of runs on Main's worker uses up to `threads` threads of the pool.
    pub fn new(
        programs: Programs<Sandbox>,
        worker: Handle,
        resources: SharedResources,
        threads: usize,
    ) -> (Self, Closing) {
        let (under_way, all_done) = async_channel::bounded(1);
        let (open, closing) = async_channel::bounded(1);
        let hooks = Self(Arc::new(Shared {
            programs,
            worker,
            resources,
            quotas: Quotas::default(),
            threads: Arc::new(Semaphore::new(threads)),
            places: places(AT_ONCE),
            configured: Mutex::default(),
            counts: HookCounts::default(),
            gate: Mutex::new(Some(Gate { _under_way: under_way, closing })),
        }));
        (hooks.clone(), Closing { hooks, _open: open, under_way: all_done })
    }

    /// A configured directory by name.
    ///
    /// # Errors
    ///
    /// [`HookError::Unknown`] if it is not configured.
    pub fn get(&self, name: &str) -> Result<HookDir, HookError> {
        self.0.configured.lock().get(name).cloned().ok_or_else(|| HookError::Unknown(name.to_owned()))
    }

    /// The names of the configured directories.
    #[must_use]
    pub fn names(&self) -> Vec<HookDirName> {
        self.0.configured.lock().keys().cloned().collect()
    }

    /// Opens a directory of the embedding program. Keep it for further runs: it holds the compiled code. All such
    /// directories have the same keys of a store, those of the owner `hooks/`.
    ///
    /// # Errors
    ///
    /// [`HookError::Config`] for faulty values.
    pub fn open(&self, config: HookDirConfig) -> Result<HookDir, HookError> {
        config.check()?;
        // No extension or configured directory can have this name, so none shares these keys of a store.
        Ok(self.dir("hooks/".to_owned(), None, config))
    }

    /// Replaces the configured directories. Unchanged ones keep their compiled code. Main calls it with checked
    /// values.
    #[doc(hidden)]
    pub fn configure(&self, dirs: BTreeMap<HookDirName, HookDirConfig>) {
        let mut configured = self.0.configured.lock();
        let mut before = std::mem::take(&mut *configured);
        for (name, config) in dirs {
            let dir = match before.remove(&name) {
                Some(dir) if dir.0.config == config => dir,
                _ => self.dir(format!("hooks/{name}"), Some(name.clone()), config),
            };
            configured.insert(name, dir);
        }
        self.0.counts.keep(configured.keys());
    }

    /// How often the hooks of configured directories have ended, and how.
    #[must_use]
    pub fn counts(&self) -> HookCounts {
        self.0.counts.clone()
    }

    fn dir(&self, owner: String, name: Option<HookDirName>, config: HookDirConfig) -> HookDir {
        let share = Arc::new(SharedShare::new(config.limits.cpu_share));
        HookDir(Arc::new(Dir {
            hooks: self.clone(),
            name,
            lines: Lines::default(),
            refusals: Lines::default(),
            owner,
            net: config.grants.net.clone().into(),
            outlet: HttpOutlet::new(self.0.resources.http.clone(), &config.grants.http, &share),
            share,
            at_once: places(config.at_once),
            known: Mutex::default(),
            loads: Arc::new(Semaphore::new(1)),
            config,
        }))
    }
}

fn places(number: u32) -> Semaphore {
    Semaphore::new(usize::try_from(number).unwrap_or(Semaphore::MAX_PERMITS))
}

impl Closing {
    /// Interrupts running hooks and allows no new ones. Waits for the running ones, but at most for 2 seconds: some may
    /// hang in the kernel.
    pub async fn close(self) {
        let Self { hooks, _open, under_way } = self;
        hooks.0.gate.lock().take();
        // Each directory holds a reference to the hooks, so they would keep each other alive.
        hooks.0.configured.lock().clear();
        drop(_open);
        // Receiving fails when all runs have ended and dropped their senders.
        let _ended = timeout(GRACE, under_way.recv()).await;
    }
}

impl HookDir {
    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &HookDirConfig {
        &self.0.config
    }

    /// Runs the hooks in the order of their names on Main's worker thread. A hook runs only if the one before ended
    /// well or with a warning. Lists the directory anew each time.
    ///
    /// Dropping the future ends the running hook.
    ///
    /// # Errors
    ///
    /// Fails if no hook could run. The report has the failures of hooks.
    pub async fn run(&self, call: HookCall) -> Result<HookReport, HookError> {
        let run = Run::new(self.0.clone(), call)?;
        let mut task = Aborted(self.0.hooks.0.worker.spawn(run.run(self.0.on_worker())));
        match (&mut task.0).await {
            Ok(report) => report,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Err(HookError::Ended),
        }
    }

    /// Runs the hooks on this thread, for blocking code. Avoids the way to Main's worker thread and back. File
    /// operations of hooks also run here, except on streams that they poll.
    ///
    /// # Errors
    ///
    /// [`BlockingError::InAsync`] inside an async task, otherwise the errors of [`run`](Self::run).
    pub fn run_blocking(&self, call: HookCall) -> Result<HookReport, BlockingError<HookError>> {
        refuse_in_async()?;
        let run = Run::new(self.0.clone(), call)?;
        let alarm = Arc::new(Alarm::default());
        // The timers and sockets belong to the worker's runtime.
        let _context = self.0.hooks.0.worker.enter();
        Ok(drive(run.run(RunsOn::Thread(alarm.clone())), &alarm)?)
    }
}

/// Aborts its task when dropped.
#[derive(Debug)]
struct Aborted<T>(JoinHandle<T>);

impl<T> Drop for Aborted<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use weir_config::MainConfig;
    use weir_guest::{AT_ONCE, Compilation, Runtime, Sources};

    use super::*;

    /// A program may start many Mains, so engines, pools, compiled code and runtime handles must go.
    #[tokio::test]
    async fn nothing_is_left_of_configured_hooks_once_main_has_ended_and_nobody_has_them() {
        let sources =
            Sources::new(&MainConfig::default(), Arc::default(), Compilation::default(), Arc::default());
        let programs = Programs::new(Runtime::new(weir_guest::AddressClass::Large).unwrap(), sources, 1)
            .in_pools(AT_ONCE);
        let (hooks, closing) = Hooks::new(programs, Handle::current(), SharedResources::default(), 1);
        hooks.configure([("a".parse().unwrap(), HookDirConfig::new("/nowhere"))].into());
        let shared = Arc::downgrade(&hooks.0);
        closing.close().await;
        drop(hooks);
        assert!(shared.upgrade().is_none());
    }
}
