//! Versions on probation: what they do is counted while they run, and one that does not hold gives way to the version
//! before.
//!
//! [`weir_versions`] keeps the versions and judges them. Here is when it is asked, and what follows. Of several instances
//! of an extension, the last is the canary: it runs a new version first, and is observed alone. Otherwise all are of one
//! version, and the first is observed for all.

#[cfg(test)]
mod tests;

use std::{io::Write, sync::Arc, time::Duration};

use tokio::time::Instant;
use weir_config::{ArtifactHash, ExtensionConfig, UpdateConfig};
use weir_guest::{Admission, Exit, LoadError, LoadFault, LoadRequest, OpenComponent, Programs};
use weir_logs::{Level, Source};
use weir_names::{ExtensionId, chain};
use weir_reports::{ExtensionState, Standing, VersionChange, VersionFigures};
use weir_versions::{Chosen, Form, Found, VersionError, Versions};

use super::{
    ControlError, Done, Ended, LifecycleEvent, OrderReply, RollBack, Supervisor, answer,
    reload::{Asker, Tenure},
    slots::Slot,
};
use crate::{events::MainEvent, roster::on_the_bus};

/// The figures of this part of its time, in which a version has just started, are not counted.
const WARM_UP: u32 = 64;

/// The longest time in which they are not counted.
const LONGEST_WARM_UP: Duration = Duration::from_secs(60);

/// How long the disk may take to write down what is known of versions.
const SAVE: Duration = Duration::from_secs(60);

/// What is counted of a version while one of its instances runs.
#[derive(Debug)]
pub(super) struct Observation {
    number: u64,
    /// Whether this is one of several instances, which tries the version alone.
    is_canary: bool,
    /// Since when time and figures are not counted yet.
    since: Instant,
    /// The figures of the extension then.
    before: VersionFigures,
    /// Until when figures are not counted: requests that end before may have waited for the start.
    warm: Instant,
    /// When the version is looked at next: at the end of its first moments, and while it is on probation.
    pub(super) look: Option<Instant>,
}

/// The configured component as it was opened, for its versions.
#[must_use]
pub fn found(component: &OpenComponent) -> Found {
    let signature = component.signature().map(|signature| signature.text().into());
    Found { hash: component.hash(), signature, must_be_newer: component.must_be_newer() }
}

/// Chooses what an extension with this configuration runs now.
pub(super) async fn choose(
    programs: &Programs,
    versions: Arc<Versions>,
    configured: Arc<ExtensionConfig>,
    again: bool,
) -> Result<Chosen, LoadError> {
    let (extension, admission) = (configured.clone(), programs.admission().clone());
    let choose = move |mut opened: Result<OpenComponent, LoadError>| {
        let found = opened.as_ref().map(found).map_err(|error| chain(error));
        let copy = |to: &mut dyn Write| match &mut opened {
            Ok(component) => component.copy_to(to).map_err(|error| chain(&error)),
            Err(error) => Err(chain(error)),
        };
        let chosen = versions.choose(&extension, found, copy, &|it| form_of(it, &admission), again);
        match opened {
            // What may be there by now was compared with no proven version.
            Err(error) if chosen.number.is_none() => Err(error),
            _ => Ok(chosen),
        }
    };
    let chosen = programs.look_at(configured.clone(), choose).await??;
    if let Some(reason) = chosen.refused {
        return Err(LoadFault::Older(reason).of(LoadRequest::from(&*configured).origin(), chosen.hash));
    }
    if let Some(reason) = &chosen.not_kept {
        tracing::error!(extension = %configured.id, "its versions are not kept: {reason}");
    }
    Ok(chosen)
}

/// Reads what the component of an extension says of its data, with its hash.
pub(super) fn form_of(
    extension: &ExtensionConfig,
    admission: &Admission,
) -> Result<(ArtifactHash, Form), String> {
    let mut component = OpenComponent::of(extension, &admission.rules()).map_err(|error| chain(&error))?;
    let stated = component.data_statement().map_err(|error| chain(&error))?;
    let form = Form::new(stated.version.as_deref(), stated.data_since.as_deref());
    Ok((component.hash(), form.map_err(|error| error.to_string())?))
}

impl Supervisor {
    /// Returns the extension whose versions this one's are, and how they prove themselves. None without `update`.
    pub(super) fn versioned(&self, index: usize) -> Option<(usize, ExtensionId, UpdateConfig)> {
        let config = &self.slots.get(index)?.config;
        let update = config.update.clone()?;
        let id = config.copy_of.clone().unwrap_or_else(|| config.id.clone());
        Some((self.slots.find_ever(&id)?, id, update))
    }

    /// Begins to count what the present version does, now that it is ready.
    pub(super) fn observe(&mut self, index: usize) {
        let Some((first, id, update)) = self.versioned(index) else {
            if let Some(slot) = self.slots.get_mut(index) {
                slot.observation = None;
                slot.unit.set_serving(None);
            }
            return;
        };
        let runs = |slot: &Slot| Some((slot.config.clone(), slot.current.as_ref()?.version.clone()));
        let Some((config, version)) = self.slots.get(index).and_then(runs) else { return };
        let Some(number) = version.number() else { return };
        let is_canary = self.parts.versions.serves(&config, number, version.peer.is_canary());
        version.note_chosen(Some(number), is_canary);
        self.show_version(first, &id);
        if self.parts.versions.came_back(&config, number) {
            self.save(index, None);
        }
        self.count(index);
        if let Some(slot) = self.slots.get_mut(index) {
            slot.observation = None;
        }
        if !is_canary && first != index {
            return;
        }
        let (before, now) = (self.figures(index, is_canary), Instant::now());
        let warm = now + (update.prove_for / WARM_UP).min(LONGEST_WARM_UP);
        let look = self.parts.versions.next_look(&id, number, &update);
        let look = Some(look.map_or(warm, |time| warm.min(now + time)));
        if let Some(slot) = self.slots.get_mut(index) {
            slot.observation = Some(Observation { number, is_canary, since: now, before, warm, look });
        }
    }

    fn figures(&self, index: usize, is_canary: bool) -> VersionFigures {
        let Some(slot) = self.slots.get(index) else { return VersionFigures::default() };
        let operations = self.parts.bus.operations_of(&slot.unit.version().peer, is_canary);
        // Two versions for a while have one sum.
        let is_alone = slot.runs().count() == 1;
        VersionFigures::of(operations, if is_alone { slot.unit.usage.memory.now() } else { 0 })
    }

    /// Counts what the observed version has done since the last time.
    pub(super) fn count(&mut self, index: usize) {
        let observation = self.slots.get(index).and_then(|slot| slot.observation.as_ref());
        let Some(is_canary) = observation.map(|it| it.is_canary) else { return };
        let (figures, now) = (self.figures(index, is_canary), Instant::now());
        let Some((_, id, _)) = self.versioned(index) else { return };
        let Some(observation) = self.slots.get_mut(index).and_then(|slot| slot.observation.as_mut()) else {
            return;
        };
        let done = match observation.since < observation.warm {
            true => VersionFigures { memory: figures.memory, ..VersionFigures::default() },
            false => figures.since(&observation.before),
        };
        self.parts.versions.count(&id, observation.number, now - observation.since, &done);
        (observation.since, observation.before) = (now, figures);
    }

    /// Counts what the instances of an extension have done since the last time: the canary, and the version before.
    pub(super) fn count_all(&mut self, index: usize) {
        if self.versioned(index).is_none() {
            return;
        }
        for index in self.slots.sharing(index) {
            self.count(index);
        }
    }

    /// Ends the observation of an instance that ends, and writes down what was counted.
    pub(super) fn end_observation(&mut self, index: usize) {
        self.count(index);
        if self.slots.get_mut(index).and_then(|slot| slot.observation.take()).is_some() {
            self.save(index, None);
        }
    }

    /// Looks at the versions on probation whose time for that has come.
    pub(super) fn look(&mut self) {
        let now = Instant::now();
        let is_due =
            |slot: &Slot| slot.observation.as_ref().and_then(|it| it.look).is_some_and(|look| look <= now);
        for index in self.slots.those(is_due) {
            self.count_all(index);
            let versioned = self.versioned(index);
            let Some(slot) = self.slots.get_mut(index) else { continue };
            let (Some((_, id, update)), Some(observation)) = (versioned, &mut slot.observation) else {
                // `update` was taken away.
                slot.observation = None;
                continue;
            };
            let change = self.parts.versions.judge(&id, observation.number, &update);
            let next = self.parts.versions.next_look(&id, observation.number, &update);
            // A look that the disk or a busy processor delays does not come again at once.
            observation.look = next.map(|time| now + time.max(Duration::from_millis(1)));
            match change {
                Some(change) => self.decided(index, &change, None),
                None if next.is_some() => self.save(index, None),
                None => {}
            }
        }
    }

    /// Refuses a version on probation that did not come up. The version before runs, or comes up again by itself.
    pub(super) fn refuse(&mut self, index: usize, number: Option<u64>, reason: &str) {
        if let (Some((first, id, update)), Some(number)) = (self.versioned(index), number)
            && let Some(change) =
                self.parts.versions.refuse(&id, number, &update, &format!("it did not come up: {reason}"))
        {
            self.record_change(first, &change);
            self.save(first, None);
            for other in self.slots.sharing(first).into_iter().filter(|other| *other != index) {
                self.go_back(other, None);
            }
        }
    }

    /// Acts on a change: records it, writes it down, and makes the other version serve if this one is refused.
    pub(super) fn decided(&mut self, index: usize, change: &VersionChange, reply: Option<OrderReply>) {
        let Some((first, _, _)) = self.versioned(index) else { return };
        self.record_change(first, change);
        if change.standing != Standing::Refused {
            self.save(first, reply);
            return self.follow(first, None, change.version);
        }
        self.save(first, None);
        let (mut reply, sharing) = (reply, self.slots.sharing(first));
        let runs = |index: &&usize| self.slots.get(**index).and_then(|slot| slot.unit.version().number());
        // The answer comes once the version is gone.
        let last = sharing.iter().find(|index| runs(index) == Some(change.version)).copied().unwrap_or(first);
        for index in sharing {
            let reply = if index == last { reply.take() } else { None };
            self.go_back(index, reply);
        }
    }

    /// Makes the instances that share an inbox run the version that one of them has proved, each after the one before:
    /// all, or those after this one.
    pub(super) fn follow(&mut self, index: usize, after: Option<usize>, number: u64) {
        let all = self.slots.sharing(index);
        let done =
            after.and_then(|after| all.iter().position(|other| *other == after)).map_or(0, |at| at + 1);
        for other in all.into_iter().skip(done) {
            let Some(slot) = self.slots.get_mut(other) else { continue };
            let version = slot.unit.version();
            if version.number() == Some(number) {
                version.note_chosen(Some(number), false);
            } else if slot.reload.is_none() && slot.current.is_some() && !self.shutting_down {
                let configured = slot.unit.configured();
                return self.load(other, configured, Asker::Canary(number), false);
            } else {
                self.go_back(other, None);
            }
        }
    }

    /// Returns the instance that tries new versions in place of this one, if it neither runs nor is on its way.
    pub(super) fn idle_canary(&self, index: usize) -> Option<ExtensionId> {
        let slot = self.slots.get(index)?;
        let canary = slot.config.canary.clone().filter(|canary| canary != slot.unit.id())?;
        let runs = |slot: &Slot| {
            let comes = slot.life.is_coming() || slot.life.state() == ExtensionState::BackingOff;
            slot.life.is_there() || comes || slot.reload.is_some()
        };
        self.slots
            .find(&canary)
            .and_then(|it| self.slots.get(it))
            .is_none_or(|it| !runs(it))
            .then_some(canary)
    }

    /// Makes an extension run what its versions say now, because its present version was refused.
    pub(super) fn go_back(&mut self, index: usize, reply: Option<OrderReply>) {
        if self.shutting_down {
            return answer(reply, || Err(ControlError::ShuttingDown));
        }
        let Some(slot) = self.slots.get_mut(index) else { return };
        let configured = slot.unit.configured();
        if slot.reload.is_some() {
            // The reload under way asks anew once it ends.
            slot.goes_back = true;
            return self.save(index, reply);
        }
        slot.goes_back = false;
        if slot.current.is_some() {
            return self.load(index, configured, Asker::Versions(reply), false);
        }
        // The next start asks what to run.
        slot.unit.version().forget_program();
        slot.due = None;
        let has_failed = matches!(
            slot.life.state(),
            ExtensionState::BackingOff | ExtensionState::Failed | ExtensionState::Quarantined
        );
        if has_failed {
            let step = slot.apply(LifecycleEvent::Restart);
            self.come_again(index, step);
        }
        if reply.is_some() {
            self.save(index, reply);
        }
    }

    /// Judges the version of an instance that has ended, if that was a failure. Returns the change if the version is
    /// refused because of it. A reload on trial has its own way back.
    pub(super) fn fails(&mut self, index: usize, ended: &Ended) -> Option<VersionChange> {
        let (_, id, update) = self.versioned(index)?;
        let (slot, number) = (self.slots.get(index)?, ended.run.version.number()?);
        let (exit, state) = (&ended.end.exit, slot.life.state());
        let is_no_fault = matches!(exit, Exit::Finished | Exit::Hindered { .. } | Exit::Killed(_));
        if is_no_fault || state == ExtensionState::Draining || slot.life.is_on_trial() {
            return None;
        }
        let versions = &self.parts.versions;
        // A version that was refused, and runs for want of another, does not come again by itself.
        if versions.standing(&id, number) == Some(Standing::Refused) {
            ended.run.version.forget_program();
            return None;
        }
        let is_its_fault = ended.end.is_hopeless || ended.run.version.program().is_some();
        if state == ExtensionState::Starting && is_its_fault {
            let change = versions.refuse(&id, number, &update, &format!("it did not come up: {exit}"));
            if change.is_some() {
                ended.run.version.forget_program();
                return change;
            }
        }
        versions.count_failure(&id, number);
        let change = versions.judge(&id, number, &update);
        if change.is_some() {
            ended.run.version.forget_program();
        }
        change
    }

    /// Refuses the version on probation of an instance that has failed so often that it does not come again.
    pub(super) fn fails_for_good(&self, index: usize, ended: &Ended) -> Option<VersionChange> {
        let (_, id, update) = self.versioned(index)?;
        let number = ended.run.version.number().filter(|_| ended.end.exit != Exit::Finished)?;
        let reason = "it failed so often that it was quarantined";
        let change = self.parts.versions.refuse(&id, number, &update, reason)?;
        ended.run.version.forget_program();
        Some(change)
    }

    /// Starts what an extension is to run instead of the version that was about to start.
    pub(super) fn run_instead(&mut self, index: usize, chosen: &Chosen) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        slot.unit.uncount_start();
        slot.apply(LifecycleEvent::Instead);
        self.install_instead(index, chosen);
        self.set_state(index, ExtensionState::Loaded, None);
    }

    /// Makes what was chosen the version of the next instance, in place of the configured one.
    pub(super) fn install_instead(&mut self, index: usize, chosen: &Chosen) {
        let main = self.parts.roster.main();
        let Some(slot) = self.slots.get(index) else { return };
        let unit = slot.unit.clone();
        if let Some(reason) = &chosen.held_back {
            let text = match chosen.number {
                Some(number) => format!("version {number} runs in place of the configured one: {reason}"),
                None => reason.clone(),
            };
            let name = unit.id().as_str().into();
            self.parts.logs.write(&name, Level::Warn, Source::Main, &text, std::iter::empty());
        }
        let (limits, access) = on_the_bus(&chosen.config, &main);
        let peer = unit.version().peer.renewed(limits, access);
        let next = unit.next_version(chosen.config.clone(), peer, None);
        self.install(index, &next, Tenure::ForGood);
    }

    /// Takes the version that has come up for proven, because the reload was to be final.
    pub(super) fn prove(&mut self, index: usize) {
        let Some((first, id, _)) = self.versioned(index) else { return };
        if !self.slots.get(index).is_some_and(|slot| slot.life.is_there()) {
            return;
        }
        // Fails if it was proven before, and then nothing changes.
        if let Ok(change) = self.parts.versions.accept(&id, "it was reloaded without probation") {
            // Other instances are reloaded by the same order.
            self.record_change(first, &change);
            self.save(first, None);
        }
    }

    /// Shows the version that runs in the status of the extension.
    fn show_version(&self, first: usize, id: &ExtensionId) {
        for index in self.slots.sharing(first) {
            if let Some(slot) = self.slots.get(index) {
                let number = slot.unit.version().number();
                slot.unit.set_serving(self.parts.versions.serving(id, number));
            }
        }
    }

    /// Tells of a change in the log, the history and the events.
    fn record_change(&self, index: usize, change: &VersionChange) {
        let Some(slot) = self.slots.get(index) else { return };
        self.show_version(index, slot.unit.id());
        let VersionChange { version, standing, serves, reason, .. } = change;
        let (level, text) = match standing {
            Standing::Refused => {
                (Level::Warn, format!("version {version} is refused, and version {serves} serves: {reason}"))
            }
            _ => (Level::Info, format!("version {version} is {standing}: {reason}")),
        };
        let mut fields = vec![
            ("version".to_owned(), version.to_string()),
            ("requests".to_owned(), change.requests.to_string()),
            ("failed".to_owned(), change.failed.to_string()),
            ("memory".to_owned(), change.memory.to_string()),
        ];
        fields.extend(change.p99.map(|time| ("p99".to_owned(), format!("{time:?}"))));
        let name = slot.unit.id().as_str().into();
        self.parts.logs.write(&name, level, Source::Main, &text, fields.into_iter());
        slot.unit.version_changed(change);
        let event = MainEvent::Version { extension: slot.unit.id().clone(), change: change.clone() };
        // Fails only if nobody listens.
        let _nobody = self.parts.events.send(event.into());
    }

    /// Writes down what is known of an extension's versions, and then answers.
    pub(super) fn save(&mut self, index: usize, reply: Option<OrderReply>) {
        let Some((_, id, _)) = self.versioned(index) else { return };
        let (versions, saved) = (self.parts.versions.clone(), id.clone());
        self.tasks.spawn(async move {
            let save = tokio::task::spawn_blocking(move || versions.save(&id));
            let result = match tokio::time::timeout(SAVE, save).await {
                Ok(Ok(result)) => result,
                Ok(Err(error)) => Err(VersionError::NotSaved(error.to_string())),
                Err(_) => Err(VersionError::NotSaved(format!("the disk takes longer than {SAVE:?}"))),
            };
            Done::Saved(Box::new((saved, result, reply)))
        });
    }

    /// Says that what is known of versions could not be written down.
    pub(super) fn saved(
        &self,
        id: &ExtensionId,
        result: Result<(), VersionError>,
        reply: Option<OrderReply>,
    ) {
        if let Err(error) = &result {
            self.parts.logs.write(
                &id.as_str().into(),
                Level::Error,
                Source::Main,
                &error.to_string(),
                std::iter::empty(),
            );
        }
        answer(reply, || result.clone().map_err(ControlError::Version));
    }

    pub(super) fn accept(&mut self, index: usize, reply: OrderReply) {
        if self.shutting_down {
            return answer([reply], || Err(ControlError::ShuttingDown));
        }
        let Some((first, id, _)) = self.versioned(index) else {
            return answer([reply], || Err(self.without_versions(index)));
        };
        self.count_all(first);
        match self.parts.versions.accept(&id, "an operator accepted it") {
            Ok(change) => self.decided(first, &change, Some(reply)),
            Err(error) => answer([reply], || Err(ControlError::Version(error.clone()))),
        }
    }

    pub(super) fn roll_back(&mut self, index: usize, RollBack { to, data_too }: RollBack, reply: OrderReply) {
        let Some((first, id, _)) = self.versioned(index) else {
            return answer([reply], || Err(self.without_versions(index)));
        };
        self.count_all(first);
        match self.parts.versions.roll_back(&id, to, data_too, "an operator rolled it back") {
            Ok(change) => self.decided(first, &change, Some(reply)),
            Err(error) => answer([reply], || Err(ControlError::Version(error.clone()))),
        }
    }

    fn without_versions(&self, index: usize) -> ControlError {
        let id = self.slots.get(index).map(|slot| slot.unit.id().clone());
        id.map_or(ControlError::Unknown(String::new()), |id| ControlError::Version(VersionError::None(id)))
    }
}
