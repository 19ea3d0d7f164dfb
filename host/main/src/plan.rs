//! What a reload of the configuration would do. Reads the file and the roster, changes nothing.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
};

use serde::Serialize;
use weir_config::{ArtifactHash, Config, Difference, ExtensionConfig, ReloadMode};
use weir_guest::{chain, component_hash};
use weir_names::ExtensionId;
use weir_supervisor::{ControlError, ExtensionState, Roster, Unit, check_mappings, needs_restart};

/// What a reload of the configuration would do now. All other extensions would stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
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
    /// Those that take effect only when Main is restarted.
    pub needs_restart: Vec<&'static str>,
    /// Other changed tables that would take effect at once, such as `queue.uploads`.
    pub tables: Vec<String>,
    /// Other changed tables that take effect only when Main is restarted, such as `gateway`.
    pub tables_for_restart: Vec<&'static str>,
    /// Possible mistakes: [`Config::warnings`].
    pub warnings: Vec<String>,
}

/// What a reload would change in one extension.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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

/// When a change of an extension takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
}

pub(crate) fn plan(roster: &Roster, only: Option<&str>) -> Result<ReloadPlan, ControlError> {
    let file = roster.file().ok_or(ControlError::NoFile)?;
    let running = roster.main();
    let refused = |reason: String| ReloadPlan { refused: Some(reason), ..ReloadPlan::default() };
    let config = match file.read() {
        Ok(config) => config,
        Err(errors) => return Ok(refused(errors.to_string())),
    };
    if let Some(contract) = config.main.serves.iter().find(|contract| !running.serves.contains(contract)) {
        return Ok(refused(format!(
            "`[main] serves` names `{contract}`, and this program does not serve it"
        )));
    }
    if let Err(error) = check_mappings(&config) {
        return Ok(refused(error.to_string()));
    }
    let known = |id: &str| {
        roster.find(id).is_some() || config.extensions.iter().any(|extension| extension.id.as_str() == id)
    };
    match only {
        Some(id) if !known(id) => Err(ControlError::Unknown(id.to_owned())),
        _ => Ok(compare(roster, config, only)),
    }
}

fn compare(roster: &Roster, config: Config, only: Option<&str>) -> ReloadPlan {
    let running = roster.main();
    let mut plan = ReloadPlan::default();
    if only.is_none() {
        plan.tables = roster.rest().other_tables(&config);
        plan.tables_for_restart = roster.rest().tables_for_restart(&config);
        plan.warnings = config.warnings();
        plan.main = running.differences(&config.main);
        plan.needs_restart = needs_restart(&running, &config.main);
    }
    let (_, extensions) = config.into_parts();
    let is_asked_for = |id: &ExtensionId| only.is_none_or(|only| id.as_str() == only);
    let mut units: BTreeMap<ExtensionId, _> =
        roster.listed().into_iter().map(|unit| (unit.id().clone(), unit)).collect();
    let mut hashes = HashMap::new();
    for extension in extensions {
        let unit = units.remove(&extension.id);
        if !is_asked_for(&extension.id) {
            continue;
        }
        match unit {
            Some(unit) => plan.changed.extend(change(&unit, &extension, &mut hashes)),
            None => plan.added.push(extension.id),
        }
    }
    plan.removed = units.into_keys().filter(is_asked_for).collect();
    plan
}

fn change(
    unit: &Unit,
    config: &ExtensionConfig,
    hashes: &mut HashMap<(PathBuf, u64), Result<ArtifactHash, String>>,
) -> Option<PlannedChange> {
    let version = unit.version();
    let before = &version.config;
    let keys = before.differences(config);
    let hash = || component_hash(config).map_err(|error| chain(&error));
    let hash = match config.component.path() {
        Some(path) => hashes.entry((path.to_owned(), config.limits.file_size)).or_insert_with(hash).clone(),
        None => hash(),
    };
    let loaded = version.program().map(|loaded| loaded.program.hash);
    let (component, fault) = match hash {
        Ok(hash) => (loaded.filter(|loaded| *loaded != hash).map(|_| hash.to_string()), None),
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
