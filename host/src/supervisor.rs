//! The supervisor: when extensions start and stop, in which order, and what becomes of their ends.
//!
//! Owns every extension's task and the record of its state. It turns what happens (a command, a
//! notice, an end) into an event and then decides; it never waits for an extension.

mod units;

use std::{collections::HashMap, sync::Arc, time::SystemTime};

use tokio::{
    sync::{broadcast, oneshot},
    task::JoinSet,
};

use self::units::{Ended, Units};
use crate::{
    bus::Bus,
    events::MainEvent,
    extension::{Exit, Handling, Instance, Noted, Notice, Programs, Signals, Turns},
    logs::{Level, Logs, Source},
    names::ExtensionId,
    roster::{FailedRequest, FailureRecord, State, Unit},
};

/// Why an extension was not started or stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// No extension has this id.
    #[error("no extension `{0}` is configured")]
    Unknown(String),
    /// It did not come up.
    #[error("`{id}` did not start: {reason}")]
    NotStarted {
        /// The extension.
        id: ExtensionId,
        /// Why.
        reason: String,
    },
    /// Main is shutting down, or has shut down.
    #[error("main is shutting down")]
    ShuttingDown,
}

/// What the supervisor is asked to do.
#[derive(Debug)]
pub(crate) enum Command {
    /// Start an extension, and what it requires; answered when it is ready or has failed.
    Start(ExtensionId, Reply),
    /// Stop an extension; answered when it has ended.
    Stop(ExtensionId, Reply),
    /// Stop all, dependents first, and return.
    Shutdown,
}

pub(crate) type Reply = oneshot::Sender<Result<(), ControlError>>;

/// What happens.
#[derive(Debug)]
enum Event {
    Command(Command),
    Noted(Noted),
    Ended(Box<Ended>),
}

/// The supervisor of one Main.
#[derive(Debug)]
pub(crate) struct Supervisor {
    bus: Arc<Bus>,
    units: Units,
    programs: Arc<Programs>,
    logs: Arc<Logs>,
    turns: Arc<Turns>,
    events: broadcast::Sender<MainEvent>,
    commands: async_channel::Receiver<Command>,
    notices: (async_channel::Sender<Noted>, async_channel::Receiver<Noted>),
    tasks: JoinSet<Ended>,
    starting: HashMap<usize, Vec<Reply>>,
    stopping: HashMap<usize, Vec<Reply>>,
    shutting_down: bool,
    /// Nobody is left who could command: Main was dropped.
    abandoned: bool,
    /// Runs begun so far, of all extensions.
    runs: u64,
}

/// Notices that may wait for the supervisor; an extension that has one to give waits for room.
const NOTICES: usize = 64;

impl Supervisor {
    pub(crate) fn new(
        bus: Arc<Bus>,
        units: Arc<[Arc<Unit>]>,
        programs: Arc<Programs>,
        logs: Arc<Logs>,
        events: broadcast::Sender<MainEvent>,
        commands: async_channel::Receiver<Command>,
    ) -> Self {
        Self {
            bus,
            units: Units::new(units),
            programs,
            logs,
            turns: Arc::default(),
            events,
            commands,
            notices: async_channel::bounded(NOTICES),
            tasks: JoinSet::new(),
            starting: HashMap::new(),
            stopping: HashMap::new(),
            shutting_down: false,
            abandoned: false,
            runs: 0,
        }
    }

    /// Starts what is to be started, says so when all of it is ready or has failed, and goes on until
    /// it is asked to shut down and everything has ended.
    pub(crate) async fn run(mut self, started: oneshot::Sender<()>) {
        self.units.want_autostart();
        self.start_what_can();
        let mut started = Some(started);
        loop {
            if started.is_some()
                && self.units.is_settled()
                && let Some(started) = started.take()
            {
                // It fails only if whoever started Main has given up.
                let _gave_up = started.send(());
            }
            if self.shutting_down && self.tasks.is_empty() {
                return;
            }
            let event = self.next().await;
            self.decide(event);
        }
    }

    async fn next(&mut self) -> Event {
        loop {
            tokio::select! {
                biased;
                // Before its end: what an extension said was said while it ran.
                Ok(noted) = self.notices.1.recv() => return Event::Noted(noted),
                Some(ended) = self.tasks.join_next() => match ended {
                    Ok(ended) => return Event::Ended(Box::new(ended)),
                    // Tasks catch their panics and nobody aborts them.
                    Err(error) => tracing::error!("an extension's task was lost: {error}"),
                },
                command = self.commands.recv(), if !self.abandoned => {
                    return Event::Command(command.unwrap_or_else(|_| {
                        self.abandoned = true;
                        Command::Shutdown
                    }));
                }
            }
        }
    }

    fn decide(&mut self, event: Event) {
        match event {
            Event::Command(Command::Start(id, reply)) => self.start(&id, reply),
            Event::Command(Command::Stop(id, reply)) => self.stop(&id, reply),
            Event::Command(Command::Shutdown) => self.shut_down(),
            Event::Noted(noted) => self.note(noted),
            Event::Ended(ended) => self.end(*ended),
        }
    }

    fn start(&mut self, id: &ExtensionId, reply: Reply) {
        let Some(index) = self.units.find(id) else {
            return answer(vec![reply], &Err(ControlError::Unknown(id.to_string())));
        };
        if self.shutting_down {
            return answer(vec![reply], &Err(ControlError::ShuttingDown));
        }
        match self.units.state(index) {
            State::Ready | State::Interrupted => return answer(vec![reply], &Ok(())),
            State::Draining => {
                let reason = "it is still stopping".to_owned();
                return answer(vec![reply], &Err(ControlError::NotStarted { id: id.clone(), reason }));
            }
            _ => {}
        }
        self.starting.entry(index).or_default().push(reply);
        self.units.want(index);
        self.start_what_can();
    }

    fn stop(&mut self, id: &ExtensionId, reply: Reply) {
        let Some(index) = self.units.find(id) else {
            return answer(vec![reply], &Err(ControlError::Unknown(id.to_string())));
        };
        self.units.unwant(index);
        if self.units.is_running(index) {
            self.stopping.entry(index).or_default().push(reply);
            self.drain(index);
        } else {
            self.settle_starters(index, Some("it was stopped"));
            self.fail_dependents(index);
            if self.units.state(index) == State::Failed {
                self.forget(index);
                self.set_state(index, State::Stopped, None);
            }
            answer(vec![reply], &Ok(()));
        }
    }

    fn shut_down(&mut self) {
        self.shutting_down = true;
        self.units.unwant_all();
        for index in self.units.stoppable() {
            self.drain(index);
        }
    }

    fn note(&mut self, Noted { peer, run, notice }: Noted) {
        let Some(index) = self.units.of_run(peer, run) else { return };
        if !matches!(self.units.state(index), State::Starting | State::Ready | State::Interrupted) {
            return;
        }
        match notice {
            Notice::Ready => self.set_state(index, State::Ready, None),
            Notice::Interrupted(reason) => self.set_state(index, State::Interrupted, Some(reason)),
        }
        self.settle_starters(index, None);
        self.start_what_can();
    }

    fn end(&mut self, ended: Ended) {
        let Ended { index, exit, handling, hash, time } = ended;
        let Some(unit) = self.units.ended(index) else { return };
        let was_draining = unit.state() == State::Draining;
        unit.peer.set_phase(crate::bus::Phase::Down);
        let reason = (exit != Exit::Finished).then(|| exit.to_string());
        let as_it_should = exit == Exit::Finished || (was_draining && matches!(exit, Exit::Failed(_)));
        if !as_it_should {
            self.record_failure(&unit, &exit, handling, hash, time);
        }
        let state = if as_it_should || was_draining { State::Stopped } else { State::Failed };
        if state == State::Stopped || matches!(exit, Exit::Start { .. } | Exit::NotReady(_)) {
            self.forget(index);
        }
        self.set_state(index, state, reason.clone());
        answer(self.stopping.remove(&index).unwrap_or_default(), &Ok(()));
        self.settle_starters(index, Some(reason.as_deref().unwrap_or("it finished before it was ready")));
        self.fail_dependents(index);
        if self.shutting_down {
            self.shut_down();
        }
    }

    /// Nobody will read on: whoever waits for an answer hears it now.
    fn forget(&self, index: usize) {
        if let Some(unit) = self.units.unit(index) {
            self.bus.unsubscribe_all(&unit.peer);
            unit.peer.inbox().clear();
        }
    }

    /// Starts every extension that is wanted and whose requirements are met.
    fn start_what_can(&mut self) {
        for index in self.units.startable() {
            self.launch(index);
        }
    }

    fn launch(&mut self, index: usize) {
        let Some(unit) = self.units.unit(index).cloned() else { return };
        unit.peer.begin_instance();
        // Whoever sees it start can send to it.
        self.set_state(index, State::Starting, None);
        self.runs += 1;
        let signals = Arc::new(Signals::new(unit.peer.id(), self.runs, self.notices.0.clone()));
        self.units.launched(index, signals.clone());
        let instance = Instance {
            bus: self.bus.clone(),
            peer: unit.peer.clone(),
            config: unit.config.clone(),
            output: unit.output.clone(),
            turns: self.turns.clone(),
            share: unit.share.clone(),
            signals,
            usage: unit.usage.clone(),
        };
        self.tasks.spawn(units::run(index, self.programs.clone(), instance));
    }

    fn drain(&mut self, index: usize) {
        let Some((unit, signals)) = self.units.running(index) else { return };
        if unit.state() != State::Draining {
            unit.peer.set_phase(crate::bus::Phase::Draining);
            unit.peer.inbox().stop();
            signals.stop();
            self.set_state(index, State::Draining, None);
        }
    }

    /// What waits to be started until `index` is ready will wait in vain.
    fn fail_dependents(&mut self, index: usize) {
        for (dependent, contract) in self.units.waiting_for(index) {
            let owner = self.units.unit(index).map(|unit| unit.id().to_string()).unwrap_or_default();
            let reason = format!("it requires `{contract}`, and `{owner}` does not run");
            self.units.unwant(dependent);
            self.set_state(dependent, State::Failed, Some(reason.clone()));
            self.settle_starters(dependent, Some(&reason));
            self.fail_dependents(dependent);
        }
    }

    fn settle_starters(&mut self, index: usize, failed: Option<&str>) {
        let Some(replies) = self.starting.remove(&index) else { return };
        let result = match (failed, self.units.unit(index)) {
            (Some(reason), Some(unit)) => {
                Err(ControlError::NotStarted { id: unit.id().clone(), reason: reason.to_owned() })
            }
            _ => Ok(()),
        };
        answer(replies, &result);
    }

    fn set_state(&self, index: usize, state: State, reason: Option<String>) {
        let Some(unit) = self.units.unit(index) else { return };
        let from = unit.set_state(state, reason.clone());
        if from != state {
            tracing::debug!(target: "weir", extension = %unit.id(), ?from, to = ?state, "state");
            let event = MainEvent::State { extension: unit.id().clone(), from, to: state, reason };
            // An error says only that nobody listens.
            let _nobody = self.events.send(event);
        }
    }

    fn record_failure(
        &self,
        unit: &Unit,
        exit: &Exit,
        handling: Option<Handling>,
        hash: Option<[u8; 32]>,
        time: SystemTime,
    ) {
        let handling = handling.map(|Handling { message, sender, operation }| FailedRequest {
            message,
            sender: self.bus.peer(sender).map(|peer| peer.name().to_owned()).unwrap_or_default(),
            operation,
        });
        let trace = match exit {
            Exit::Trapped { trace, .. } | Exit::OutOfFuel { trace, .. } => trace.clone(),
            _ => Vec::new(),
        };
        let failure = FailureRecord {
            extension: unit.id().clone(),
            time,
            cause: exit.to_string(),
            hash: hash.map(|hash| hash.iter().map(|byte| format!("{byte:02x}")).collect()),
            handling,
            limit: exit.limit(),
            trace,
        };
        let mut fields = Vec::new();
        if let Some(handling) = &failure.handling {
            fields.push(("handling".to_owned(), handling.operation.clone()));
            fields.push(("sender".to_owned(), handling.sender.clone()));
            fields.push(("message".to_owned(), handling.message.to_string()));
        }
        if let Some(limit) = &failure.limit {
            fields.push(("limit".to_owned(), limit.name.clone()));
            fields.push(("used".to_owned(), limit.used.to_string()));
            fields.push(("allowed".to_owned(), limit.allowed.to_string()));
        }
        if let Some(innermost) = failure.trace.first() {
            fields.push(("in".to_owned(), innermost.clone()));
        }
        let text = format!("failed: {}", failure.cause);
        self.logs.write(&unit.peer.name().into(), Level::Error, Source::Main, &text, fields.into_iter());
        unit.add_failure(failure.clone());
        let _nobody = self.events.send(MainEvent::Failed(Box::new(failure)));
    }
}

fn answer(replies: Vec<Reply>, result: &Result<(), ControlError>) {
    for reply in replies {
        // It fails only if whoever asked has given up.
        let _gave_up = reply.send(result.clone());
    }
}
