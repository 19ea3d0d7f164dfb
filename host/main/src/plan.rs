//! What a reload of the configuration would do: read from the file and the roster, and nothing is touched.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
};

use serde::Serialize;
use weir_config::{ArtifactHash, Config, Difference, ExtensionConfig, ReloadMode};
use weir_guest::{chain, component_hash};
use weir_names::ExtensionId;
use weir_supervisor::{ControlError, ExtensionState, Roster, Unit, check_mappings, needs_restart};

/// What a reload of the configuration would do now. Whoever is not in it would stay as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct ReloadPlan {
    /// Why the reload would be refused, and apply nothing: what is wrong with the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Extensions that are new.
    pub added: Vec<ExtensionId>,
    /// Extensions that are no longer configured, and would be stopped.
    pub removed: Vec<ExtensionId>,
    /// Extensions whose configuration or component has changed.
    pub changed: Vec<PlannedChange>,
    /// Keys of `[main]` that have changed.
    pub main: Vec<Difference>,
    /// Those of them that take effect only when Main is started anew.
    pub needs_restart: Vec<&'static str>,
    /// Other tables that have changed, as in `queue.uploads`.
    pub tables: Vec<String>,
    /// What need not be wrong: [`Config::warnings`].
    pub warnings: Vec<String>,
}

/// What a reload would change of one extension.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct PlannedChange {
    /// The extension.
    pub extension: ExtensionId,
    /// Its keys that have changed.
    pub keys: Vec<Difference>,
    /// The SHA-256 of its component as it is in the file, if that is not the one that runs, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<String>,
    /// Why it could not be loaded, as far as that shows before it is compiled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// How the change would take effect.
    pub takes_effect: TakesEffect,
}

/// How a change of an extension takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum TakesEffect {
    /// At once, and nothing is started anew.
    AtOnce,
    /// It is stopped, and started again.
    StopFirst,
    /// Another instance is started, and then this one is stopped.
    Overlap,
    /// When it is started.
    NextStart,
}

/// Reads the file again, and the components that it names: of all extensions, or of that one alone.
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

/// What of this extension would be changed, if anything.
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
        // One that does not run is loaded when it is started.
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
