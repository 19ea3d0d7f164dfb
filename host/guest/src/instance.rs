//! One run of one extension: the task that owns its Store, from instantiation to exit.

use std::{
    future::poll_fn,
    panic::{self, AssertUnwindSafe},
    sync::Arc,
    task::Poll,
    time::SystemTime,
};

use futures_util::FutureExt;
use tokio::time::Instant;
use wasmtime::Store;
use weir_bus::{Bus, Error, Peer, Phase};
use weir_config::{ExtensionConfig, Limits, ReadyWhen};
use weir_logs::Level;
use weir_metrics::{Usage, nanoseconds};
use weir_schedule::{Activity, InTurn, SharedShare, TimeLimit, Turns};

use super::{
    delivery::{Checks, HandlerLimit, Handling, Unanswered},
    dir_locks::DirLock,
    exit::Exit,
    fit::GuestKind,
    http::{Http, HttpAccess},
    instance_state::InstanceState,
    keyvalue::KeyValue,
    meter,
    openings::Openings,
    output::Output,
    program::Program,
    sandbox::{self, Sandbox},
    settings::Settings,
    signals::{Notice, Order, Signals},
    wasi::{self, Dirs, Machine, Net},
};

/// All that one instance needs.
#[derive(Debug)]
pub struct Instance {
    /// Carries the instance's messages.
    pub bus: Arc<Bus>,
    /// The instance's peer on the bus.
    pub peer: Arc<Peer>,
    /// What the instance may use and reach.
    pub config: Arc<ExtensionConfig>,
    /// The values that the instance reads through `wasi:config/store`. The instance sets them anew when it starts.
    pub settings: Arc<Settings>,
    /// Where the instance's log lines go.
    pub output: Output,
    /// What the instance shares with all guests.
    pub shared: SharedResources,
    /// Opens the granted directories and reads secrets.
    pub openings: Arc<Openings>,
    /// The extension's share of the worker thread. A restart does not renew it.
    pub share: Arc<SharedShare>,
    /// Signals between the instance and its supervisor.
    pub signals: Arc<Signals>,
    /// Counts what the instance uses.
    pub usage: Arc<Usage>,
}

/// What an extension is granted of the machine, opened.
pub(crate) struct Opened {
    dirs: Dirs,
    /// The addresses that it may reach.
    pub(crate) net: Arc<Net>,
    /// Held until nothing is left of its instances.
    _locks: Vec<DirLock>,
}

/// What all guests of one Main share.
#[derive(Clone, Debug, Default)]
pub struct SharedResources {
    /// The turns that guests take while busy.
    pub turns: Arc<Turns>,
    /// Sends the guests' requests by HTTP.
    pub http: Http,
    /// The stores that guests may be granted.
    pub key_value: KeyValue,
}

/// How an instance ended.
#[derive(Debug)]
pub struct InstanceEnd {
    /// Why it ended.
    pub exit: Exit,
    /// The message that it was handling, if it had any.
    pub handling: Option<Handling>,
    /// When it ended, which is before its messages are given back.
    pub time: SystemTime,
    /// The requests that it had in hand. They are answered when this is dropped.
    pub unanswered: Option<Unanswered>,
}

impl InstanceEnd {
    /// The end of an instance that handled nothing.
    pub fn of(exit: Exit) -> Self {
        Self { exit, handling: None, time: SystemTime::now(), unanswered: None }
    }
}

impl Instance {
    /// Runs the program to its end, within its deadlines.
    pub async fn run(self: Box<Self>, program: Arc<Program>) -> InstanceEnd {
        let (activity, started) = (Arc::new(Activity::new()), Instant::now());
        let mut limit = TimeLimit::new(self.config.limits.ready_timeout);
        let opened = tokio::select! {
            biased;
            opened = self.surroundings() => opened,
            () = self.signals.stopped() => Err(Exit::Finished),
            () = limit.over() => Err(self.opens_late()),
        };
        #[cfg(feature = "http")]
        let opened = match (opened, self.config.serves_http.clone()) {
            (Ok(opened), Some(http)) => return Box::pin(self.serve(program, opened, http)).await,
            (opened, _) => opened,
        };
        let store = opened.and_then(|opened| {
            let machine = self.machine_in(&opened);
            let store = self.new_store(&program, machine, activity.clone());
            store.map(|store| (store, opened)).map_err(|error| Exit::cannot_start(&error, None))
        });
        let (mut store, opened) = match store {
            Ok(store) => store,
            Err(exit) => return InstanceEnd::of(exit),
        };
        // A panic of the host is caught, so that messages are given back after a panic, too.
        let driving = self.drive(&program, &opened, &mut store, activity, started, limit);
        let exit = AssertUnwindSafe(driving).catch_unwind().await;
        let exit = exit.unwrap_or_else(|panic| Exit::panicked(&*panic));
        let time = SystemTime::now();
        meter::finish(&store);
        self.output.report_dropped();
        let state = store.data_mut();
        let exit = match (exit, state.fault.take()) {
            (Exit::Finished | Exit::Failed(_), Some(fault)) => Exit::Failed(Some(fault)),
            (exit, _) => exit.in_sandbox(&state.sandbox),
        };
        let handling = match exit {
            Exit::HandlerOverdue { .. } => state.delivery.overdue(),
            Exit::Killed(id) => state.delivery.handling_of(id),
            _ => state.delivery.handling(),
        };
        let ended_itself = matches!(exit, Exit::Finished | Exit::Failed(_));
        let unanswered = state.delivery.end(if ended_itself { Error::PeerGone } else { Error::Trapped });
        // Dropping the Store writes the guest's last output, and that may panic, too.
        let dropped = panic::catch_unwind(AssertUnwindSafe(|| drop(store)));
        let exit = dropped.map_or_else(|panic| Exit::panicked(&*panic), |()| exit);
        InstanceEnd { exit, handling, time, unanswered: Some(unanswered) }
    }

    /// Drives the guest until it ends or a deadline passes. Returns how the instance ended.
    async fn drive(
        &self,
        program: &Program,
        opened: &Opened,
        store: &mut Store<InstanceState>,
        activity: Arc<Activity>,
        started: Instant,
        mut limit: TimeLimit,
    ) -> Exit {
        let limits = &self.config.limits;
        let mut stopping = None;
        let mut is_ready = false;
        let runs_by_itself = program.exported.is_none();
        let is_plain = runs_by_itself && !program.knows_weir;
        let is_ready_at_a_wait = is_plain || (runs_by_itself && self.config.ready == ReadyWhen::AtStart);
        if is_ready_at_a_wait {
            store.data_mut().sandbox.meter.renew_at_waits();
        }
        let mut handlers = HandlerLimit::new(store.data().delivery.held().clone(), limits.handler_timeout);
        self.peer.set_ended_by_caller(self.signals.clone());
        let mut order = self.signals.order(&self.peer);
        let guest = async {
            match &program.exported {
                // Boxed, because a program's future would otherwise keep the space for it.
                Some(exported) => {
                    Box::pin(self.call_exports(program, exported, opened, store, &activity)).await
                }
                None => program.run(store).await,
            }
        };
        let mut guest = InTurn::new(
            guest,
            self.shared.turns.clone(),
            self.share.clone(),
            activity.clone(),
            self.usage.clone(),
        );
        loop {
            tokio::select! {
                biased;
                order = poll_fn(&mut order) => match order {
                    // It cannot hear of it.
                    Order::Stop if is_plain => {
                        self.note_stop(Some(Instant::now()));
                        return Exit::Finished;
                    }
                    Order::Stop => {
                        stopping = Some(Instant::now());
                        limit = TimeLimit::new(limits.stop_timeout);
                    }
                    Order::End(request) => {
                        self.note_stop(stopping);
                        return Exit::Killed(request);
                    }
                },
                result = &mut guest => {
                    self.note_stop(stopping);
                    return Exit::of(result, limits);
                }
                () = self.signals.became_ready(), if !is_ready => {
                    is_ready = true;
                    self.usage.ready.set(nanoseconds(started.elapsed()));
                }
                // Polled after the guest, so that its wait is seen before it goes on.
                () = poll_fn(|_| if activity.waits() { Poll::Ready(()) } else { Poll::Pending }),
                    if is_ready_at_a_wait && !is_ready && stopping.is_none() && !self.is_interrupted() =>
                {
                    self.peer.set_phase_if_up(Phase::Ready);
                    self.signals.notify(Notice::Ready).await;
                }
                used = poll_fn(|context| handlers.poll(context, |at| self.warn_of(at))) => {
                    self.note_stop(stopping);
                    return Exit::HandlerOverdue { used, allowed: limits.handler_timeout };
                }
                exit = poll_fn(|_| worked_too_long(&activity, limits)), if limits.time_per_message.is_some() => {
                    self.note_stop(stopping);
                    return exit;
                }
                () = limit.over(), if !is_ready || stopping.is_some() => {
                    if stopping.is_none() {
                        return Exit::NotReady(limits.ready_timeout);
                    }
                    self.note_stop(stopping);
                    return Exit::StopOverdue(limits.stop_timeout);
                }
            }
        }
    }

    /// Whether the instance that serves has said that it cannot for now. Beside another one, it has not said anything yet.
    fn is_interrupted(&self) -> bool {
        self.peer.is_current() && matches!(self.peer.phase(), Phase::Interrupted(_))
    }

    /// Warns of a message that has been in hand for half of `handler-timeout`.
    fn warn_of(&self, handling: &Handling) {
        let allowed = self.config.limits.handler_timeout;
        let text = format!(
            "it has had a message in hand for {}, and is ended at `handler-timeout` of {}",
            humantime::format_duration(allowed / 2),
            humantime::format_duration(allowed),
        );
        let sender = self.bus.peer(handling.sender).map(|peer| peer.name().to_owned());
        let number = handling.message.map(|id| ("message", id.0.to_string()));
        let place = handling.sequence.map(|place| ("sequence", place.to_string()));
        let known = [("handling", handling.operation.clone()), ("sender", sender.unwrap_or_default())];
        let fields = known.into_iter().chain(number).chain(place);
        let fields = fields.map(|(name, value)| (name.to_owned(), value));
        self.output.say_with(Level::Warn, &text, fields);
    }

    /// Notes how long the stop took, if the instance was asked to stop.
    fn note_stop(&self, began: Option<Instant>) {
        if let Some(began) = began {
            self.usage.stop.set(nanoseconds(began.elapsed()));
        }
    }

    /// Reads the values and secrets, and opens the stores and directories. Files are opened off the worker thread, because a
    /// dead network file system would block it.
    async fn surroundings(&self) -> Result<Opened, Exit> {
        self.settings.set(self.openings.values(&self.config).await?);
        self.shared.key_value.open(&self.config.grants.stores).await?;
        self.opened().await.map_err(|error| Exit::not_opened(&error))
    }

    /// Opens, locks and counts the granted directories.
    async fn opened(&self) -> wasmtime::Result<Opened> {
        let said = self.output.clone();
        let grants = self.config.grants.net.clone().into();
        let net = Net::new(grants, GuestKind::Extension, move |text| said.say(Level::Warn, text));
        let (dirs, _locks) = match &self.config.grants.dirs {
            none if none.is_empty() => Default::default(),
            dirs => {
                let paths = dirs.iter().map(|dir| dir.host.clone()).collect();
                let (config, usage) = (self.config.clone(), self.usage.clone());
                let (locks, quotas) = (self.openings.locks.clone(), self.openings.quotas.clone());
                let open = move || {
                    let dirs = &config.grants.dirs;
                    let locked = locks.take_written(dirs)?;
                    Ok::<_, wasmtime::Error>((Dirs::open(dirs, false, &quotas, &usage)?, locked))
                };
                let opened = self.openings.open(paths, open).await??;
                opened.0.count().await?;
                opened
            }
        };
        Ok(Opened { dirs, net, _locks })
    }

    /// Makes the guest's view of the machine.
    pub(crate) fn machine_in(&self, opened: &Opened) -> Machine {
        wasi::context(&self.config, opened.net.clone(), &self.output, opened.dirs.clone())
    }

    /// Returns the end of an instance that cannot be ready in time, because its directories, stores or secrets are not
    /// open yet.
    fn opens_late(&self) -> Exit {
        let late = Exit::NotReady(self.config.limits.ready_timeout);
        let reason = format!("its granted directories or stores, or its secrets could not be opened: {late}");
        Exit::Hindered { reason, limit: late.limit() }
    }

    /// Makes the access to HTTP, and says if it allows nothing.
    pub(crate) fn http_access(&self, program: &Program) -> HttpAccess {
        let output = self.output.clone();
        let say = move |text: &str| output.say(Level::Warn, text);
        let grants = &self.config.grants.http;
        if grants.is_empty() && program.sends_http {
            self.output.say(Level::Info, "it imports `wasi:http`, and `grants.http` allows nothing");
        }
        self.shared.http.access(grants, &self.config.limits, &self.usage, self.share.elsewhere(), say)
    }

    /// Makes the Store of the instance, with its access to HTTP and stores, and with the checks of requests to it.
    pub(crate) fn new_store(
        &self,
        program: &Program,
        mut machine: Machine,
        activity: Arc<Activity>,
    ) -> wasmtime::Result<Store<InstanceState>> {
        let limits = &self.config.limits;
        if program.sends_http && machine.http.is_none() {
            machine.http = Some(Box::new(self.http_access(program)));
        }
        // A copy of an extension uses the store entries of its original.
        let owner = self.config.copy_of.as_ref().unwrap_or(&self.config.id);
        machine.stores = self.shared.key_value.access(owner.as_str(), &self.config.grants.stores, limits);
        let sandbox = Sandbox::new(limits, machine, &self.usage, activity);
        let mut state = InstanceState::new(self, sandbox);
        if let Some(checks) = Checks::of(&self.config, program).filter(|_| !state.is_server) {
            if checks.has_none_of(&self.config.fulfills) {
                self.output.say(Level::Warn, "`validate` checks nothing: it describes none of its contracts");
            }
            state.delivery.checks = Some(checks);
        }
        sandbox::new_store(program.engine(), state, limits)
    }
}

/// Is ready once an instance has worked for one message for longer than it may. To be polled whenever it lets others run.
pub(crate) fn worked_too_long(activity: &Activity, limits: &Limits) -> Poll<Exit> {
    let over = limits.time_per_message.and_then(|allowed| Some((activity.works_longer(allowed)?, allowed)));
    over.map_or(Poll::Pending, |(used, allowed)| Poll::Ready(Exit::WorkedTooLong { used, allowed }))
}
