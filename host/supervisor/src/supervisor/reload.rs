//! The reload of one extension. The new version loads while the old one serves, and then takes its place. If the new
//! version does not come up, the old one serves again.

mod outcome;
mod overlap;

use std::sync::Arc;

use tokio::sync::oneshot;
use weir_bus::Parent;
use weir_config::{ExtensionConfig, ReloadMode};
use weir_guest::{Exit, LoadFault, LoadRequest, Loaded, Values};
use weir_reports::ExtensionState;
use weir_versions::{Chosen, Crossing};

use super::{
    ControlError, Done, LifecycleEvent, OrderReply, Supervisor, answer, run::End, versions::choose,
    waiting::Alternative,
};
use crate::roster::{Version, on_the_bus};

/// The topic of an event that tells an extension which of its values have changed.
const CONFIG_CHANGED: &str = "config.changed";

#[derive(Debug)]
pub(super) struct Reload {
    number: u64,
    stage: Stage,
    asker: Asker,
    /// Whether the version is proven once it is ready.
    is_final: bool,
    /// Why another version is loaded than the configured one.
    held_back: Option<String>,
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
    /// The present version was refused. An operator may have asked for that.
    Versions(Option<OrderReply>),
    /// Another instance has proved the version with this number, which the others run in turn.
    Canary(u64),
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
    /// What is loaded, by its versions.
    chosen: Chosen,
    /// Whether the instance is replaced even if nothing has changed.
    always: bool,
    /// The program of the instances, and the values that they read.
    loaded: Result<(Loaded, Arc<Values>), End>,
}

impl Reload {
    pub(super) fn is_asked_for(&self) -> bool {
        matches!(self.asker, Asker::One(_) | Asker::Configuration)
    }

    /// Whether the present version was refused without an order.
    pub(super) fn is_of_itself(&self) -> bool {
        matches!(self.asker, Asker::Versions(None))
    }

    pub(super) fn is_beside(&self) -> bool {
        matches!(self.stage, Stage::Beside)
    }
}

impl Supervisor {
    /// Loads the component anew. If it `is_final`, it may have been refused, and is proven once it is ready.
    pub(super) fn reload(&mut self, index: usize, is_final: bool, reply: OrderReply) {
        let Some(slot) = self.slots.get(index) else { return };
        if self.shutting_down {
            return answer([reply], || Err(ControlError::ShuttingDown));
        }
        if slot.reload.is_some() {
            return answer([reply], || Err(ControlError::Reloading(format!("`{}`", slot.unit.id()))));
        }
        let config = slot.unit.configured();
        self.load_as(index, config, Asker::One(reply), true, is_final);
    }

    /// Begins a reload: loads what the configuration names. The caller has made sure that no other reload is under way.
    pub(super) fn load(&mut self, index: usize, config: Arc<ExtensionConfig>, asker: Asker, always: bool) {
        self.load_as(index, config, asker, always, false);
    }

    fn load_as(
        &mut self,
        index: usize,
        config: Arc<ExtensionConfig>,
        asker: Asker,
        always: bool,
        is_final: bool,
    ) {
        self.runs += 1;
        let number = self.runs;
        let Some(slot) = self.slots.get_mut(index) else { return };
        let (mut unwanted, wanted) = oneshot::channel();
        let (stage, held_back) = (Stage::Loading, None);
        slot.reload = Some(Reload { number, stage, asker, is_final, held_back, _wanted: wanted });
        slot.unit.set_configured(&config);
        let (programs, openings) = (self.parts.programs.clone(), self.parts.openings.clone());
        let versions = self.parts.versions.clone();
        programs.read_again(&config.component);
        self.tasks.spawn(async move {
            let origin = LoadRequest::from(&*config).origin();
            let mut chosen = Chosen::configured(&config);
            let load = async {
                if config.update.is_some() {
                    let choice = choose(&programs, versions, config.clone(), is_final).await;
                    chosen = choice.map_err(|error| End::not_loaded(&error))?;
                }
                let config = &chosen.config;
                let mut wanted = LoadRequest::from(&**config);
                wanted.sha256 = chosen.hash.or(wanted.sha256);
                let loaded = programs.load(wanted).await.map_err(|error| End::not_loaded(&error))?;
                let timeout = config.limits.ready_timeout;
                let values = tokio::time::timeout(timeout, openings.values(config)).await;
                let late = || {
                    let late = Exit::NotReady(timeout);
                    Exit::Hindered { reason: format!("its secrets could not be read: {late}"), limit: None }
                };
                let values = values.unwrap_or_else(|_| Err(late())).map_err(End::of)?;
                Ok((loaded, values))
            };
            let loaded = tokio::select! {
                loaded = load => loaded,
                () = unwanted.closed() => Err(End::not_loaded(&LoadFault::CutOff.of(origin, None))),
            };
            Done::Loaded(Box::new(LoadedAnew { number, index, chosen, always, loaded }))
        });
    }

    /// Acts on the outcome of a load: ends the reload, tells the extension its new values, or replaces its instance.
    pub(super) fn loaded(&mut self, LoadedAnew { number, index, chosen, always, loaded }: LoadedAnew) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        let slot_config = slot.config.clone();
        if slot.reload.as_ref().is_none_or(|reload| reload.number != number) {
            // This reload was given up meanwhile.
            return;
        }
        if self.shutting_down {
            return self.finish(index, Err("main is shutting down".to_owned()));
        }
        if let Some(replies) = self.take_restart(index) {
            // What another configuration is to run under is chosen again at the start.
            let is_same = *chosen.config == *slot_config;
            let loaded = loaded.ok().filter(|_| is_same).map(|(loaded, _)| (loaded, chosen));
            return self.begin_restart(index, replies, loaded);
        }
        let Chosen { mut config, number: version, is_canary, hash, held_back, .. } = chosen;
        let is_refused = self.slots.get(index).is_some_and(|slot| self.is_refused(slot));
        let Some(slot) = self.slots.get_mut(index) else { return };
        let (mut always, is_elsewhere) = (always, !Arc::ptr_eq(&config, &slot.unit.configured()));
        if is_elsewhere && version.is_some() && slot.unit.version().number() == version {
            // What runs already stays where it was loaded from.
            let same = Arc::make_mut(&mut config);
            same.component.clone_from(&slot.config.component);
            same.sha256 = slot.config.sha256;
            // Another instance tries the new version, and only new values are for this one.
            always &= held_back.is_some();
        }
        let waits = is_elsewhere && held_back.is_none();
        if let Some(canary) = self.idle_canary(index).filter(|_| waits) {
            let reason =
                format!("`{canary}` tries new versions, and does not run: start it, or reload with --now");
            return self.finish(index, Err(reason));
        }
        let Some(slot) = self.slots.get_mut(index) else { return };
        if let Some(reload) = &mut slot.reload {
            reload.held_back =
                held_back.filter(|_| !matches!(reload.asker, Asker::Versions(_) | Asker::Canary(_)));
            // What does not run changes nothing that does.
            if reload.held_back.is_some() && slot.life.is_there() && !is_refused {
                return self.finish(index, Ok(false));
            }
        }
        if let Some(reason) = self.against_its_data(index, &config, version) {
            return self.finish(index, Err(reason));
        }
        let changes_data = self.parts.versions.crossing(&config, version, hash) == Crossing::Alone;
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
                if end.is_hopeless && matches!(end.exit, Exit::Start { .. }) {
                    self.refuse(index, version, &end.exit.to_string());
                }
                let Some(slot) = self.slots.get(index) else { return };
                let serves = slot.what_serves_on(is_refused);
                return self.finish(index, Err(format!("{}{serves}", end.exit)));
            }
        };
        // A version that is not loaded yet loads the same file.
        let is_same = |kept: Loaded| kept.program.hash == loaded.program.hash;
        let is_same =
            !always && now.program().is_none_or(is_same) && config.runs_as_but_for_config(&now.config);
        if is_same {
            now.keep(loaded.clone()); // It may have been signed again.
        }
        let changes = now.settings.changes(&values);
        let is_unchanged = changes.as_ref().map_or_else(|| config.runs_as(&now.config), Vec::is_empty);
        if is_same && is_unchanged {
            let has_changed = self.retune(index, config);
            self.renumber(index, version, is_canary);
            return self.finish(index, Ok(has_changed));
        }
        if !always {
            self.note_configured(index);
        }
        if is_same && self.tell(index, &values, &changes.unwrap_or_default()) {
            let _told = self.retune(index, config);
            self.renumber(index, version, is_canary);
            return self.finish(index, Ok(true));
        }
        let (limits, access) = on_the_bus(&config, &self.parts.roster.main());
        let (mode, missing) = (config.reload, self.missing(&config));
        let next = unit.next_version(config, now.peer.renewed(limits, access), Some(loaded));
        next.note_chosen(version, is_canary);
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
            // Data changes while nobody uses it.
            ExtensionState::Ready | ExtensionState::Interrupted
                if mode == ReloadMode::Overlap && is_kept && !changes_data =>
            {
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

    /// Gives the running version another number, under which it is observed from now on.
    fn renumber(&mut self, index: usize, number: Option<u64>, is_canary: bool) {
        let Some(slot) = self.slots.get(index) else { return };
        let version = slot.unit.version();
        if (version.number(), version.peer.is_canary()) != (number, is_canary) {
            version.note_chosen(number, is_canary);
            self.observe(index);
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
        slot.alternative = Alternative::Unknown;
        slot.unit.set_version(version.clone());
        match tenure {
            Tenure::ForGood => self.parts.bus.replace(&version.peer, true),
            Tenure::OnTrial => self.parts.bus.replace_on_trial(&version.peer),
            Tenure::Back => self.parts.bus.replace(&version.peer, false),
        }
        let contracts = |config: &ExtensionConfig| {
            [config.fulfills.clone(), config.requires.clone(), config.wanted().cloned().collect()]
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

    fn set_stage(&mut self, index: usize, stage: Stage) {
        if let Some(reload) = self.slots.get_mut(index).and_then(|slot| slot.reload.as_mut()) {
            reload.stage = stage;
        }
    }
}
