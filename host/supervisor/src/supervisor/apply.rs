//! The reload of the whole configuration: stops removed extensions, starts new ones, replaces changed ones, and
//! leaves the rest alone. All at once, or stage by stage.

mod refused;
mod stages;
mod summary;
mod wanted;

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use weir_config::{Config, Effect, ExtensionConfig, MainConfig, TableDifference};
use weir_guest::Rules;
use weir_names::{ContractName, ExtensionId};
use weir_reports::ExtensionState;

use self::stages::Waiting;
pub use self::{stages::Holds, wanted::WantedConfig};
use super::{
    ControlError, Done, OrderReplyTo, Supervisor, answer, order,
    reload::{Asker, Tenure},
    slots::Slot,
};
use crate::{
    check_mappings,
    events::MainEvent,
    roster::{configure_traces, configure_traffic, on_the_bus},
};

/// The outcome of a configuration reload. Extensions that it does not name are as they were.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct ReloadReport {
    /// New extensions.
    pub added: Vec<ExtensionId>,
    /// Extensions no longer configured, which have ended.
    pub removed: Vec<ExtensionId>,
    /// Changed extensions. Those that run have the change already, and the others start with it.
    pub changed: Vec<ExtensionId>,
    /// New extensions that did not come up, and changed ones that were not reloaded or, in stages, do not hold.
    pub failed: Vec<NotReloaded>,
    /// The stage, from 1, at which a reload in stages ended before all was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_at: Option<usize>,
    /// The extensions of later stages, which are as they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_reached: Vec<ExtensionId>,
    /// Changed tables beside Main and the extensions that hold from now on, as in `queue.uploads`.
    #[serde(default)]
    pub tables: Vec<String>,
    /// Possible mistakes in the configuration, from [`Config::warnings`].
    pub warnings: Vec<String>,
    /// Changed keys of `[main]` that take effect when Main is restarted.
    pub needs_restart: Vec<String>,
    /// Changed tables beside Main and the extensions that take effect when Main is restarted, as in `gateway`.
    #[serde(default)]
    pub tables_for_restart: Vec<String>,
    /// What changed in `[main]`, extensions and other tables, key by key. Extensions in `failed` are as they were.
    #[serde(default)]
    pub differences: Vec<TableDifference>,
}

/// An extension that did not come up as configured now, or could not be reloaded.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct NotReloaded {
    /// The extension.
    pub extension: ExtensionId,
    /// Why, and what serves now.
    pub reason: String,
}

/// A change of the configuration that waits for another one, with its asker.
pub(super) type WaitingChange = (WantedConfig, Arc<str>, OrderReplyTo<ReloadReport>);

/// How many changes may wait.
const WAITING_CHANGES: usize = 64;

#[derive(Debug)]
pub(super) struct Applying {
    by: Arc<str>,
    reply: OrderReplyTo<ReloadReport>,
    /// When a stage holds. None if there are no stages, so that all extensions are of the first.
    holds: Option<Holds>,
    /// The extension that changes alone, with its copies.
    only: Option<ExtensionId>,
    /// The configured extensions, in the order of the configuration.
    configured: Vec<Arc<ExtensionConfig>>,
    /// The stages of extensions, from 1.
    stages: HashMap<ExtensionId, usize>,
    /// The present stage. All lists below are of this stage.
    stage: usize,
    part: Part,
    removed: Vec<usize>,
    /// Removed extensions that were not told to stop yet.
    unstopped: Vec<usize>,
    /// For each removed extension, the extensions that it stops before.
    after: Vec<(usize, Vec<usize>)>,
    /// Extensions that were not configured before, though perhaps earlier.
    added: Vec<usize>,
    /// Extensions that stay configured, each with its new configuration.
    kept: Vec<(usize, Arc<ExtensionConfig>)>,
    /// Extensions whose reload is under way.
    pending: BTreeSet<usize>,
    /// Extensions that have come up as they are configured now, and the versions that they run.
    up: Vec<(usize, Option<u64>)>,
    waiting: Option<Waiting>,
    report: ReloadReport,
}

/// What is done now. Each stage has all parts but the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Reading,
    /// Removed extensions stop first, because a new extension may use their files.
    Removing,
    /// New extensions start before others change, because a changed extension may require a new one.
    Adding,
    Changing,
    /// New extensions that require a changed one start last.
    AddingLast,
    /// The next stage begins once all changed extensions of this one hold.
    Holding,
}

impl Supervisor {
    pub(super) fn configure(
        &mut self,
        wanted: WantedConfig,
        holds: Option<Holds>,
        by: Arc<str>,
        reply: OrderReplyTo<ReloadReport>,
    ) {
        if reply.is_closed() {
            return;
        }
        if self.shutting_down {
            return answer([reply], || Err(ControlError::ShuttingDown));
        }
        if let Some(applying) = &self.applying {
            let may_wait = wanted.only().is_some() && applying.holds.is_none();
            if may_wait && self.waiting.len() < WAITING_CHANGES {
                return self.waiting.push_back((wanted, by, reply));
            }
            return answer([reply], || Err(ControlError::Reloading("the configuration".to_owned())));
        }
        let file = self.parts.roster.file();
        if matches!(wanted, WantedConfig::File) && file.is_none() {
            return answer([reply], || Err(ControlError::NoFile));
        }
        self.applying = Some(Applying {
            by,
            reply,
            holds,
            only: wanted.only(),
            configured: Vec::new(),
            stages: HashMap::new(),
            stage: 1,
            part: Part::Reading,
            removed: Vec::new(),
            unstopped: Vec::new(),
            after: Vec::new(),
            added: Vec::new(),
            kept: Vec::new(),
            pending: BTreeSet::new(),
            up: Vec::new(),
            waiting: None,
            report: ReloadReport::default(),
        });
        // Set before the event is sent, so that a listener that missed the event can ask.
        self.parts.roster.set_reloading(true);
        let _nobody = self.parts.events.send(MainEvent::Reloading.into());
        let is_of_one = wanted.only().is_some();
        let (admission, roster) = (self.parts.programs.admission().clone(), self.parts.roster.clone());
        // Files may be slow, and checks take time.
        self.tasks.spawn_blocking(move || {
            let read = wanted.read(file, &roster).and_then(|config| {
                if is_of_one {
                    return Ok((config, None));
                }
                let rules = admission.read(&config.main);
                Ok((config, Some(rules.map_err(|error| ControlError::NotConfigured(error.to_string()))?)))
            });
            Done::Read(Box::new(read))
        });
    }

    /// Goes on with the new configuration once it was read and checked, or refuses it.
    pub(super) fn read(&mut self, read: Result<(Config, Option<Rules>), ControlError>) {
        let (config, rules) = match read {
            Ok(read) => read,
            Err(refused) => return self.end_applying(Some(refused)),
        };
        if let Some(reason) = refusal(&self.parts.roster.main(), &config) {
            return self.end_applying(Some(ControlError::NotConfigured(reason)));
        }
        if self.shutting_down {
            return self.end_applying(Some(ControlError::ShuttingDown));
        }
        if let Some(rules) = rules {
            self.parts.programs.admission().set(rules);
        }
        self.plan(config);
    }

    /// Puts all of the new configuration but its extensions into effect, and begins with these.
    fn plan(&mut self, config: Config) {
        let Some(mut applying) = self.applying.take() else { return };
        let before = self.parts.roster.main();
        let running = self.parts.roster.rest();
        applying.report.warnings = config.warnings();
        applying.report.needs_restart = needs_restart(&before, &config.main);
        let tables = running.table_differences(&config);
        let of = |effect: Effect| {
            tables.iter().filter(move |it| it.takes_effect == effect).map(|it| it.table.clone())
        };
        applying.report.tables = of(Effect::AtOnce).collect();
        applying.report.tables_for_restart = of(Effect::Restart).collect();
        applying.report.differences = before.table_differences(&config.main);
        applying.report.differences.extend(tables);
        configure_traffic(&self.parts.bus, &config);
        self.parts.sections.iter().for_each(|section| section.act(&config));
        let mut rest = config.beside_extensions();
        rest.keep_until_restart(&running);
        let (main, extensions) = config.into_parts();
        let mut kept = (*before).clone();
        kept.apply(&main);
        configure_traces(&self.parts.bus, &kept);
        self.parts.roster.configure(Arc::new(kept), rest);
        applying.configured = extensions.into_iter().map(Arc::new).collect();
        if applying.holds.is_some() {
            let running = self.slots.iter().filter(|(_, slot)| slot.is_listed);
            let running: Vec<_> = running.map(|(_, slot)| slot.config.clone()).collect();
            applying.stages = order::stages(&running, &applying.configured);
        }
        self.applying = Some(applying);
        self.begin_stage();
        self.end_what_may_not_run();
    }

    /// Notes in the extension's history that the configuration reload under way changes it, and who asked for that.
    pub(super) fn note_configured(&self, index: usize) {
        if let (Some(applying), Some(slot)) = (&self.applying, self.slots.get(index)) {
            slot.unit.asked("reload", &applying.by);
        }
    }

    /// Gives an extension that does not run another version with this configuration. Its next start loads the
    /// component.
    fn exchange(&mut self, index: usize, config: Arc<ExtensionConfig>, main: &MainConfig) {
        let Some(slot) = self.slots.get(index) else { return };
        let (limits, access) = on_the_bus(&config, main);
        let peer = slot.unit.version().peer.renewed(limits, access);
        slot.unit.set_configured(&config);
        let next = slot.unit.next_version(config, peer, None);
        self.install(index, &next, Tenure::ForGood);
    }

    /// Goes on to the next part of the configuration reload once the present one is done.
    pub(super) fn go_on_applying(&mut self) {
        loop {
            self.stop_removed();
            let Some(applying) = &self.applying else { return };
            let slots = |indices: &[usize], is: fn(&Slot) -> bool| {
                indices.iter().filter_map(|index| self.slots.get(*index)).any(is)
            };
            let goes_on = match applying.part {
                Part::Reading => true,
                Part::Removing => {
                    !applying.unstopped.is_empty()
                        || slots(&applying.removed, |slot| slot.runs().next().is_some())
                }
                Part::Adding => slots(&applying.added, |slot| slot.life.is_coming()),
                Part::Changing => !applying.pending.is_empty(),
                Part::AddingLast => slots(&applying.added, |slot| slot.life.is_coming()),
                Part::Holding => self.is_open(),
            };
            if goes_on {
                return;
            }
            match applying.part {
                Part::Reading => return,
                Part::Removing => self.add(),
                Part::Adding => self.change(),
                Part::Changing => {
                    self.reconcile();
                    self.report_on(|applying| applying.part = Part::AddingLast);
                }
                Part::AddingLast => {
                    self.report_added();
                    self.begin_holding();
                    self.end_what_may_not_run();
                }
                Part::Holding => {
                    if !self.end_stage() {
                        return self.end_applying(None);
                    }
                }
            }
        }
    }

    /// Stops the removed extensions. A running one stops after the extensions that require or want it.
    fn stop_removed(&mut self) {
        let Some(Applying { removed, unstopped, after, .. }) = &mut self.applying else { return };
        if unstopped.is_empty() {
            return;
        }
        let runs = |index: &usize| self.slots.get(*index).is_some_and(|slot| slot.runs().next().is_some());
        let needed: BTreeSet<usize> =
            after.iter().filter(|(index, _)| runs(index)).flat_map(|(_, after)| after).copied().collect();
        // If the running ones require each other in a circle, as after a change of the configuration, all stop at once.
        let is_circle = removed
            .iter()
            .filter(|index| runs(index))
            .all(|index| unstopped.contains(index) && needed.contains(index));
        // An extension that does not run is stopped at once: it may wait for its start, and would start meanwhile.
        let (later, now): (Vec<usize>, Vec<usize>) = std::mem::take(unstopped)
            .into_iter()
            .partition(|index| runs(index) && needed.contains(index) && !is_circle);
        *unstopped = later;
        for index in now {
            self.stop(index, None);
        }
    }

    /// Takes the removed extensions off the bus, and starts the new ones.
    fn add(&mut self) {
        let Some(mut applying) = self.applying.take() else { return };
        for index in &applying.removed {
            if let Some(slot) = self.slots.get(*index) {
                self.parts.bus.retire(&slot.unit.version().peer);
                self.disconnect(*index);
                applying.report.removed.push(slot.unit.id().clone());
            }
        }
        let added = applying.added.clone();
        applying.part = Part::Adding;
        self.applying = Some(applying);
        if self.shutting_down {
            return;
        }
        for index in added {
            if self.slots.get(index).is_some_and(|slot| slot.config.autostart) {
                self.want(index);
            }
        }
        self.reconcile();
    }

    /// Begins to change the extensions that stay configured.
    fn change(&mut self) {
        let Some(mut applying) = self.applying.take() else { return };
        let kept = std::mem::take(&mut applying.kept);
        applying.part = Part::Changing;
        self.applying = Some(applying);
        if self.shutting_down {
            return;
        }
        let main = self.parts.roster.main();
        for (index, config) in kept {
            self.change_one(index, config, &main);
        }
    }

    fn report_added(&mut self) {
        let Some(applying) = &mut self.applying else { return };
        for index in &applying.added {
            let Some(slot) = self.slots.get(*index) else { continue };
            let id = slot.unit.id().clone();
            let is_idle = !slot.config.autostart;
            if slot.life.is_there() || is_idle {
                applying.report.added.push(id);
                let is_up = !is_idle || slot.life.is_there();
                applying.up.extend(is_up.then(|| (*index, slot.unit.version().number())));
            } else {
                let reason = slot.unit.status().reason.unwrap_or_else(|| slot.life.state().to_string());
                applying.report.failed.push(NotReloaded { extension: id, reason });
            }
        }
    }

    fn change_one(&mut self, index: usize, config: Arc<ExtensionConfig>, main: &MainConfig) {
        let Some(slot) = self.slots.get(index) else { return };
        let has_failed = matches!(slot.life.state(), ExtensionState::BackingOff | ExtensionState::Failed);
        // In stages, an extension that has failed starts again: what requires it changes only once it is up.
        let is_retried = has_failed && self.is_in_stages();
        let is_meant = self.applying.as_ref().is_some_and(|applying| applying.only.is_some());
        let is_to_run = slot.life.is_coming() || slot.life.state() == ExtensionState::BackingOff;
        let runs = slot.life.is_running() || is_to_run || is_retried;
        let is_same = config.runs_as(&slot.unit.configured());
        let id = slot.unit.id().clone();
        let is_under_way = slot.reload.is_some() && is_same && slot.config.differences(&config).is_empty();
        if is_under_way && !self.is_in_stages() && !is_meant {
            // The reload under way loads the same file, so nothing is to do. Only a stage has to wait for it.
        } else if slot.reload.is_some() {
            let reason = "it is being reloaded already".to_owned();
            let failed = NotReloaded { extension: id, reason };
            self.report_on(|applying| applying.report.failed.push(failed));
        } else if runs {
            self.report_on(|applying| {
                applying.pending.insert(index);
            });
            if is_retried {
                self.note_configured(index);
            }
            self.load(index, config, Asker::Configuration, is_retried);
        } else {
            let is_to_start = is_meant && has_failed;
            if !is_same {
                self.note_configured(index);
                self.exchange(index, config, main);
                self.report_on(|applying| applying.report.changed.push(id));
            } else {
                slot.unit.set_configured(&config);
                if self.retune(index, config) {
                    self.report_on(|applying| applying.report.changed.push(id));
                }
            }
            if is_to_start {
                // Waited for as for a new one.
                self.want(index);
                self.report_on(|applying| applying.added.push(index));
            }
        }
    }

    fn report_on(&mut self, report: impl FnOnce(&mut Applying)) {
        if let Some(applying) = &mut self.applying {
            report(applying);
        }
    }

    /// Notes how the reload of one extension ended.
    pub(super) fn reloaded(&mut self, index: usize, result: Result<bool, String>) {
        let (Some(applying), Some(slot)) = (&mut self.applying, self.slots.get(index)) else { return };
        applying.pending.remove(&index);
        let extension = slot.unit.id().clone();
        match result {
            Ok(has_changed) => {
                applying.report.changed.extend(has_changed.then_some(extension));
                // A version that an earlier reload brought may still be on probation.
                applying.up.push((index, slot.unit.version().number()));
            }
            Err(reason) => applying.report.failed.push(NotReloaded { extension, reason }),
        }
    }

    fn end_applying(&mut self, refused: Option<ControlError>) {
        let Some(Applying { reply, mut report, only, .. }) = self.applying.take() else { return };
        let is_cut_off = only.is_some() && self.shutting_down;
        let refused = refused.or_else(|| is_cut_off.then_some(ControlError::ShuttingDown));
        // Sorted, because they come in the order in which their files were loaded.
        for extensions in [&mut report.added, &mut report.removed, &mut report.changed] {
            extensions.sort_unstable();
        }
        report.failed.sort_unstable_by(|one, other| one.extension.cmp(&other.extension));
        self.end_what_may_not_run();
        for unit in self.slots.forget_removed() {
            self.parts.bus.forget(&unit.version().peer);
            self.parts.roster.forget(&unit);
        }
        self.parts.roster.set_reloading(false);
        let _nobody = self.parts.events.send(MainEvent::Reloaded.into());
        answer([reply], || match &refused {
            Some(refused) => Err(refused.clone()),
            None => Ok(report.clone()),
        });
        while self.applying.is_none()
            && let Some((wanted, by, reply)) = self.waiting.pop_front()
        {
            self.configure(wanted, None, by, reply);
        }
    }
}

/// Returns why a running Main cannot take this configuration, although the configuration is valid in itself.
#[must_use]
pub fn refusal(running: &MainConfig, config: &Config) -> Option<String> {
    let is_served = |contract: &&ContractName| running.serves.contains(contract);
    match config.main.serves.iter().find(|contract| !is_served(contract)) {
        Some(contract) => {
            Some(format!("`[main] serves` names `{contract}`, and this program does not serve it"))
        }
        None => check_mappings(config).err().map(|error| error.to_string()),
    }
}

/// Returns the changed keys of `[main]` that take effect only when Main is restarted.
#[must_use]
pub fn needs_restart(before: &MainConfig, after: &MainConfig) -> Vec<String> {
    let later = before.table_differences(after).into_iter().filter(|it| it.takes_effect == Effect::Restart);
    later.flat_map(|it| it.keys).map(|difference| difference.key).collect()
}
