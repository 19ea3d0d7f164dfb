//! The start of Main in stages: what is checked, the bus and its peers, what runs guests, the services, and at last the
//! worker thread. Each stage needs what the one before made. Nothing runs before the last stage, so a failure leaves
//! nothing behind.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use tokio::{
    runtime::{self, Handle},
    sync::{broadcast, oneshot, watch},
    time::timeout,
};
use weir_bus::{Bus, InboxLimits, OnLoss, Peer, PeerLimits};
use weir_config::{Config, HOOKS_CONTRACT, MainConfig, STORE_CONTRACT};
use weir_guest::{
    AT_ONCE, AddressClass, Admission, Compilation, Http, OpenComponent, Openings, Programs, Runtime,
    SharedResources, Sources,
};
use weir_hooks::{HookDirConfig, Hooks, HooksConfig};
use weir_logs::Logs;
use weir_names::{ContractName, HookDirName, chain};
use weir_supervisor::{
    KEPT_EVENTS, MainEvent, Reconfigure, Roster, Supervisor, SupervisorParts, Unit, check_mappings,
    configure_traces, configure_traffic,
};
use weir_versions::Versions;

use super::{
    Builder, Main, StartError, Started,
    worker::{OpenBus, Worker, WorkerRuntime},
};
#[cfg(feature = "http")]
use crate::http_servers::HttpServers;
use crate::{
    attached::{Attached, Attachment, Attachments, Closed},
    client::Client,
    control::Control,
    hooks_service, load,
    parts::{Parts, on_thread_with},
    peers::{Peers, Registry},
    service::{Service, Services},
    stores::Stores,
};

/// Room for requests that wait for the services of Main and of the embedding program.
const MAIN_INBOX: InboxLimits = InboxLimits { messages: 1024, bytes: 16 * 1024 * 1024 };

const MAIN_SUBSCRIPTIONS: u64 = 256;

/// The name of the thread that ends waits at their deadlines, as `ps -L` shows it.
const DEADLINES_THREAD: &str = "weir-deadlines";

/// Time for that thread to end.
const GRACE: Duration = Duration::from_secs(1);

/// Orders that may wait for the supervisor. Further senders wait for room.
const COMMANDS: usize = 64;

impl Builder {
    /// Starts Main, and returns while its extensions still start.
    ///
    /// # Errors
    ///
    /// The errors of [`start`](Self::start).
    pub fn launch(mut self) -> Result<(Main, Started), StartError> {
        load::complete(&mut self.config);
        self.check()?;
        let Self { config, compilation, services, attachments, on_reload, lock } = self;
        let admission = Arc::new(Admission::new(&config.main, lock)?);
        let core = Core::new(config);
        let versions = core.versions(admission.clone());
        let programs = core.programs(compilation, admission.clone())?;
        let (threads, more) = threads_of_services(core.blocking_threads(), &services);
        let runtime = WorkerRuntime::new(usize::from(core.blocking_threads()) + more);
        let runtime = runtime.map_err(StartError::Thread)?;
        let (stores, shared) = core.resources(&runtime.handle)?;
        stores.own_data().into_iter().for_each(|own_data| versions.set_own_data(own_data));
        let (hooks, hooks_closing) = core.hooks(&programs, &runtime.handle, &shared);
        let described = services.iter().filter_map(Service::provider).collect();
        let services = core.services(services, &hooks, &stores, threads)?;
        let sections = core.reconfigured(on_reload, &hooks, &stores);

        #[cfg(feature = "http")]
        let http_servers =
            HttpServers::new(&core.bus, &core.roster, &core.logs, shared.http.exchanges.clone());

        let (commands, orders) = async_channel::bounded(COMMANDS);
        let (ending, ended) = async_channel::bounded(1);
        let (closing, closed) = watch::channel(false);
        let (started_sender, started) = oneshot::channel();
        let Core { bus, roster, registry, logs, events, parts } = core;
        let supervisor = Supervisor::new(SupervisorParts {
            bus: bus.clone(),
            roster: roster.clone(),
            programs: programs.clone(),
            versions: versions.clone(),
            shared,
            openings: Arc::new(Openings::new(part_of(roster.main().blocking_threads))),
            sections,
            logs: logs.clone(),
            events: events.clone(),
            commands: orders,
        });
        let control = Control {
            bus: bus.clone(),
            roster: roster.clone(),
            peers: registry.clone(),
            commands,
            events,
            logs,
            compilations: programs.compilations(),
            stores: stores.clone(),
            described,
            versions,
            admission,
            hooks: hooks.counts(),
            parts: parts.clone(),
            by: "main".into(),
            ended,
        };
        let (client, peers) = (Client::of_main(bus.clone(), roster.clone()), Peers(registry.clone()));
        let attached = Attached {
            client: client.clone(),
            control: control.clone(),
            peers: peers.clone(),
            #[cfg(feature = "http")]
            http: http_servers,
            closed: Closed(closed),
            parts,
        };
        let open = OpenBus(bus, registry);
        let work = Work {
            attachments,
            attached,
            closing,
            services,
            supervisor,
            started: started_sender,
            hooks: hooks_closing,
            programs,
            stores,
            open,
        };
        let worker = Worker::start(runtime, work.run(), ending).map_err(StartError::Thread)?;
        Ok((Main { client, control, hooks, peers, worker }, Started(started)))
    }

    /// Checks the configuration and what is served, before anything is made.
    fn check(&self) -> Result<(), StartError> {
        self.config.check()?;
        check_mappings(&self.config)?;
        let is_served = |contract: &ContractName| self.services.iter().any(|own| own.contract() == contract);
        let is_built_in =
            |contract: &ContractName| [HOOKS_CONTRACT, STORE_CONTRACT].contains(&contract.as_str());
        let of_sections =
            self.config.contracts_of_sections().into_iter().filter(|contract| !is_built_in(contract));
        let mut all = self.config.main.serves.iter().cloned().chain(of_sections);
        all.find(|contract| !is_served(contract))
            .map_or(Ok(()), |missing| Err(StartError::NotServed(missing)))
    }
}

/// The bus with all its peers, their logs and their events. All later stages send through it.
struct Core {
    bus: Arc<Bus>,
    roster: Arc<Roster>,
    registry: Arc<Registry>,
    logs: Arc<Logs>,
    events: broadcast::Sender<Arc<MainEvent>>,
    parts: Parts,
}

impl Core {
    fn new(config: Config) -> Self {
        let (events, _) = broadcast::channel(KEPT_EVENTS);
        let (logs, parts) = (Arc::<Logs>::default(), Parts::default());
        let bus = Arc::new(Bus::new(main_limits(&config.main), losses(events.clone())));
        configure_traces(&bus, &config.main);
        configure_traffic(&bus, &config);
        let (rest, file) = (config.beside_extensions(), config.file().cloned());
        let (main, extensions) = config.into_parts();
        let mut peers = HashMap::new();
        let units = extensions.into_iter().map(|extension| {
            let original: Option<&Arc<Peer>> = extension.copy_of.as_ref().and_then(|id| peers.get(id));
            let unit =
                Unit::on_the_bus(extension.into(), &main, &bus, original.map(|peer| &**peer), logs.clone());
            peers.insert(unit.id().clone(), unit.version().peer.clone());
            Arc::new(unit)
        });
        let units = units.collect();
        let registry = Registry::new(bus.clone(), main.request_timeout);
        registry.configure(&rest);
        let roster = Arc::new(Roster::new(Arc::new(main), units, rest, file));
        Self { bus, roster, registry, logs, events, parts }
    }

    fn blocking_threads(&self) -> u16 {
        self.roster.main().blocking_threads
    }

    /// What loads and compiles components. It runs none of them.
    fn programs(
        &self,
        compilation: Compilation,
        admission: Arc<Admission>,
    ) -> Result<Arc<Programs>, StartError> {
        let config = self.roster.main();
        let (class, reason) = AddressClass::of(config.address_space);
        if let Some(reason) = reason {
            tracing::info!("memories reserve little address space: {reason}");
        }
        let runtime = Runtime::new(class).map_err(|error| StartError::Engine(format!("{error:#}")))?;
        let at_once = (config.blocking_threads / 2).max(1);
        let sources = Sources::new(&config, admission, compilation, self.logs.clone());
        Ok(Arc::new(Programs::new(runtime, sources, at_once)))
    }

    /// What is known of the versions of extensions. Reads their records.
    fn versions(&self, admission: Arc<Admission>) -> Arc<Versions> {
        let config = self.roster.main();
        let versions = Versions::open(config.state_dir.clone(), config.state_size);
        let revoking = admission.clone();
        versions.decide_by(
            move |kept| OpenComponent::of(kept, &admission.rules()).map(drop).map_err(|error| chain(&error)),
            move |hash, signature| revoking.rules().has_revoked(hash, signature),
        );
        versions.into()
    }

    /// The stores, and what else guests share. Opens no file and sends nothing: guests or the worker do that later.
    fn resources(&self, worker: &Handle) -> Result<(Stores, SharedResources), StartError> {
        let rest = self.roster.rest();
        let stores = Stores::new(&rest, self.roster.main().data_dir.clone(), worker.clone(), &self.bus);
        let http = http(&rest, &self.parts)?;
        let shared = SharedResources { http, key_value: stores.key_value(), ..SharedResources::default() };
        Ok((stores, shared))
    }

    fn hooks(
        &self,
        programs: &Programs,
        worker: &Handle,
        shared: &SharedResources,
    ) -> (Hooks, weir_hooks::Closing) {
        let threads = part_of(self.blocking_threads() / 2);
        let (hooks, closing) =
            Hooks::new(programs.in_pools(AT_ONCE), worker.clone(), shared.clone(), threads);
        hooks.configure(hook_dirs(&self.roster.rest()));
        (hooks, closing)
    }

    /// Adds the contracts of hooks and stores, unless the program serves its own. The bus refuses faulty ones.
    fn services(
        &self,
        mut services: Vec<Service>,
        hooks: &Hooks,
        stores: &Stores,
        threads: usize,
    ) -> Result<Services, StartError> {
        if !services.iter().any(|service| service.contract().as_str() == HOOKS_CONTRACT) {
            services.extend(hooks_service::service(hooks, &self.roster));
        }
        stores.serve(&self.roster, &mut services);
        Services::new(self.bus.clone(), services, threads).map_err(StartError::Service)
    }

    /// The functions that get each reloaded configuration, those of the embedding program first.
    fn reconfigured(&self, mut own: Vec<Reconfigure>, hooks: &Hooks, stores: &Stores) -> Vec<Reconfigure> {
        let (hooks, registry) = (hooks.clone(), self.registry.clone());
        own.push(Reconfigure(Box::new(move |config| hooks.configure(hook_dirs(config)))));
        own.extend(stores.on_reload());
        own.push(Reconfigure(Box::new(move |config| registry.configure(config))));
        own
    }
}

/// What runs on the worker thread, and ends there in this order: extensions, hooks, stores, sessions, attachments, and
/// last the services and the deadlines.
struct Work {
    attachments: Vec<Attachment>,
    attached: Attached,
    closing: watch::Sender<bool>,
    services: Services,
    supervisor: Supervisor,
    started: oneshot::Sender<()>,
    hooks: weir_hooks::Closing,
    programs: Arc<Programs>,
    stores: Stores,
    open: OpenBus,
}

impl Work {
    async fn run(self) {
        let (deadlines, served) = (self.attached.part("deadlines"), self.attached.part("services"));
        let attachments = Attachments::begin(self.attachments, self.attached, self.closing);
        let opening = self.stores.open();
        // Services and deadlines do not end at the signal for attachments, which wait for the answers of services.
        let (closing_bus, closed) = watch::channel(false);
        let (bus, services, closed) = (self.open.0.clone(), self.services, Closed(closed));
        let served = tokio::spawn({
            let closed = closed.clone();
            async move { served.keep(closed, || without_outcome(services.run())).await }
        });
        // A thread of its own, so that a handler that keeps the worker from going on delays no deadline.
        let deadlines = tokio::spawn(async move {
            let run = || {
                let bus = bus.clone();
                let work = || without_outcome(bus.run_deadlines());
                on_thread_with(DEADLINES_THREAD, runtime::Builder::enable_time, work)
            };
            deadlines.keep(closed, run).await;
        });
        // A task, because the runtime polls timers and sockets before its own future whenever that is woken.
        if let Err(error) = tokio::spawn(self.supervisor.run(self.started)).await
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
        self.hooks.close().await;
        self.programs.wait_for_loads().await;
        opening.abort();
        self.stores.close().await;
        closing_bus.send_replace(true);
        drop(self.open);
        attachments.close().await;
        served.abort();
        // The closed bus has no deadlines, so the thread ends now, unless a waker of the embedding program blocks it.
        if timeout(GRACE, deadlines).await.is_err() {
            tracing::warn!(
                "the thread for deadlines has not ended: it wakes a task, and the waker does not return"
            );
        }
    }
}

/// What sends requests by HTTP. It starts nothing until a guest sends a request.
#[cfg(feature = "http")]
fn http(config: &Config, parts: &Parts) -> Result<Http, StartError> {
    let config = config.section::<weir_http::HttpConfig>().cloned().unwrap_or_default();
    let part = parts.part("http");
    let sender = weir_http::HttpSender::new(&config, Arc::new(move |why| part.began_again(why)));
    Ok(sender.map_err(|error| StartError::Http(error.to_string()))?.into())
}

#[cfg(not(feature = "http"))]
#[expect(clippy::unnecessary_wraps, reason = "with the feature, this function can fail")]
fn http(_config: &Config, _parts: &Parts) -> Result<Http, StartError> {
    Ok(Http::default())
}

/// Runs work that has no outcome of its own.
async fn without_outcome(work: impl Future<Output = ()>) -> Result<(), String> {
    work.await;
    Ok(())
}

fn hook_dirs(config: &Config) -> BTreeMap<HookDirName, HookDirConfig> {
    config.section::<HooksConfig>().cloned().unwrap_or_default().0
}

/// Half of these threads, at least one: for one kind of work, so that other work finds some left.
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

/// Tells the listeners of events how many messages a receiver has lost.
fn losses(events: broadcast::Sender<Arc<MainEvent>>) -> OnLoss {
    Box::new(move |receiver, total| {
        // Fails only if nobody listens.
        let _nobody = events.send(MainEvent::Shed { receiver: receiver.to_owned(), total }.into());
    })
}
