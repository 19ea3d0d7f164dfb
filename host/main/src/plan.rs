//! What a reload of the configuration would do. Reads the file and the roster, changes nothing.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::PathBuf,
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use weir_config::{ArtifactHash, Config, Difference, Effect, ExtensionConfig, ReloadMode, TableDifference};
use weir_guest::{Admission, OpenComponent, Rules, component_is_whole};
use weir_names::{ExtensionId, chain};
use weir_reports::ExtensionState;
use weir_supervisor::{ControlError, Roster, Unit, found, needs_restart, refusal, stages};
use weir_versions::Versions;

/// What a reload of the configuration would do now. All other extensions would stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct ReloadPlan {
    /// The mistake in the file for which the whole reload would be refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// New extensions.
    pub added: Vec<ExtensionId>,
    /// Extensions no longer configured, which would stop.
    pub removed: Vec<ExtensionId>,
    /// Extensions with a changed configuration or component.
    pub changed: Vec<PlannedChange>,
    /// Changed keys of `[main]`.
    pub main: Vec<Difference>,
    /// Changed keys of `[main]` that take effect only when Main is restarted.
    pub needs_restart: Vec<String>,
    /// Other changed tables that would take effect at once, such as `queue.uploads`.
    pub tables: Vec<String>,
    /// Other changed tables that take effect only when Main is restarted, such as `gateway`.
    #[serde(default)]
    pub tables_for_restart: Vec<String>,
    /// How the tables in `tables` and `tables-for-restart` would change, key by key.
    #[serde(default)]
    pub table_differences: Vec<TableDifference>,
    /// New extensions that would not come up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<PlannedFault>,
    /// Extensions whose configured version was refused, so that another one runs. They would not change, and a reload
    /// would say so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_back: Vec<PlannedInstead>,
    /// The stages of a reload in stages in which something would change, or is held back. Empty for one extension.
    #[serde(default)]
    pub stages: Vec<PlannedStage>,
    /// Possible mistakes: [`Config::warnings`].
    pub warnings: Vec<String>,
}

/// What a reload would change in one extension.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct PlannedChange {
    /// The extension.
    pub extension: ExtensionId,
    /// Its changed keys.
    pub keys: Vec<Difference>,
    /// SHA-256 of the component in the file, in hexadecimal, if another one runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// Why the component cannot be loaded, as far as that shows before compiling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// When the change would take effect.
    pub takes_effect: TakesEffect,
}

/// Why a new extension would not come up.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PlannedFault {
    /// The extension.
    pub extension: ExtensionId,
    /// Why its component cannot be loaded, as far as that shows before compiling.
    pub fault: String,
}

/// The version that runs in place of a configured one that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PlannedInstead {
    /// The extension.
    pub extension: ExtensionId,
    /// The number of the version that runs.
    pub version: u64,
    /// Which version was refused, and why.
    pub reason: String,
}

/// A stage of a reload in stages.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct PlannedStage {
    /// Its number, from 1. Stages without a change are left out.
    pub stage: usize,
    /// The extensions that would be added, removed, changed or held back, in alphabetical order.
    pub extensions: Vec<ExtensionId>,
}

/// When a change of an extension takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum TakesEffect {
    /// At once; nothing restarts.
    AtOnce,
    /// The instance is stopped, and another started.
    StopFirst,
    /// Another instance is started, and then this one is stopped.
    Overlap,
    /// At its next start.
    NextStart,
    /// An unknown word in the answer of another version of Main.
    #[serde(other)]
    Other,
}

pub(crate) fn plan(
    roster: &Roster,
    versions: &Versions,
    admission: &Admission,
    only: Option<&str>,
) -> Result<ReloadPlan, ControlError> {
    let file = roster.file().ok_or(ControlError::NoFile)?;
    let running = roster.main();
    let refused = |reason: String| ReloadPlan { refused: Some(reason), ..ReloadPlan::default() };
    let config = match file.read() {
        Ok(config) => config,
        Err(errors) => return Ok(refused(errors.to_string())),
    };
    if let Some(reason) = refusal(&running, &config) {
        return Ok(refused(reason));
    }
    // The reload of one extension goes by the rules of the last start or reload of all.
    let rules = match only {
        Some(_) => admission.rules(),
        None => match admission.read(&config.main) {
            Ok(rules) => Arc::new(rules),
            Err(error) => return Ok(refused(error.to_string())),
        },
    };
    let known = |id: &str| {
        roster.find(id).is_some() || config.extensions.iter().any(|extension| extension.id.as_str() == id)
    };
    match only {
        Some(id) if !known(id) => Err(ControlError::Unknown(id.to_owned())),
        _ => Ok(compare(roster, versions, &rules, config, only)),
    }
}

/// How a reload would change Main, or only the extension `only`.
fn compare(
    roster: &Roster,
    versions: &Versions,
    rules: &Rules,
    config: Config,
    only: Option<&str>,
) -> ReloadPlan {
    let running = roster.main();
    let mut plan = ReloadPlan::default();
    if only.is_none() {
        plan.table_differences = roster.rest().table_differences(&config);
        for TableDifference { table, takes_effect, .. } in &plan.table_differences {
            match takes_effect {
                Effect::AtOnce => plan.tables.push(table.clone()),
                Effect::Restart => plan.tables_for_restart.push(table.clone()),
            }
        }
        plan.warnings = config.warnings();
        plan.main = running.differences(&config.main);
        plan.needs_restart = needs_restart(&running, &config.main);
    }
    let (_, extensions) = config.into_parts();
    let extensions: Vec<_> = extensions.into_iter().map(Arc::new).collect();
    let is_asked_for = |id: &ExtensionId| only.is_none_or(|only| id.as_str() == only);
    let mut units: BTreeMap<ExtensionId, _> =
        roster.listed().into_iter().map(|unit| (unit.id().clone(), unit)).collect();
    let mut files = Files::default();
    for extension in &extensions {
        let unit = units.remove(&extension.id);
        if !is_asked_for(&extension.id) {
            continue;
        }
        let hash = extension.update.as_ref().and_then(|_| files.hash(extension).ok());
        let older = || {
            let opened = extension.update.as_ref().and_then(|_| OpenComponent::of(extension, rules).ok())?;
            let is_revoked = |hash, signature: Option<&str>| rules.has_revoked(hash, signature);
            versions.newer_than(extension, &found(&opened), is_revoked)
        };
        let instead = hash.and_then(|hash| versions.instead_of(extension, hash)).or_else(older);
        match (unit, instead) {
            (unit, Some((version, reason))) => {
                plan.held_back.push(PlannedInstead { extension: extension.id.clone(), version, reason });
                plan.added.extend(unit.is_none().then(|| extension.id.clone()));
            }
            (Some(_), None) if hash.is_some_and(|hash| versions.is_tried_elsewhere(extension, hash)) => {}
            (Some(unit), None) => plan.changed.extend(change(&unit, extension, &mut files, rules)),
            (None, None) => {
                let fault =
                    files.hash(extension).and_then(|_| files.fault(extension, rules).map_or(Ok(()), Err));
                if let Err(fault) = fault {
                    plan.faults.push(PlannedFault { extension: extension.id.clone(), fault });
                }
                plan.added.push(extension.id.clone());
            }
        }
    }
    plan.removed = units.into_keys().filter(is_asked_for).collect();
    if only.is_none() {
        plan.stages = stages_of(&plan, roster, &extensions);
    }
    plan
}

/// In which stages a reload in stages would carry out the plan.
fn stages_of(plan: &ReloadPlan, roster: &Roster, extensions: &[Arc<ExtensionConfig>]) -> Vec<PlannedStage> {
    let running: Vec<_> = roster.listed().iter().map(|unit| unit.version().config.clone()).collect();
    let stages = stages(&running, extensions);
    let changed = plan.changed.iter().map(|change| &change.extension);
    let held_back = plan.held_back.iter().map(|instead| &instead.extension);
    let mut planned: BTreeMap<usize, BTreeSet<&ExtensionId>> = BTreeMap::new();
    for id in plan.added.iter().chain(&plan.removed).chain(changed).chain(held_back) {
        planned.entry(stages.get(id).copied().unwrap_or(1)).or_default().insert(id);
    }
    let planned = planned.into_iter();
    planned
        .map(|(stage, ids)| PlannedStage { stage, extensions: ids.into_iter().cloned().collect() })
        .collect()
}

/// What is known of components' files, so that each is read once for all extensions that have it.
#[derive(Debug, Default)]
struct Files {
    hashes: HashMap<(PathBuf, u64), Result<ArtifactHash, String>>,
    faults: HashMap<PathBuf, Option<String>>,
}

impl Files {
    fn hash(&mut self, extension: &ExtensionConfig) -> Result<ArtifactHash, String> {
        let open = || OpenComponent::unchecked(extension).map_err(|error| chain(&error));
        let hash = || open().map(|component| component.hash());
        match extension.component.path() {
            Some(path) => {
                let key = (path.to_owned(), extension.limits.file_size);
                self.hashes.entry(key).or_insert_with(hash).clone()
            }
            None => hash(),
        }
    }

    /// What is wrong with a file that can be read. Compiles nothing, and looks into no section unless a signature covers
    /// it.
    fn fault(&mut self, extension: &ExtensionConfig, rules: &Rules) -> Option<String> {
        match OpenComponent::of(extension, rules).map(|mut opened| opened.misfit(extension)) {
            Err(error) => return Some(chain(&error)),
            Ok(misfit @ Some(_)) => return misfit,
            Ok(None) => {}
        }
        let look = || component_is_whole(extension).err().map(|error| chain(&error));
        match extension.component.path() {
            Some(path) => self.faults.entry(path.to_owned()).or_insert_with(look).clone(),
            None => look(),
        }
    }
}

/// What a reload would change in an extension that Main has. `None` if nothing.
fn change(unit: &Unit, config: &ExtensionConfig, files: &mut Files, rules: &Rules) -> Option<PlannedChange> {
    let version = unit.version();
    let before = &unit.configured();
    let keys = before.differences(config);
    let hash = files.hash(config);
    let program = version.program();
    let may_run = program.as_ref().is_none_or(|loaded| rules.admit_still(&version.config, loaded));
    let loaded = program.map(|loaded| loaded.program.hash);
    let (component, fault) = match hash {
        Ok(hash) if loaded.is_none_or(|loaded| loaded == hash) && may_run => {
            // Other limits may let less in, such as fewer parts of WebAssembly.
            let has_other = config.limits.features != before.limits.features;
            (None, has_other.then(|| files.fault(config, rules)).flatten())
        }
        Ok(hash) if loaded == Some(hash) => (None, files.fault(config, rules)),
        Ok(hash) => (Some(hash.to_string()), files.fault(config, rules)),
        // An extension that does not run loads its component when it starts.
        Err(fault) => (None, loaded.map(|_| fault)),
    };
    let runs_as_before = config.runs_as(before) && component.is_none() && fault.is_none();
    if keys.is_empty() && runs_as_before {
        return None;
    }
    use ExtensionState as State;
    let is_off = matches!(unit.status().state, State::Loaded | State::Stopped | State::Quarantined);
    let takes_effect = match (runs_as_before, is_off, config.reload) {
        (true, ..) => TakesEffect::AtOnce,
        (false, true, _) => TakesEffect::NextStart,
        (false, false, ReloadMode::StopFirst) => TakesEffect::StopFirst,
        (false, false, ReloadMode::Overlap) => TakesEffect::Overlap,
    };
    Some(PlannedChange { extension: config.id.clone(), keys, component, fault, takes_effect })
}
