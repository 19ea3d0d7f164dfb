//! Directories of hooks: those that are named and not there, and those that cannot be.

use weir_names::HookDirName;

use super::{
    Parts, doubles,
    grants::{Granted, HookDirAt, HookDirs},
    paths::{is_inside, shown},
    values::hook_dir_values,
};
use crate::{
    HookDirConfig,
    error::{ConfigError, ERRORS_MAX, shorten},
    section::nearest,
};

/// All that is wrong with a directory of hooks that belongs to no configuration.
pub(crate) fn hook_dir(config: &HookDirConfig) -> Vec<ConfigError> {
    let path = format!("hooks[{}]", shorten(&config.dir.display().to_string(), 100));
    let own = HookDirAt { key: format!("{path}.dir"), dir: &config.dir, location: None };
    let granted = Granted { path, dirs: &config.grants.dirs, locations: None };
    let mut errors = hook_dir_values(config, &granted.path);
    errors.extend(granted.over_hooks(&HookDirs::new([own])));
    errors.extend(granted.doubled_guests());
    errors.extend(doubles(&format!("{}.suffixes", granted.path), &config.suffixes, |_| None));
    errors
}

impl Parts<'_> {
    pub(super) fn hook_dirs(&self, errors: &mut Vec<ConfigError>) {
        let cache = self.config.main.cache_dir.as_deref();
        for (name, hooks) in &self.config.hooks {
            let locations = self.locations.hooks.get(name);
            errors.extend(doubles(&format!("hooks.{name}.suffixes"), &hooks.suffixes, |item| {
                locations.and_then(|at| at.suffixes.get(item)).cloned()
            }));
            errors.extend(cache.filter(|cache| is_inside(&hooks.dir, cache)).map(|cache| {
                let key = format!("hooks.{name}.dir");
                let message = format!(
                    "in `{key}`: {} is in `main.cache-dir`, {}, where only Main writes",
                    shown(&hooks.dir),
                    shown(cache)
                );
                ConfigError::new(key, message, locations.map(|at| at.dir.clone()))
            }));
        }
    }

    /// Hooks that an extension may run, and that nobody has configured.
    pub(super) fn runs(&self, errors: &mut Vec<ConfigError>) {
        let known = &self.config.hooks;
        for (index, extension) in self.extensions() {
            let id = &extension.id;
            for (item, name) in
                extension.runs.iter().enumerate().filter(|(_, name)| !known.contains_key(*name))
            {
                // Each with each would take minutes in a file full of them, for messages that nobody sees.
                let near = (errors.len() < ERRORS_MAX)
                    .then(|| nearest(name.as_str(), known.keys().map(HookDirName::as_str)));
                let help = near.flatten().map_or_else(
                    || format!("add them, as `[hooks.{name}]` with their `dir`"),
                    |near| format!("did you mean `{near}`?"),
                );
                let message = format!("`{id}` runs the hooks `{name}`, but there are no such hooks: {help}");
                let location = self.location(index, |at| at.runs.get(item));
                errors.push(ConfigError::new(format!("extension[{id}].runs"), message, location));
            }
        }
    }
}
