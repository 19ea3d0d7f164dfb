//! Main: the worker thread, and the handles of the embedding program.

mod worker;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use tokio::sync::{broadcast, oneshot, watch};
use weir_bus::{Bus, InboxLimits, OnLoss, Peer, PeerLimits};
use weir_config::{Config, ConfigErrors, HOOKS_CONTRACT, MainConfig, STORE_CONTRACT};
use weir_guest::{AT_ONCE, AddressClass, Compilation, Http, Openings, Programs, Runtime, Sources};
use weir_hooks::{HookDirConfig, Hooks, HooksConfig};
use weir_logs::Logs;
use weir_names::{ContractName, HookDirName};
use weir_schedule::{BlockingError, Turns, refuse_in_async};
use weir_supervisor::{
    KEPT_EVENTS, MainEvent, Reconfigure, Roster, Supervisor, SupervisorParts, Unit, configure_traces,
    configure_traffic, on_the_bus, queues_on_the_bus,
};
pub use weir_supervisor::{TooFewMappings, check_mappings};

pub use self::worker::WorkerPanicked;
use self::worker::{OpenBus, Worker, WorkerRuntime};
use crate::{
    attached::{Attached, Attachment, Attachments, Closed},
    client::Client,
    control::Control,
    hooks_service, load,
    parts::Parts,
    peers::{PeerConfig, PeerError, Peers, Registry, Session},
    service::{Service, Services},
    stores::Stores,
};

const MAIN_INBOX: InboxLimits = InboxLimits { messages: 1024, bytes: 16 * 1024 * 1024 };

const MAIN_SUBSCRIPTIONS: u64 = 256;

/// Orders that may wait for the supervisor. Further senders wait for room.
const COMMANDS: usize = 64;

/// Why Main did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The configuration contradicts itself.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// `[main] serves` or a section names a contract that this program does not serve.
    #[error(
        "`[main] serves` or a section of the configuration names `{0}`, and this program does not serve it"
    )]
    NotServed(ContractName),
    /// A contract of this program has no operations.
    #[error("a service of this program cannot be served")]
    Service(#[source] weir_bus::Error),
    /// The kernel has too few memory mappings for so many extensions.
    #[error(transparent)]
    Mappings(#[from] TooFewMappings),
    /// The machine lacks what Main needs.
    #[error("cannot start the worker thread")]
    Thread(#[source] std::io::Error),
    /// WebAssembly cannot run here.
    #[error("cannot start the WebAssembly engine: {0}")]
    Engine(String),
    /// What `[http]` says cannot be used.
    #[error("cannot send requests by HTTP: {0}")]
    Http(String),
}

/// Hosts extensions on one worker thread.
///
/// Dropping it shuts Main down and blocks until all has ended, bounded by the stop deadlines. In async code, call
/// [`shutdown`](Self::shutdown) instead. A drop on the worker thread itself, as in a handler of a [`Service`], does
/// not wait.
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
}

/// Ends when every extension that starts with Main is ready or has failed.
#[derive(Debug)]
pub struct Started(oneshot::Receiver<()>);

impl Started {
    /// Waits for that.
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
    /// As [`Peers::open_with`].
    pub fn peer(&self, config: PeerConfig) -> Result<Session, PeerError> {
        self.peers.open_with(config)
    }

    /// Stops every extension, dependents first, and waits for the last.
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

    /// [`shutdown`](Self::shutdown) for blocking code.
    ///
    /// # Errors
    ///
    /// [`BlockingError::InAsync`] inside an async task, which must not wait: Main then shuts down in the background.
    /// Otherwise as [`shutdown`](Self::shutdown).
    pub fn shutdown_blocking(mut self) -> Result<(), BlockingError<WorkerPanicked>> {
        let refused = refuse_in_async();
        if refused.is_err() {
            self.worker.detach();
            return refused;
        }
        self.control.begin_shutdown_now();
        Ok(self.worker.join()?)
    }
}

impl Drop for Main {
    fn drop(&mut self) {
        self.control.begin_shutdown_now();
        if let Err(panicked) = self.worker.join() {
            tracing::error!("{panicked}");
        }
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

    /// Starts Main, and waits until each extension that starts with it is ready or has failed: see
    /// [`Control::extensions`].
    ///
    /// # Errors
    ///
    /// Fails if Main itself cannot run. A failed extension is no error.
    pub async fn start(self) -> Result<Main, StartError> {
        let (main, started) = self.launch()?;
        started.wait().await;
        Ok(main)
    }

    /// Starts Main, and returns while its extensions still start.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn launch(mut self) -> Result<(Main, Started), StartError> {
        load::complete(&mut self.config);
        self.config.check()?;
        check_mappings(&self.config)?;
        let file = self.config.file().cloned();
        let (queues, retained) = (queues_on_the_bus(&self.config), self.config.retained());
        let (configured, rest) = (hook_dirs(&self.config), self.config.beside_extensions());
        let own = self.config.contracts_of_sections();
        let parts = Parts::default();
        let http = http(&self.config, &parts)?;
        let peers_configured = self.config.clone();
        let configured_stores = self.config.clone();
        let (config, extensions) = self.config.into_parts();
        let config = Arc::new(config);
        let served = |contract: &ContractName| self.services.iter().any(|s| s.contract() == contract);
        let of_sections = own.iter().filter(|contract| !is_built_in(contract));
        if let Some(missing) = config.serves.iter().chain(of_sections).find(|contract| !served(contract)) {
            return Err(StartError::NotServed(missing.clone()));
        }

        let (events, _) = broadcast::channel(KEPT_EVENTS);
        let bus = Arc::new(Bus::new(main_limits(&config), losses(events.clone())));
        configure_traces(&bus, &config);
        configure_traffic(&bus, queues, retained);
        let logs = Arc::new(Logs::default());
        let mut peers = HashMap::new();
        let units = extensions.into_iter().map(|extension| {
            let (limits, access) = on_the_bus(&extension, &config);
            let original: Option<&Arc<Peer>> = extension.copy_of.as_ref().and_then(|id| peers.get(id));
            let peer = bus.add_peer(&extension.id, limits, access, original.map(|peer| &**peer));
            peers.insert(extension.id.clone(), peer.clone());
            Arc::new(Unit::new(Arc::new(extension), peer, logs.clone()))
        });
        let roster = Arc::new(Roster::new(config.clone(), units.collect(), rest, file.clone()));
        let (class, reason) = AddressClass::of(config.address_space);
        if let Some(reason) = reason {
            tracing::info!("memories reserve little address space: {reason}");
        }
        let runtime = Runtime::new(class).map_err(|error| StartError::Engine(format!("{error:#}")))?;
        let at_once = (config.blocking_threads / 2).max(1);
        let sources = Sources::new(&config, self.compilation, logs.clone());
        let programs = Arc::new(Programs::new(runtime, sources, at_once));
        let turns = Arc::<Turns>::default();
        let (service_threads, more) = threads_of_services(config.blocking_threads, &self.services);
        let worker =
            WorkerRuntime::new(usize::from(config.blocking_threads) + more).map_err(StartError::Thread)?;
        let stores = Stores::new(&configured_stores, worker.handle.clone(), &bus);
        let (hooks, hooks_closing) = Hooks::new(
            programs.in_pools(AT_ONCE),
            worker.handle.clone(),
            turns.clone(),
            http.clone(),
            stores.key_value(),
            part_of(config.blocking_threads / 2),
        );
        hooks.configure(configured);
        self.on_reload.push(Reconfigure(Box::new({
            let hooks = hooks.clone();
            move |config| hooks.configure(hook_dirs(config))
        })));
        let mut services = self.services;
        if !services.iter().any(|service| service.contract().as_str() == HOOKS_CONTRACT) {
            services.extend(hooks_service::service(&hooks, &roster));
        }
        stores.serve(&roster, &mut services);
        self.on_reload.extend(stores.on_reload());
        let services = Services::new(bus.clone(), services, service_threads).map_err(StartError::Service)?;
        let registry = Registry::new(bus.clone(), config.request_timeout);
        registry.configure(&peers_configured);
        self.on_reload.push(Reconfigure(Box::new({
            let registry = registry.clone();
            move |config| registry.configure(config)
        })));
        let (commands, orders) = async_channel::bounded(COMMANDS);
        let supervisor = Supervisor::new(SupervisorParts {
            bus: bus.clone(),
            roster: roster.clone(),
            programs: programs.clone(),
            turns,
            key_value: stores.key_value(),
            openings: Arc::new(Openings::new(part_of(config.blocking_threads))),
            http,
            sections: self.on_reload,
            logs: logs.clone(),
            events: events.clone(),
            commands: orders,
            file,
            serves: config.serves.clone(),
            own,
        });

        let (ending, ended) = async_channel::bounded(1);
        let control = Control::new(
            registry.clone(),
            roster,
            commands,
            events,
            logs,
            programs.compilations(),
            stores.clone(),
            hooks.counts(),
            parts.clone(),
            ended,
        );
        let (started_sender, started) = oneshot::channel();
        let client = Client::new(bus.clone());
        let peers = Peers::new(registry.clone());
        let (closing, closed) = watch::channel(false);
        let attached = Attached {
            client: client.clone(),
            control: control.clone(),
            peers: peers.clone(),
            closed: Closed(closed),
            parts: parts.clone(),
        };
        let attachments = self.attachments;
        let open = OpenBus(bus.clone(), registry);
        let work = async move {
            let attachments = Attachments::begin(attachments, attached, closing);
            let opening = stores.open();
            // Apart from that of attachments, which wait for the answers of services.
            let (_open, closed) = watch::channel(false);
            let (deadlines, served) = (parts.part("deadlines"), parts.part("services"));
            let deadlines = tokio::spawn({
                let closed = Closed(closed.clone());
                async move { deadlines.keep(closed, || without_end(bus.clone().run_deadlines())).await }
            });
            let served = tokio::spawn(async move {
                served.keep(Closed(closed), || without_end(services.run())).await;
            });
            // A task, because the runtime polls timers and sockets before its own future whenever that is woken.
            if let Err(error) = tokio::spawn(supervisor.run(started_sender)).await
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
            hooks_closing.close().await;
            programs.settle().await;
            opening.abort();
            stores.close().await;
            drop(open);
            attachments.close().await;
            served.abort();
            deadlines.abort();
        };
        let worker = Worker::start(worker, work, ending).map_err(StartError::Thread)?;
        Ok((Main { client, control, hooks, peers, worker }, Started(started)))
    }
}

/// Whether Main serves it by itself.
fn is_built_in(contract: &ContractName) -> bool {
    [HOOKS_CONTRACT, STORE_CONTRACT].contains(&contract.as_str())
}

/// Starts nothing until a guest sends a request.
#[cfg(feature = "http")]
fn http(config: &Config, parts: &Parts) -> Result<Http, StartError> {
    let config = config.section::<weir_http::HttpConfig>().cloned().unwrap_or_default();
    let part = parts.part("http");
    let sender = weir_http::HttpSender::new(&config, Arc::new(move |why| part.began_again(why)));
    Ok(sender.map_err(|error| StartError::Http(error.to_string()))?.into())
}

#[cfg(not(feature = "http"))]
#[expect(clippy::unnecessary_wraps, reason = "as with the feature")]
fn http(_config: &Config, _parts: &Parts) -> Result<Http, StartError> {
    Ok(Http::default())
}

/// Work that ends only by a fault.
async fn without_end(work: impl Future<Output = ()>) -> Result<(), String> {
    work.await;
    Ok(())
}

fn hook_dirs(config: &Config) -> BTreeMap<HookDirName, HookDirConfig> {
    config.section::<HooksConfig>().cloned().unwrap_or_default().0
}

/// Threads of the blocking pool for one kind of work, so that others find some left.
fn part_of(blocking_threads: u16) -> usize {
    usize::from(blocking_threads / 2).max(1)
}

/// Threads for the blocking handlers of each contract, at least one, and how many the pool needs beyond its size.
/// Handlers that never return leave the other half of the pool.
fn threads_of_services(blocking_threads: u16, services: &[Service]) -> (usize, usize) {
    let all = part_of(blocking_threads);
    let contracts = services.iter().filter(|service| service.blocks()).count();
    ((all / contracts.max(1)).max(1), contracts.saturating_sub(all))
}

fn main_limits(config: &MainConfig) -> PeerLimits {
    PeerLimits {
        message_size: u64::MAX,
        inbox: MAIN_INBOX,
        when_full: weir_names::RequestPolicy::Reject,
        request_timeout: config.request_timeout,
        subscriptions: MAIN_SUBSCRIPTIONS,
    }
}

fn losses(events: broadcast::Sender<Arc<MainEvent>>) -> OnLoss {
    Box::new(move |receiver, total| {
        // Fails only if nobody listens.
        let _nobody = events.send(MainEvent::Shed { receiver: receiver.to_owned(), total }.into());
    })
}
