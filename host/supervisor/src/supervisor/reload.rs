//! The reload of one extension. The new version loads while the old one serves, and then takes its place. If the new
//! version does not come up, the old one serves again.

use std::sync::Arc;

use tokio::sync::oneshot;
use weir_bus::{Parent, Phase};
use weir_config::{ExtensionConfig, ReloadMode};
use weir_guest::{Exit, LoadFault, LoadRequest, Loaded, Values};
use weir_logs::{Level, Source};
use weir_reports::ExtensionState;

use super::{
    ControlError, Done, LifecycleEvent, OrderReply, Supervisor, answer,
    run::{End, Ended, Run},
};
use crate::roster::{Version, on_the_bus};

/// The topic of an event that tells an extension which of its values have changed.
const CONFIG_CHANGED: &str = "config.changed";

#[derive(Debug)]
pub(super) struct Reload {
    number: u64,
    stage: Stage,
    asker: Asker,
    /// Dropping this ends the loading.
    _wanted: oneshot::Receiver<()>,
}

#[derive(Debug)]
enum Stage {
    Loading,
    /// The old version drains, and this version comes next.
    Next(Arc<Version>),
    /// The new version starts beside the old one, which serves on until the new one is ready.
    Beside,
    /// The new version was started beside the old one, and is told to end for this reason.
    GivenUp(&'static str),
    /// The new version starts. This old version, if any, can come back.
    Trial(Option<Arc<Version>>),
    /// The new version did not come up for this reason, and the old one starts again.
    Back(String),
    /// The new version has taken over, and the old instance finishes.
    Retiring,
}

#[derive(Debug)]
pub(super) enum Asker {
    One(OrderReply),
    Configuration,
    /// A restart, whose program loads first. The extension stops once loading has succeeded or failed.
    Restart(Vec<OrderReply>),
}

/// How a version becomes current.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tenure {
    ForGood,
    /// The version before may come back until this one is ready.
    OnTrial,
    /// The version was current before. Contracts that other extensions have taken since then stay theirs.
    Back,
}

#[derive(Debug)]
pub(super) struct LoadedAnew {
    number: u64,
    index: usize,
    config: Arc<ExtensionConfig>,
    /// Whether the instance is replaced even if nothing has changed.
    always: bool,
    /// The program of the instances, and the values that they read.
    loaded: Result<(Loaded, Arc<Values>), End>,
}

impl Reload {
    pub(super) fn is_beside(&self) -> bool {
        matches!(self.stage, Stage::Beside)
    }
}

impl Supervisor {
    pub(super) fn reload(&mut self, index: usize, reply: OrderReply) {
        let Some(slot) = self.slots.get(index) else { return };
        if self.shutting_down {
            return answer([reply], || Err(ControlError::ShuttingDown));
        }
        if slot.reload.is_some() {
            return answer([reply], || Err(ControlError::Reloading(format!("`{}`", slot.unit.id()))));
        }
        let config = slot.unit.version().config.clone();
        self.load(index, config, Asker::One(reply), true);
    }

    /// Begins a reload: loads what the configuration names. The caller has made sure that no other reload is under way.
    pub(super) fn load(&mut self, index: usize, config: Arc<ExtensionConfig>, asker: Asker, always: bool) {
        self.runs += 1;
        let number = self.runs;
        let Some(slot) = self.slots.get_mut(index) else { return };
        let (mut unwanted, wanted) = oneshot::channel();
        slot.reload = Some(Reload { number, stage: Stage::Loading, asker, _wanted: wanted });
        let (programs, openings) = (self.parts.programs.clone(), self.parts.openings.clone());
        programs.read_again(&config.component);
        self.tasks.spawn(async move {
            let wanted = LoadRequest::from(&*config);
            let load = async {
                let loaded = programs.load(wanted).await.map_err(|error| End::not_loaded(&error))?;
                let timeout = config.limits.ready_timeout;
                let values = tokio::time::timeout(timeout, openings.values(&config)).await;
                let late = || {
                    let late = Exit::NotReady(timeout);
                    Exit::Hindered { reason: format!("its secrets could not be read: {late}"), limit: None }
                };
                let values = values.unwrap_or_else(|_| Err(late())).map_err(End::of)?;
                Ok((loaded, values))
            };
            let loaded = tokio::select! {
                loaded = load => loaded,
                () = unwanted.closed() => Err(End::not_loaded(&LoadFault::CutOff.of(wanted.origin(), None))),
            };
            Done::Loaded(Box::new(LoadedAnew { number, index, config, always, loaded }))
        });
    }

    /// Acts on the outcome of a load: ends the reload, tells the extension its new values, or replaces its instance.
    pub(super) fn loaded(&mut self, LoadedAnew { number, index, config, always, loaded }: LoadedAnew) {
        let Some(slot) = self.slots.get(index) else { return };
        if slot.reload.as_ref().is_none_or(|reload| reload.number != number) {
            // This reload was given up meanwhile.
            return;
        }
        if self.shutting_down {
            return self.finish(index, Err("main is shutting down".to_owned()));
        }
        if let Some(replies) = self.take_restart(index) {
            return self.begin_restart(index, replies, loaded.ok().map(|(loaded, _)| loaded));
        }
        let Some(slot) = self.slots.get(index) else { return };
        let (unit, now, state) = (slot.unit.clone(), slot.unit.version(), slot.life.state());
        let before = slot.proven();
        let is_kept = before.is_some();
        let (loaded, values) = match loaded {
            Ok(loaded) => loaded,
            Err(end) => {
                if !always {
                    self.note_configured(index);
                }
                self.record_failure(&unit, &end, state, None);
                let serves = if slot.life.is_there() { "; the version before serves on" } else { "" };
                return self.finish(index, Err(format!("{}{serves}", end.exit)));
            }
        };
        // A version that is not loaded yet loads the same file.
        let is_same = |kept: Loaded| kept.program.hash == loaded.program.hash;
        let is_same =
            !always && now.program().is_none_or(is_same) && config.runs_as_but_for_config(&now.config);
        let changes = now.settings.changes(&values);
        let is_unchanged = changes.as_ref().map_or_else(|| config.runs_as(&now.config), Vec::is_empty);
        if is_same && is_unchanged {
            let has_changed = self.retune(index, config);
            return self.finish(index, Ok(has_changed));
        }
        if !always {
            self.note_configured(index);
        }
        if is_same && self.tell(index, &values, &changes.unwrap_or_default()) {
            let _told = self.retune(index, config);
            return self.finish(index, Ok(true));
        }
        let (limits, access) = on_the_bus(&config, &self.parts.roster.main());
        let (mode, missing) = (config.reload, self.missing(&config));
        let next = unit.next_version(config, now.peer.renewed(limits, access), Some(loaded));
        let is_to_run = matches!(state, ExtensionState::BackingOff | ExtensionState::Failed)
            || self.slots.get(index).is_some_and(|slot| slot.life.is_coming());
        match state {
            ExtensionState::Starting | ExtensionState::Ready | ExtensionState::Interrupted
                if missing.is_some() =>
            {
                let reason = missing.unwrap_or_default();
                self.finish(index, Err(format!("{reason}; the version before serves on")));
            }
            // Only a version that has been ready can serve while its successor starts.
            ExtensionState::Ready | ExtensionState::Interrupted if mode == ReloadMode::Overlap && is_kept => {
                next.peer.begin_beside();
                unit.count_start();
                let run = self.spawn(index, next, true);
                let Some(slot) = self.slots.get_mut(index) else { return };
                slot.successor = run;
                self.set_stage(index, Stage::Beside);
            }
            ExtensionState::Starting | ExtensionState::Ready | ExtensionState::Interrupted => {
                self.set_stage(index, Stage::Next(next));
                self.replace(index, is_kept);
            }
            _ if is_to_run => {
                self.install(index, &next, if is_kept { Tenure::OnTrial } else { Tenure::ForGood });
                self.set_stage(index, Stage::Trial(before));
                self.replace(index, is_kept);
            }
            _ => {
                // The extension does not run, and its start loads the file again.
                next.forget_program();
                self.install(index, &next, Tenure::ForGood);
                self.finish(index, Ok(true));
            }
        }
    }

    /// Gives a running extension new values, and an event that names the changed ones. Returns false, and changes
    /// nothing, if the extension is not up, shares its inbox, or has not subscribed to the event.
    fn tell(&self, index: usize, values: &Arc<Values>, changes: &[String]) -> bool {
        let Some(slot) = self.slots.get(index) else { return false };
        // Of several instances that share an inbox, only one would get the event.
        if !slot.life.is_there() || self.slots.sharing(index).len() > 1 {
            return false;
        }
        let (id, term) = (slot.unit.id(), (None, Parent::default()));
        let Ok(payload) = serde_json::to_vec(changes) else { return false };
        let told = self.parts.bus.publish(
            self.parts.bus.main(),
            Some(id.as_str()),
            CONFIG_CHANGED,
            payload.into(),
            term,
        );
        // The instance finds the new values with the event, because it runs on this thread, later.
        told.map(|_| slot.unit.version().settings.set(values.clone())).is_ok()
    }

    /// Ends the loading for a restart, if one is under way, and returns the askers that wait for the restart.
    pub(super) fn take_restart(&mut self, index: usize) -> Option<Vec<OrderReply>> {
        let slot = self.slots.get_mut(index)?;
        match slot.reload.take() {
            Some(Reload { asker: Asker::Restart(replies), .. }) => Some(replies),
            other => {
                slot.reload = other;
                None
            }
        }
    }

    /// Returns why an extension with this configuration could not start, if what it requires is not there and does not
    /// come.
    fn missing(&self, config: &ExtensionConfig) -> Option<String> {
        let coming = self.slots.coming();
        let is_coming = |owner: &Option<usize>| owner.is_some_and(|owner| coming.contains(&owner));
        let (owner, contract) = self.slots.unmet(config).find(|(owner, _)| !is_coming(owner))?;
        Some(self.why_blocked(owner, contract))
    }

    fn replace(&mut self, index: usize, is_kept: bool) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        slot.due = None;
        let step = slot.apply(LifecycleEvent::Replace { is_kept });
        self.come_again(index, step);
    }

    /// Gives a running or idle extension a configuration that its instances need not be replaced for. Returns whether
    /// anything has changed.
    pub(super) fn retune(&mut self, index: usize, config: Arc<ExtensionConfig>) -> bool {
        let Some(slot) = self.slots.get(index) else { return false };
        let has_changed = !slot.config.differences(&config).is_empty();
        if has_changed {
            self.note_configured(index);
        }
        let Some(slot) = self.slots.get_mut(index) else { return false };
        slot.config = config.clone();
        slot.unit.set_version(slot.unit.same_version(config));
        self.keep_to_policy(index);
        has_changed
    }

    /// Makes this the version of the next instance, and puts its peer on the bus.
    pub(super) fn install(&mut self, index: usize, version: &Arc<Version>, tenure: Tenure) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        let before = std::mem::replace(&mut slot.config, version.config.clone());
        slot.unit.set_version(version.clone());
        match tenure {
            Tenure::ForGood => self.parts.bus.replace(&version.peer, true),
            Tenure::OnTrial => self.parts.bus.replace_on_trial(&version.peer),
            Tenure::Back => self.parts.bus.replace(&version.peer, false),
        }
        let contracts = |config: &ExtensionConfig| {
            [config.fulfills.clone(), config.requires.clone(), config.wants.clone()]
        };
        if contracts(&before) != contracts(&version.config) {
            self.slots.connect();
        }
    }

    /// Installs the next version, if there is one, after the instance has drained.
    pub(super) fn put_next(&mut self, index: usize) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        if let Some(Reload { stage: stage @ Stage::Next(_), .. }) = &mut slot.reload {
            let before = slot.life.is_on_trial().then(|| slot.unit.version());
            let tenure = if before.is_some() { Tenure::OnTrial } else { Tenure::ForGood };
            if let Stage::Next(next) = std::mem::replace(stage, Stage::Trial(before)) {
                self.install(index, &next, tenure);
            }
        }
    }

    /// Installs the version before again, because the new one did not come up.
    pub(super) fn fall_back(&mut self, index: usize, reason: &str) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        if let Some(Reload { stage: stage @ Stage::Trial(Some(_)), .. }) = &mut slot.reload
            && let Stage::Trial(Some(before)) = std::mem::replace(stage, Stage::Back(reason.to_owned()))
        {
            self.parts.bus.discard(&slot.unit.version().peer);
            self.install(index, &before, Tenure::Back);
        }
    }

    /// Ends the reload of an extension that has come up, with its new version or with the one before.
    pub(super) fn came_up(&mut self, index: usize) {
        let Some(slot) = self.slots.get(index) else { return };
        match slot.reload.as_ref().map(|reload| &reload.stage) {
            Some(Stage::Trial(_)) if !slot.life.is_on_trial() => self.finish(index, Ok(true)),
            Some(Stage::Back(reason)) => {
                let does = if slot.life.state() == ExtensionState::Ready { "serves" } else { "runs" };
                let reason = format!("{reason}; the version before {does} again");
                self.finish(index, Err(reason));
            }
            _ => {}
        }
    }

    /// Ends the reload of an extension whose next instance does not come, for this reason.
    pub(super) fn gave_up(&mut self, index: usize, reason: &str) {
        let Some(slot) = self.slots.get(index) else { return };
        match slot.reload.as_ref().map(|reload| &reload.stage) {
            Some(Stage::Next(_) | Stage::Trial(_)) => self.finish(index, Err(reason.to_owned())),
            Some(Stage::Back(first)) => {
                let reason = format!("{first}; the version before did not start again either: {reason}");
                self.finish(index, Err(reason));
            }
            _ => {}
        }
    }

    /// Gives up a reload, because of another order or the end of the version before. A successor is told to stop first.
    /// A reload that still loads goes on if the extension is on its way.
    pub(super) fn give_up_reload(&mut self, index: usize, reason: &'static str) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        match slot.reload.as_mut().map(|reload| &mut reload.stage) {
            Some(stage @ Stage::Beside) => {
                *stage = Stage::GivenUp(reason);
                slot.successor.iter().for_each(Run::stop);
            }
            Some(Stage::Loading) if !slot.life.is_coming() => self.finish(index, Err(reason.to_owned())),
            _ => self.gave_up(index, reason),
        }
    }

    /// Makes the successor current once it is ready. The instance before is told to finish.
    pub(super) fn take_over(&mut self, index: usize) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        if !slot.is_succeeded() {
            return;
        }
        let Some(next) = slot.successor.take() else { return };
        slot.predecessor = slot.current.replace(next.clone());
        slot.apply(LifecycleEvent::TakenOver { is_ready: true });
        slot.predecessor.iter().for_each(Run::stop);
        next.version.note_served();
        self.install(index, &next.version, Tenure::ForGood);
        next.version.peer.become_current();
        next.version.peer.set_phase(Phase::Ready);
        self.set_state(index, ExtensionState::Ready, None);
        self.set_stage(index, Stage::Retiring);
    }

    /// Makes the successor current, ready or not, because the current instance has failed. If the current instance has
    /// finished, or the extension is in quarantine, gives up the reload instead.
    pub(super) fn adopt(&mut self, index: usize) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        if !slot.is_succeeded() {
            return;
        }
        match slot.life.state() {
            ExtensionState::BackingOff | ExtensionState::Failed => {}
            ExtensionState::Stopped => return self.give_up_reload(index, "the version before has finished"),
            _ => return self.give_up_reload(index, "the version before has failed for good"),
        }
        let Some(next) = slot.successor.take() else { return };
        let before = slot.unit.version();
        slot.due = None;
        slot.apply(LifecycleEvent::TakenOver { is_ready: false });
        slot.current = Some(next.clone());
        self.install(index, &next.version, Tenure::OnTrial);
        next.version.peer.become_current();
        next.version.peer.set_phase(Phase::Starting);
        self.set_state(index, ExtensionState::Starting, None);
        self.set_stage(index, Stage::Trial(Some(before)));
    }

    pub(super) fn successor_ended(&mut self, index: usize, ended: &Ended) {
        self.parts.bus.discard(&ended.run.version.peer);
        let Some(slot) = self.slots.get_mut(index) else { return };
        slot.successor = None;
        let (unit, state) = (slot.unit.clone(), slot.life.state());
        if let Some(Reload { stage: Stage::GivenUp(reason), .. }) = &slot.reload {
            let reason = (*reason).to_owned();
            self.finish(index, Err(reason));
        } else {
            self.record_failure(&unit, &ended.end, state, None);
            self.finish(index, Err(format!("{}; the version before serves on", ended.end.exit)));
        }
        self.answer_stoppers(index);
    }

    pub(super) fn predecessor_ended(&mut self, index: usize, ended: &Ended) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        slot.predecessor = None;
        let (unit, state) = (slot.unit.clone(), slot.life.state());
        if !matches!(ended.end.exit, Exit::Finished | Exit::Failed(_)) {
            self.record_failure(&unit, &ended.end, state, None);
        }
        self.finish(index, Ok(true));
        self.answer_stoppers(index);
    }

    fn set_stage(&mut self, index: usize, stage: Stage) {
        if let Some(reload) = self.slots.get_mut(index).and_then(|slot| slot.reload.as_mut()) {
            reload.stage = stage;
        }
    }

    /// Ends the reload and answers its asker. `Ok` says whether the extension has changed.
    fn finish(&mut self, index: usize, result: Result<bool, String>) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        let Some(Reload { asker, stage, .. }) = slot.reload.take() else { return };
        let id = slot.unit.id().clone();
        if matches!(stage, Stage::Trial(Some(_))) {
            // The version before no longer comes back, so subscriptions without a grant can end.
            self.parts.bus.renew_subscriptions(&slot.unit.version().peer);
        }
        if result == Ok(true) {
            self.parts.logs.write(
                &id.as_str().into(),
                Level::Info,
                Source::Main,
                "reloaded",
                std::iter::empty(),
            );
        }
        match asker {
            Asker::Configuration => self.reloaded(index, result),
            Asker::Restart(replies) => {
                let reason = result.err().unwrap_or_default();
                answer(replies, || Err(ControlError::NotStarted { id: id.clone(), reason: reason.clone() }));
            }
            Asker::One(reply) => answer([reply], || match &result {
                Ok(_) => Ok(()),
                Err(reason) => Err(ControlError::NotReloaded { id: id.clone(), reason: reason.clone() }),
            }),
        }
    }
}
