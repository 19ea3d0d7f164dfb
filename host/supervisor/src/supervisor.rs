//! The supervisor: when extensions start and stop, in which order, and what follows their ends.
//!
//! Owns every extension's task and state. It turns commands, notices and ends into events and decides; it never waits
//! for an extension. [`Lifecycle`](lifecycle::Lifecycle) decides for one extension; dependencies between extensions
//! are decided here.

mod apply;
mod commands;
mod data;
mod ends;
mod error;
mod lifecycle;
mod order;
mod record;
mod reload;
mod run;
mod slots;
mod versions;
mod waiting;

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use tokio::{
    sync::{broadcast, oneshot},
    task::JoinSet,
    time::{Instant, sleep_until},
};
use weir_bus::{Bus, Phase};
use weir_config::Config;
use weir_guest::{Exit, Instance, Noted, Notice, Openings, Programs, Rules, SharedResources, Signals};
use weir_logs::Logs;
use weir_names::ExtensionId;
use weir_reports::ExtensionState;
use weir_schedule::Handoff;
use weir_versions::{VersionError, Versions};

use self::{
    apply::{Applying, WaitingChange},
    data::{Gate, Turns},
    lifecycle::{LifecycleEvent, Step},
    reload::LoadedAnew,
    run::{Ended, Run},
    slots::{InstanceRole, Slot, Slots},
    waiting::{Alternative, FoundInstead},
};
pub use self::{
    apply::{Holds, NotReloaded, ReloadReport, WantedConfig, needs_restart, refusal},
    error::ControlError,
    order::stages,
    versions::found,
};
use crate::{
    events::MainEvent,
    roster::{Roster, Version},
};

/// An order to the supervisor. A change or a configuration is dropped if nobody waits for the answer any more when its
/// turn comes.
#[derive(Debug)]
pub enum Order {
    /// Change one extension.
    Change(Change, ExtensionId, OrderReply),
    /// Apply this configuration for this asker. In stages, if it is said when one holds. Answered when done.
    Configure(WantedConfig, Option<Holds>, Arc<str>, OrderReplyTo<ReloadReport>),
    /// Answer, as a sign of life.
    Ping(oneshot::Sender<()>),
    /// Stop all extensions, dependents first, and end.
    Shutdown,
}

/// A change of one extension.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// Start the extension and what it requires. Answered when it is ready or interrupted, or did not start.
    Start,
    /// Stop the extension. Answered when it has ended.
    Stop,
    /// Restart the extension and forget its failures. Answered when it is ready or interrupted, or did not start.
    Restart,
    /// Load the extension's component anew and replace its instance. Answered when done.
    Reload,
    /// Like [`Reload`](Self::Reload), but also load what was refused, and take it for proven once it is ready.
    ReloadNow,
    /// Take the version on probation for proven. Answered when that is written down.
    Accept,
    /// Refuse the version that runs, and go back to this proven one, or to the one before. Answered when it runs.
    RollBack(RollBack),
}

/// Which version comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RollBack {
    /// This proven version, or else the one before.
    pub to: Option<u64>,
    /// Whether what the extension had in its stores is restored, if the version cannot read what is there.
    pub data_too: bool,
}

/// Where the answer to an order goes.
pub type OrderReplyTo<T> = oneshot::Sender<Result<T, ControlError>>;
type OrderReply = OrderReplyTo<()>;

#[derive(Debug)]
enum SupervisorEvent {
    Order(Order),
    Noted(Noted),
    Done(Done),
    /// The restart delay of an extension is over, or a version on probation or a stage of a reload is to be looked at.
    Due,
    /// A program outside Main has begun or stopped serving a contract, or may do so from now on.
    Providers,
}

/// What a task of the supervisor returns. Small, because each task reserves room for it.
#[derive(Debug)]
enum Done {
    Ran(Box<Ended>),
    Loaded(Box<LoadedAnew>),
    Instead(Box<FoundInstead>),
    Saved(Box<(ExtensionId, Result<(), VersionError>, Option<OrderReply>)>),
    Read(Box<Result<(Config, Option<Rules>), ControlError>>),
}

/// The parts of a supervisor.
#[derive(Debug)]
pub struct SupervisorParts {
    /// The message bus.
    pub bus: Arc<Bus>,
    /// The state of every extension.
    pub roster: Arc<Roster>,
    /// Loads and keeps programs.
    pub programs: Arc<Programs>,
    /// The versions of extensions with `update`.
    pub versions: Arc<Versions>,
    /// What all extensions share.
    pub shared: SharedResources,
    /// Opens granted directories.
    pub openings: Arc<Openings>,
    /// The functions that hand a new configuration to the crates that own sections of it.
    pub sections: Vec<Reconfigure>,
    /// The log lines.
    pub logs: Arc<Logs>,
    /// The channel that listeners get events from.
    pub events: broadcast::Sender<Arc<MainEvent>>,
    /// The orders. The supervisor shuts down once this channel is closed.
    pub commands: async_channel::Receiver<Order>,
}

/// Hands a new configuration to the crates that own sections of it.
pub struct Reconfigure(pub Box<dyn Fn(&Config) + Send>);

impl Reconfigure {
    /// Hands it over. A panic of the function ends only the function.
    fn act(&self, config: &Config) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (self.0)(config))) {
            let why = Exit::panicked(&*panic);
            tracing::error!("a function that gets each reloaded configuration has failed: {why}");
        }
    }
}

impl fmt::Debug for Reconfigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reconfigure")
    }
}

/// The supervisor of one Main.
#[derive(Debug)]
pub struct Supervisor {
    parts: SupervisorParts,
    slots: Slots,
    notices: (async_channel::Sender<Noted>, async_channel::Receiver<Noted>),
    tasks: JoinSet<Done>,
    applying: Option<Applying>,
    /// Changes of the configuration that wait for the one under way.
    waiting: VecDeque<WaitingChange>,
    /// The gates to the data of extensions with stores, by the ids of the originals.
    gates: HashMap<ExtensionId, Gate>,
    /// Each extension whose data is prepared takes one.
    turns: Turns,
    shutting_down: bool,
    /// Whether Main was dropped, so that no more orders come.
    abandoned: bool,
    /// How many runs, reloads and looks of all extensions have begun so far. Gives each its number.
    runs: u64,
    began: Instant,
}

/// How many notices of extensions may wait. An extension that sends another one waits for room.
const NOTICES: usize = 64;

impl Supervisor {
    /// Makes a supervisor that has started nothing.
    pub fn new(parts: SupervisorParts) -> Self {
        let roster = &parts.roster;
        parts.versions.configure(roster.listed().iter().map(|unit| unit.id().clone()));
        let serves = [roster.main().serves.clone(), roster.rest().contracts_of_sections()].concat();
        Self {
            slots: Slots::new(roster.all(), serves, parts.bus.clone()),
            parts,
            notices: async_channel::bounded(NOTICES),
            tasks: JoinSet::new(),
            applying: None,
            waiting: VecDeque::new(),
            gates: HashMap::new(),
            turns: Turns::default(),
            shutting_down: false,
            abandoned: false,
            runs: 0,
            began: Instant::now(),
        }
    }

    /// Starts the extensions that the configuration starts with Main, and sends `started` when no start is under way
    /// any more. Runs until all has ended after a shutdown.
    pub async fn run(mut self, started: oneshot::Sender<()>) {
        for index in self.slots.those(|slot| slot.config.autostart) {
            self.want(index);
        }
        self.reconcile();
        let mut started = Some(started);
        loop {
            if started.is_some()
                && !self.slots.iter().any(|(_, slot)| slot.life.is_coming())
                && let Some(started) = started.take()
            {
                // Fails only if nobody waits for the start.
                let _gave_up = started.send(());
            }
            if self.shutting_down && self.tasks.is_empty() {
                return;
            }
            let event = self.next().await;
            self.decide(event);
            self.reconcile();
            self.go_on_applying();
        }
    }

    async fn next(&mut self) -> SupervisorEvent {
        let stage_due = self.applying.as_ref().and_then(Applying::next_due);
        let due = self.slots.iter().filter_map(|(_, slot)| slot.next_due()).chain(stage_due).min();
        loop {
            tokio::select! {
                biased;
                // Notices come first, so that a notice is read before the end of the extension that sent it.
                Ok(noted) = self.notices.1.recv() => return SupervisorEvent::Noted(noted),
                Some(done) = self.tasks.join_next() => match done {
                    Ok(done) => return SupervisorEvent::Done(done),
                    // Tasks catch their panics, and nothing aborts them.
                    Err(error) => tracing::error!("a task of the supervisor was lost: {error}"),
                },
                command = self.parts.commands.recv(), if !self.abandoned => {
                    return SupervisorEvent::Order(command.unwrap_or_else(|_| {
                        self.abandoned = true;
                        Order::Shutdown
                    }));
                }
                () = self.parts.bus.providers_changed() => return SupervisorEvent::Providers,
                () = sleep_until(due.unwrap_or(self.began)), if due.is_some() => return SupervisorEvent::Due,
                // A stage that waits for proof ends.
                () = asker_left(&mut self.applying), if stage_due.is_some() => return SupervisorEvent::Due,
            }
        }
    }

    fn decide(&mut self, event: SupervisorEvent) {
        match event {
            SupervisorEvent::Order(command) => self.obey(command),
            SupervisorEvent::Noted(noted) => self.note(noted),
            SupervisorEvent::Done(Done::Ran(ended)) => self.end(*ended),
            SupervisorEvent::Done(Done::Loaded(loaded)) => self.loaded(*loaded),
            SupervisorEvent::Done(Done::Instead(found)) => self.found_instead(*found),
            SupervisorEvent::Done(Done::Saved(saved)) => {
                let (id, result, reply) = *saved;
                self.saved(&id, result, reply);
            }
            SupervisorEvent::Done(Done::Read(read)) => self.read(*read),
            SupervisorEvent::Due => {
                self.end_delays();
                self.look();
            }
            // Nothing to do here: extensions that wait for a provider are reconciled after each event.
            SupervisorEvent::Providers => {}
        }
    }

    fn obey(&mut self, command: Order) {
        match command {
            Order::Change(change, id, reply) => self.act_on(&id, change, reply),
            Order::Configure(config, holds, by, reply) => self.configure(config, holds, by, reply),
            Order::Ping(reply) => {
                // Fails only if the asker has given up.
                let _gave_up = reply.send(());
            }
            Order::Shutdown => self.shut_down(),
        }
    }

    fn act_on(&mut self, id: &ExtensionId, change: Change, reply: OrderReply) {
        if reply.is_closed() {
            // The asker has gone before the order's turn came.
            return;
        }
        let Some(index) = self.slots.find(id) else {
            return answer([reply], || Err(ControlError::Unknown(id.to_string())));
        };
        match change {
            Change::Start => self.start(index, reply),
            Change::Stop => self.stop(index, Some(reply)),
            Change::Restart => self.restart(index, reply),
            Change::Reload => self.reload(index, false, reply),
            Change::ReloadNow => self.reload(index, true, reply),
            Change::Accept => self.accept(index, reply),
            Change::RollBack(back) => self.roll_back(index, back, reply),
        }
    }

    /// Acts on the notice of an instance that it is ready or interrupted.
    fn note(&mut self, Noted { peer, run, notice }: Noted) {
        let Some((index, part)) = self.slots.of_run(peer, run) else { return };
        let (happening, phase, reason) = match notice {
            Notice::Ready => (LifecycleEvent::Ready, Phase::Ready, None),
            Notice::Interrupted(reason) => {
                (LifecycleEvent::Interrupted, Phase::Interrupted(reason.clone()), Some(reason))
            }
            Notice::Failed(end) => return self.request_failed(index, part, *end),
        };
        match part {
            InstanceRole::Predecessor => {}
            InstanceRole::Successor if happening == LifecycleEvent::Ready => self.take_over(index),
            // A successor that is not ready changes nothing: the current instance serves on.
            InstanceRole::Successor => {}
            InstanceRole::Current => {
                let Some(slot) = self.slots.get_mut(index) else { return };
                slot.apply(happening);
                if let (LifecycleEvent::Ready, Some(run)) = (happening, &slot.current) {
                    run.version.note_served();
                }
                if happening == LifecycleEvent::Ready {
                    self.observe(index);
                }
                let Some(slot) = self.slots.get_mut(index) else { return };
                if slot.predecessor.is_some() {
                    // This instance may have sent the notice before it took over, when it could not set the phase
                    // itself.
                    slot.unit.version().peer.set_phase_if_up(phase);
                }
                if slot.life.is_there() {
                    let state = slot.life.state();
                    self.set_state(index, state, reason);
                    let slot = self.slots.get_mut(index).map(|slot| std::mem::take(&mut slot.starters));
                    answer(slot.unwrap_or_default(), || Ok(()));
                    self.came_up(index);
                }
            }
        }
    }

    /// Starts an instance of the next version as the current one.
    fn launch(&mut self, index: usize) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        slot.apply(LifecycleEvent::Launched);
        slot.alternative = Alternative::Unknown;
        // The instance before has ended, so orders to stop it are done.
        answer(std::mem::take(&mut slot.stoppers), || Ok(()));
        let version = slot.unit.version();
        slot.unit.count_start();
        version.peer.begin_instance();
        // The state is told after the peer has begun, so that listeners can send to it.
        self.set_state(index, ExtensionState::Starting, None);
        let is_on_trial = self.slots.get(index).is_some_and(|slot| slot.life.is_on_trial());
        let run = self.spawn(index, version, is_on_trial);
        if let Some(slot) = self.slots.get_mut(index) {
            slot.current = run;
        }
    }

    fn spawn(&mut self, index: usize, version: Arc<Version>, is_on_trial: bool) -> Option<Run> {
        self.runs += 1;
        let signals = Signals::new(version.peer.id(), self.runs, self.notices.0.clone(), is_on_trial);
        let signals = Arc::new(signals);
        let instance = Box::new(Instance {
            bus: self.parts.bus.clone(),
            peer: version.peer.clone(),
            config: version.config.clone(),
            settings: version.settings.clone(),
            output: version.output.clone(),
            shared: self.parts.shared.clone(),
            openings: self.parts.openings.clone(),
            share: version.share.clone(),
            signals: signals.clone(),
            usage: self.slots.get(index)?.unit.usage.clone(),
        });
        let unit = &self.slots.get(index)?.unit;
        let is_chosen = version.config.update.is_some();
        let configured = is_chosen.then(|| (unit.configured(), self.parts.versions.clone()));
        let entry = self.entry_to_data(&version.config);
        let run = Run { version, signals };
        let (task, programs) = (run.clone(), self.parts.programs.clone());
        let run_it =
            async move { Done::Ran(Box::new(run::run(task, programs, configured, entry, instance).await)) };
        self.tasks.spawn(Handoff::new(run_it));
        Some(run)
    }

    /// Tells the current instance to finish.
    fn drain(&mut self, index: usize) {
        // At the end nothing is left of its memory.
        self.count(index);
        let Some(slot) = self.slots.get(index) else { return };
        let phase = if slot.life.is_coming() { Phase::Replacing } else { Phase::Draining };
        if let Some(run) = &slot.current {
            run.version.peer.set_phase(phase);
            run.stop();
        }
        self.set_state(index, ExtensionState::Draining, None);
    }

    /// Tells the askers that wait for the extension to be ready that it did not start, and why.
    fn fail_starters(&mut self, index: usize, reason: &str) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        let id = slot.unit.id().clone();
        answer(std::mem::take(&mut slot.starters), || {
            Err(ControlError::NotStarted { id: id.clone(), reason: reason.to_owned() })
        });
    }

    /// Answers the askers that wait for the extension's end, once none of its instances runs.
    fn answer_stoppers(&mut self, index: usize) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        if slot.runs().next().is_none() {
            answer(std::mem::take(&mut slot.stoppers), || Ok(()));
        }
    }

    fn set_state(&self, index: usize, state: ExtensionState, reason: Option<String>) {
        let Some(slot) = self.slots.get(index) else { return };
        let from = slot.unit.set_state(state, reason.clone());
        if from != state {
            let id = slot.unit.id();
            tracing::debug!(target: "weir", extension = %id, %from, to = %state, "state");
            let event = MainEvent::State { extension: id.clone(), from, to: state, reason };
            // Fails only if nobody listens.
            let _nobody = self.parts.events.send(event.into());
        }
    }
}

/// Waits until nobody waits for the configuration reload any more.
async fn asker_left(applying: &mut Option<Applying>) {
    match applying {
        Some(applying) => applying.left().await,
        None => std::future::pending().await,
    }
}

fn answer<T>(
    replies: impl IntoIterator<Item = OrderReplyTo<T>>,
    result: impl Fn() -> Result<T, ControlError>,
) {
    for reply in replies {
        // Fails only if the asker has given up.
        let _gave_up = reply.send(result());
    }
}
