//! Checks directories of hooks, and names of unknown ones.

use std::{collections::BTreeMap, path::Path};

use weir_config::{
    ConfigError, InHooks,
    extend::{
        ERRORS_MAX, Granted, Judged, Location, ProtectedDir, check_grants, doubles, is_inside, nearest,
        shorten, shown,
    },
};
use weir_names::HookDirName;

use super::{HookDirConfig, HooksConfig, section::HookDirLocations, suffix};

pub(super) fn alone(config: &HookDirConfig) -> Vec<ConfigError> {
    let path = format!("hooks[{}]", shorten(&config.dir.display().to_string(), 100));
    let mut errors = values(config, &path);
    let own = protected(format!("{path}.dir"), config, None);
    let granted = Granted {
        path: path.clone(),
        dirs: &config.grants.dirs,
        stores: &config.grants.stores,
        locations: None,
    };
    errors.extend(check_grants(&granted, vec![own]));
    errors.extend(doubles(&format!("{path}.suffixes"), &config.suffixes, |_| None));
    errors
}

/// Faulty values, and contradictions between them, of the table at `path`.
pub(super) fn values(hooks: &HookDirConfig, path: &str) -> Vec<ConfigError> {
    let mut errors = Vec::new();
    let out_of_range = hooks.out_of_range();
    let mut not_so = |key: &str, what: String| {
        let key = format!("{path}.{key}");
        let message = format!("in `{key}`: {what}");
        errors.push(ConfigError::new(key, message, None));
    };
    hooks.suffixes.iter().filter_map(|text| suffix(text).err()).for_each(|fault| not_so("suffixes", fault));
    if out_of_range.iter().all(|(key, _)| !key.starts_with("exit-codes")) {
        hooks.exit_codes.overlaps().into_iter().for_each(|(_, fault)| not_so("exit-codes", fault));
    }
    errors.extend(out_of_range.into_iter().map(|(key, what)| must_be(path, key, &what)));
    // Hooks ignore the other limits of the class.
    let limits = hooks.limits.out_of_range().into_iter().filter(|(key, _)| key.in_hooks == InHooks::Allowed);
    errors.extend(limits.map(|(key, what)| must_be(&format!("{path}.limits"), key.name, &what)));
    errors.extend(hooks.grants.faults().into_iter().map(|fault| {
        let key = format!("{path}.grants.env");
        let message = format!("in `{key}`: {fault}");
        ConfigError::new(key, message, None)
    }));
    errors
}

/// Repeated suffixes, and directories that belong to Main.
pub(super) fn dirs(
    hooks: &HooksConfig,
    judged: &Judged<'_>,
    at: &BTreeMap<HookDirName, HookDirLocations>,
    errors: &mut Vec<ConfigError>,
) {
    let cache = judged.config().main.cache_dir.as_deref();
    for (name, hooks) in &hooks.0 {
        let locations = at.get(name);
        errors.extend(doubles(&format!("hooks.{name}.suffixes"), &hooks.suffixes, |item| {
            locations.and_then(|at| at.suffix(item))
        }));
        errors.extend(cache.filter(|cache| is_inside(&hooks.dir, cache)).map(|cache: &Path| {
            let key = format!("hooks.{name}.dir");
            let message = format!(
                "in `{key}`: {} is in `main.cache-dir`, {}, where only Main writes",
                shown(&hooks.dir),
                shown(cache)
            );
            ConfigError::new(key, message, locations.map(HookDirLocations::dir))
        }));
    }
}

pub(super) fn runs(hooks: &HooksConfig, judged: &Judged<'_>, errors: &mut Vec<ConfigError>) {
    let known = &hooks.0;
    for (index, extension) in judged.config().extensions.iter().enumerate() {
        let id = &extension.id;
        for (item, name) in extension.runs.iter().enumerate().filter(|(_, name)| !known.contains_key(*name)) {
            // Comparing all pairs would take minutes in a hostile file, for messages that are never shown.
            let near = (errors.len() < ERRORS_MAX)
                .then(|| nearest(name.as_str(), known.keys().map(HookDirName::as_str)));
            let help = near.flatten().map_or_else(
                || format!("add them, as `[hooks.{name}]` with their `dir`"),
                |near| format!("did you mean `{near}`?"),
            );
            let message = format!("`{id}` runs the hooks `{name}`, but there are no such hooks: {help}");
            let location = judged.location_of_run(index, item);
            errors.push(ConfigError::new(format!("extension[{id}].runs"), message, location));
        }
    }
}

/// Files in a directory of hooks run with the hooks' grants.
pub(super) fn protected(key: String, config: &HookDirConfig, location: Option<Location>) -> ProtectedDir {
    ProtectedDir {
        key,
        dir: config.dir.clone(),
        location,
        why: "a guest that writes there can change the hooks",
        note: "the directory of hooks is set here",
    }
}

fn must_be(path: &str, key: &str, shape: &str) -> ConfigError {
    let key = format!("{path}.{key}");
    let message = format!("`{key}` must be {shape}");
    ConfigError::new(key, message, None)
}
