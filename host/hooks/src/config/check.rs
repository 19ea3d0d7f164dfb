//! Checks directories of hooks, and names of unknown ones.

use std::{collections::BTreeMap, path::Path};

use weir_config::{
    ConfigError,
    extend::{
        Granted, Judged, Location, Places, ProtectedDir, check_grants, doubles, faults, is_inside, shorten,
        shown, suggestion,
    },
};
use weir_names::HookDirName;

use super::{HookDirConfig, HooksConfig, suffix};

pub(super) fn alone(config: &HookDirConfig) -> Vec<ConfigError> {
    let path = format!("hooks[{}]", shorten(&config.dir.display().to_string(), 100));
    let mut errors = values(config, &path);
    let own = protected(format!("{path}.dir"), config, None);
    let granted = Granted {
        path: path.clone(),
        dirs: &config.grants.dirs,
        stores: &config.grants.stores,
        places: None,
    };
    errors.extend(check_grants(&granted, vec![own]));
    errors.extend(doubles(&path, "suffixes", &config.suffixes, None));
    errors
}

/// Faulty values, and contradictions between them, of the table at `path`.
pub(super) fn values(hooks: &HookDirConfig, path: &str) -> Vec<ConfigError> {
    let mut errors = faults(hooks, path);
    errors.extend(hooks.suffixes.iter().filter_map(|text| suffix(text).err()).map(|fault| {
        let key = format!("{path}.suffixes");
        let message = format!("in `{key}`: {fault}");
        ConfigError::new(key, message, None)
    }));
    errors
}

/// Repeated suffixes, and directories that belong to Main.
pub(super) fn dirs(
    hooks: &HooksConfig,
    judged: &Judged<'_>,
    at: &BTreeMap<HookDirName, Places>,
    errors: &mut Vec<ConfigError>,
) {
    let cache = judged.config().main.cache_dir.as_deref();
    for (name, hooks) in &hooks.0 {
        let locations = at.get(name);
        errors.extend(doubles(&format!("hooks.{name}"), "suffixes", &hooks.suffixes, locations));
        errors.extend(cache.filter(|cache| is_inside(&hooks.dir, cache)).map(|cache: &Path| {
            let key = format!("hooks.{name}.dir");
            let message = format!(
                "in `{key}`: {} is in `main.cache-dir`, {}, where only Main writes",
                shown(&hooks.dir),
                shown(cache)
            );
            ConfigError::new(key, message, locations.and_then(|at| at.of("dir")))
        }));
    }
}

pub(super) fn runs(hooks: &HooksConfig, judged: &Judged<'_>, errors: &mut Vec<ConfigError>) {
    let known = &hooks.0;
    for (index, extension) in judged.config().extensions.iter().enumerate() {
        let id = &extension.id;
        for (item, name) in extension.runs.iter().enumerate().filter(|(_, name)| !known.contains_key(*name)) {
            let names = known.keys().map(HookDirName::as_str);
            let otherwise = format!("add them, as `[hooks.{name}]` with their `dir`");
            let help = suggestion(name.as_str(), names, errors, otherwise);
            let message = format!("`{id}` runs the hooks `{name}`, but there are no such hooks: {help}");
            let location = judged.places_of_extension(index).and_then(|at| at.of_item("runs", item));
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
