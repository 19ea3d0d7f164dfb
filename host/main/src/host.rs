//! Main: the worker thread, and the handles of the embedding program.

mod launch;
mod worker;

use std::path::PathBuf;

use tokio::sync::oneshot;
use weir_config::{Config, ConfigErrors};
use weir_guest::{Compilation, RulesError};
use weir_hooks::Hooks;
use weir_names::ContractName;
use weir_schedule::{BlockingError, refuse_in_async};
use weir_supervisor::Reconfigure;
pub use weir_supervisor::{TooFewMappings, check_mappings};

use self::worker::Worker;
pub use self::worker::WorkerPanicked;
use crate::{
    attached::{Attached, Attachment},
    client::Client,
    control::Control,
    peers::{PeerConfig, PeerError, Peers, Session},
    service::Service,
};

/// Why Main did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The configuration has faults: see [`Config::check`].
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// `[main] serves` or a section names a contract that this program does not serve.
    #[error(
        "`[main] serves` or a section of the configuration names `{0}`, and this program does not serve it"
    )]
    NotServed(ContractName),
    /// The bus refuses a contract of this program, such as one without operations.
    #[error("a service of this program cannot be served")]
    Service(#[source] weir_bus::Error),
    /// The kernel has too few memory mappings for so many extensions.
    #[error(transparent)]
    Mappings(#[from] TooFewMappings),
    /// The system refuses a thread, or a runtime for it.
    #[error("cannot start the worker thread")]
    Thread(#[source] std::io::Error),
    /// WebAssembly cannot run here.
    #[error("cannot start the WebAssembly engine: {0}")]
    Engine(String),
    /// The lock, or the list in `main.revoked`, cannot be used.
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// What `[http]` says cannot be used.
    #[error("cannot send requests by HTTP: {0}")]
    Http(String),
}

/// Hosts extensions on one worker thread.
///
/// Dropping it begins to shut Main down, and returns at once: the rest happens on Main's own thread. To wait for the end,
/// call [`shutdown`](Self::shutdown) or [`shutdown_blocking`](Self::shutdown_blocking), or wait for
/// [`Control::ended`] of a clone of its [`control`](Self::control). Where the process ends before Main has, extensions
/// end with it, as in a crash.
#[derive(Debug)]
pub struct Main {
    client: Client,
    control: Control,
    hooks: Hooks,
    peers: Peers,
    worker: Worker,
}

/// Configures and starts a Main.
#[derive(Debug)]
#[must_use = "nothing runs until `start`"]
pub struct Builder {
    config: Config,
    compilation: Compilation,
    services: Vec<Service>,
    attachments: Vec<Attachment>,
    on_reload: Vec<Reconfigure>,
    lock: Option<PathBuf>,
}

/// Ends when every extension that starts with Main is ready or has failed.
#[derive(Debug)]
pub struct Started(oneshot::Receiver<()>);

impl Started {
    /// Waits until every extension that starts with Main is ready or has failed.
    pub async fn wait(self) {
        // Fails only if the worker ended at once; `shutdown` reports that.
        let _ended = self.0.await;
    }
}

impl Main {
    /// Begins to set up a Main.
    pub fn builder(config: Config) -> Builder {
        Builder {
            config,
            compilation: Compilation::default(),
            services: Vec::new(),
            attachments: Vec::new(),
            on_reload: Vec::new(),
            lock: None,
        }
    }

    /// Calls, publishes and subscribes.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Starts, stops and inspects extensions.
    #[must_use]
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Runs directories of hooks.
    #[must_use]
    pub fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    /// Begins, lists and ends the sessions of programs outside Main.
    #[must_use]
    pub fn peers(&self) -> &Peers {
        &self.peers
    }

    /// Begins a session under a name of this program's own, with these grants: see
    /// [`Peers::open_with`].
    ///
    /// # Errors
    ///
    /// The errors of [`Peers::open_with`].
    pub fn peer(&self, config: PeerConfig) -> Result<Session, PeerError> {
        self.peers.open_with(config)
    }

    /// Stops every extension, dependents first, and waits until Main has ended. Dropping the future ends only the wait.
    ///
    /// # Errors
    ///
    /// [`WorkerPanicked`] if Main had ended by its own fault.
    pub async fn shutdown(mut self) -> Result<(), WorkerPanicked> {
        // Fails only if Main has ended already.
        let _ended = self.control.shut_down().await;
        self.control.ended().await;
        self.worker.join()
    }

    /// Shuts Main down as [`shutdown`](Self::shutdown) does, and waits on the thread of the caller.
    ///
    /// # Errors
    ///
    /// [`BlockingError::InAsync`] inside an async task, which must not wait: Main then shuts down in the background.
    /// Otherwise the errors of [`shutdown`](Self::shutdown).
    pub fn shutdown_blocking(mut self) -> Result<(), BlockingError<WorkerPanicked>> {
        refuse_in_async()?;
        self.control.begin_shutdown_now();
        Ok(self.worker.join()?)
    }
}

impl Drop for Main {
    fn drop(&mut self) {
        // The worker's thread is left to itself, because a drop must not block.
        self.control.begin_shutdown_now();
    }
}

impl Builder {
    /// Sets where components are compiled; by default [`Compilation::InProcess`], if this build has the compiler.
    pub fn compilation(mut self, compilation: Compilation) -> Self {
        self.compilation = compilation;
        self
    }

    /// Serves a contract from Rust code. An extension that fulfills the same contract takes precedence.
    pub fn serve(mut self, service: Service) -> Self {
        self.config.main.serves.retain(|contract| contract != service.contract());
        self.config.main.serves.push(service.contract().clone());
        self.services.push(service);
        self
    }

    /// Runs `work` on the worker thread beside the extensions; it must not block. It begins before the first
    /// extension starts. It should end when [`Closed::wait`](crate::attached::Closed::wait) does, after the last
    /// extension has ended.
    pub fn attach<W>(mut self, work: impl FnOnce(Attached) -> W + Send + 'static) -> Self
    where
        W: Future<Output = ()> + Send + 'static,
    {
        self.attachments.push(Attachment::new(work));
        self
    }

    /// Calls `act` with each reloaded configuration once it is checked, for instance to read the program's own
    /// sections. It runs on the worker thread and must not block.
    pub fn on_reload(mut self, act: impl Fn(&Config) + Send + 'static) -> Self {
        self.on_reload.push(Reconfigure(Box::new(act)));
        self
    }

    /// Runs only what this lock lists: see [`ComponentLock`](crate::config::ComponentLock). Main reads the file at its
    /// start and at each reload of the configuration, and does neither without it.
    pub fn locked(mut self, lock: impl Into<PathBuf>) -> Self {
        self.lock = Some(lock.into());
        self
    }

    /// Starts Main, and waits until each extension that starts with it is ready or has failed: see
    /// [`Control::extensions`]. Dropping the future drops Main.
    ///
    /// # Errors
    ///
    /// Fails if Main itself cannot run. A failed extension is no error.
    pub async fn start(self) -> Result<Main, StartError> {
        let (main, started) = self.launch()?;
        started.wait().await;
        Ok(main)
    }
}
