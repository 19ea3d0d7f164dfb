//! The table `[hooks.NAME]` in the operator's file, and its part in the checks of a configuration.

use std::{collections::BTreeMap, path::Path};

use weir_config::{
    ConfigError, Grants, HOOKS_CONTRACT, NetGrant, bytes,
    extend::{
        ConfigSection, Facts, Granted, Judged, Located, Location, MemoryUse, Places, ProtectedDir, Section,
        Settling, check_grants, doubles, facts, faults, is_inside, shorten, shown, suggestion,
    },
};
use weir_names::{ContractName, HookDirName};

use super::{HookDirConfig, HooksConfig, suffix};

impl ConfigSection for HooksConfig {
    const TABLE: &'static str = "hooks";
    const IN_BUDGET: &'static str = "the hooks";
    const ABOUT: (&'static str, &'static str) = ("Directories of hooks: [below](#hooksname).", "");
    type Draft = Vec<(Located<HookDirName>, (HookDirConfig, Places))>;
    type Locations = BTreeMap<HookDirName, Places>;

    fn read(draft: &mut Self::Draft, file: &mut Section<'_, '_>) {
        draft.extend(file.named_tables(Self::TABLE, None, str::parse, || Some(HookDirConfig::new(""))));
    }

    fn settle(draft: Self::Draft, settling: &mut Settling<'_>) -> (Self, Self::Locations) {
        let (mut dirs, mut locations) = (BTreeMap::new(), BTreeMap::new());
        for (name, (_, (mut config, at))) in settling.by_name(Self::TABLE, draft) {
            config.limits = settling.limits(&config.limits, &at, &format!("hooks.{name}"));
            locations.insert(name.clone(), at);
            dirs.insert(name, config);
        }
        (Self(dirs), locations)
    }

    fn check_values(&self) -> Vec<ConfigError> {
        self.0.iter().flat_map(|(name, config)| values(config, &format!("hooks.{name}"))).collect()
    }

    fn check(&self, judged: &Judged<'_>, at: &Self::Locations, errors: &mut Vec<ConfigError>) {
        let cache = judged.config().main.cache_dir.as_deref();
        for (name, hooks) in &self.0 {
            let locations = at.get(name);
            errors.extend(doubles(&format!("hooks.{name}"), "suffixes", &hooks.suffixes, locations));
            errors.extend(listeners(&format!("hooks.{name}"), hooks, locations));
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

    fn check_names(&self, judged: &Judged<'_>, _at: &Self::Locations, errors: &mut Vec<ConfigError>) {
        let known = &self.0;
        for (index, extension) in judged.config().extensions.iter().enumerate() {
            let id = &extension.id;
            for (item, name) in
                extension.runs.iter().enumerate().filter(|(_, name)| !known.contains_key(*name))
            {
                let names = known.keys().map(HookDirName::as_str);
                let otherwise = format!("add them, as `[hooks.{name}]` with their `dir`");
                let help = suggestion(name.as_str(), names, errors, otherwise);
                let message = format!("`{id}` runs the hooks `{name}`, but there are no such hooks: {help}");
                let location = judged.places_of_extension(index).and_then(|at| at.of_item("runs", item));
                errors.push(ConfigError::new(format!("extension[{id}].runs"), message, location));
            }
        }
    }

    fn memory(&self, at: &Self::Locations) -> Vec<MemoryUse> {
        let part = |(name, config): (&HookDirName, &HookDirConfig)| MemoryUse {
            what: format!("hooks `{name}` come"),
            location: at.get(name).and_then(Places::here),
            bytes: config.memory_sum(),
            factors: factors(config),
        };
        self.0.iter().map(part).collect()
    }

    fn protected(&self, at: &Self::Locations) -> Vec<ProtectedDir> {
        let dir = |(name, config): (&HookDirName, &HookDirConfig)| {
            protected(format!("hooks.{name}.dir"), config, at.get(name).and_then(|at| at.of("dir")))
        };
        self.0.iter().map(dir).collect()
    }

    fn granted<'c>(&'c self, at: &'c Self::Locations) -> Vec<Granted<'c>> {
        let places = |name| at.get(name).and_then(|at| at.within("grants"));
        self.0.iter().map(|(name, config)| granted(format!("hooks.{name}"), config, places(name))).collect()
    }

    fn serves() -> Vec<ContractName> {
        HOOKS_CONTRACT.parse().into_iter().collect()
    }

    fn facts(&self) -> BTreeMap<String, Facts> {
        self.0.iter().map(|(name, config)| (format!("hooks.{name}"), facts(config))).collect()
    }
}

fn factors(hooks: &HookDirConfig) -> String {
    let run = format!(
        "`memory` {} + `stack` {} + 2 × `output` {}",
        bytes(hooks.limits.memory),
        bytes(hooks.limits.stack),
        bytes(hooks.output)
    );
    match hooks.at_once {
        1 => run,
        at_once => format!("`at-once` {at_once} × ({run})"),
    }
}

/// The faults of a directory outside a configuration.
pub(super) fn alone(config: &HookDirConfig) -> Vec<ConfigError> {
    let path = format!("hooks[{}]", shorten(&config.dir.display().to_string(), 100));
    let mut errors = values(config, &path);
    let own = protected(format!("{path}.dir"), config, None);
    let granted = granted(path.clone(), config, None);
    errors.extend(check_grants(&granted, vec![own]));
    errors.extend(doubles(&path, "suffixes", &config.suffixes, None));
    errors.extend(listeners(&path, config, None));
    errors
}

/// Errors for addresses where hooks would listen: several of them may run at once, and none stays.
fn listeners(path: &str, config: &HookDirConfig, places: Option<&Places>) -> Vec<ConfigError> {
    let places = places.and_then(|at| at.within("grants"));
    let listening = config.grants.net.iter().enumerate().filter(|(_, grant)| grant.listen);
    let error = |(item, grant): (usize, &NetGrant)| {
        let key = format!("{path}.grants.net");
        let message = format!("in `{key}`: a run of a hook ends, so none can listen at `{}`", grant.address);
        ConfigError::new(key, message, places.and_then(|at| at.of_item("net", item)))
    };
    listening.map(error).collect()
}

/// The faulty values of the table at `path`, and contradictions between its values.
fn values(hooks: &HookDirConfig, path: &str) -> Vec<ConfigError> {
    let mut errors = faults(hooks, path);
    errors.extend(hooks.suffixes.iter().filter_map(|text| suffix(text).err()).map(|fault| {
        let key = format!("{path}.suffixes");
        let message = format!("in `{key}`: {fault}");
        ConfigError::new(key, message, None)
    }));
    errors
}

/// Protects a directory of hooks from guests that write: its files run with the hooks' grants.
fn protected(key: String, config: &HookDirConfig, location: Option<Location>) -> ProtectedDir {
    ProtectedDir {
        key,
        dir: config.dir.clone(),
        location,
        why: "a guest that writes there can change the hooks",
        note: "the directory of hooks is set here",
    }
}

fn granted<'c>(path: String, config: &'c HookDirConfig, places: Option<&'c Places>) -> Granted<'c> {
    let Grants { dirs, stores, .. } = &config.grants;
    Granted { path, dirs, stores, places }
}
