//! The table `[hooks.NAME]`: its keys, and its part in the checks of a configuration.

use std::collections::BTreeMap;

use weir_config::{
    ConfigError, HOOKS_CONTRACT, InHooks, LIMIT_KEYS, TIMEOUT, bytes,
    extend::{
        ConfigSection, Facts, GrantLocations, Granted, Judged, LimitChanges, Located, Location, MemoryUse,
        ProtectedDir, Section, Settling,
    },
};
use weir_names::{ContractName, HookDirName};

use super::{AT_ONCE, HookDirConfig, HooksConfig, OUTPUT, SUFFIX, check, suffix};
use crate::ExitCodes;

const HOST_DIR: &str = "the path of a directory";

/// A directory of hooks with an unresolved class.
#[derive(Debug)]
pub struct HookDirDraft {
    config: HookDirConfig,
    class: Option<Located<String>>,
    changes: LimitChanges,
    locations: HookDirLocations,
}

/// Places of a directory's values.
#[derive(Debug)]
pub struct HookDirLocations {
    name: Location,
    dir: Location,
    suffixes: Vec<Location>,
    grants: GrantLocations,
}

impl HookDirLocations {
    pub(super) fn dir(&self) -> Location {
        self.dir.clone()
    }

    pub(super) fn suffix(&self, item: usize) -> Option<Location> {
        self.suffixes.get(item).cloned()
    }
}

impl ConfigSection for HooksConfig {
    const TABLE: &'static str = "hooks";
    const IN_BUDGET: &'static str = "the hooks";
    type Draft = Vec<(Located<HookDirName>, HookDirDraft)>;
    type Locations = BTreeMap<HookDirName, HookDirLocations>;

    fn read(draft: &mut Self::Draft, file: &mut Section<'_, '_>) {
        file.named(Self::TABLE, |section, name| draft.extend(hook_dir(section, &name)));
    }

    fn settle(draft: Self::Draft, settling: &mut Settling<'_>) -> (Self, Self::Locations) {
        let (mut dirs, mut locations) = (BTreeMap::new(), BTreeMap::new());
        for (name, (_, draft)) in settling.by_name(Self::TABLE, draft) {
            let HookDirDraft { mut config, class, changes, locations: at } = draft;
            config.limits = settling.limits(class.as_ref(), &changes, &format!("hooks.{name}"));
            locations.insert(name.clone(), at);
            dirs.insert(name, config);
        }
        (Self(dirs), locations)
    }

    fn check_values(&self) -> Vec<ConfigError> {
        self.0.iter().flat_map(|(name, config)| check::values(config, &format!("hooks.{name}"))).collect()
    }

    fn check(&self, judged: &Judged<'_>, at: &Self::Locations, errors: &mut Vec<ConfigError>) {
        check::dirs(self, judged, at, errors);
    }

    fn check_names(&self, judged: &Judged<'_>, _at: &Self::Locations, errors: &mut Vec<ConfigError>) {
        check::runs(self, judged, errors);
    }

    fn memory(&self, at: &Self::Locations) -> Vec<MemoryUse> {
        let part = |(name, config): (&HookDirName, &HookDirConfig)| MemoryUse {
            what: format!("hooks `{name}` come"),
            location: at.get(name).map(|at| at.name.clone()),
            bytes: config.memory_sum(),
            factors: factors(config),
        };
        self.0.iter().map(part).collect()
    }

    fn protected(&self, at: &Self::Locations) -> Vec<ProtectedDir> {
        let dir = |(name, config): (&HookDirName, &HookDirConfig)| {
            check::protected(format!("hooks.{name}.dir"), config, at.get(name).map(HookDirLocations::dir))
        };
        self.0.iter().map(dir).collect()
    }

    fn granted<'c>(&'c self, at: &'c Self::Locations) -> Vec<Granted<'c>> {
        let granted = |(name, config): (&HookDirName, &'c HookDirConfig)| Granted {
            path: format!("hooks.{name}"),
            dirs: &config.grants.dirs,
            stores: &config.grants.stores,
            locations: at.get(name).map(|at| &at.grants),
        };
        self.0.iter().map(granted).collect()
    }

    fn serves() -> Vec<ContractName> {
        HOOKS_CONTRACT.parse().into_iter().collect()
    }

    fn facts(&self) -> BTreeMap<String, Facts> {
        self.0.iter().map(|(name, config)| (format!("hooks.{name}"), facts(config))).collect()
    }
}

fn facts(config: &HookDirConfig) -> Facts {
    let HookDirConfig { dir, suffixes, limits, grants, timeout, total_timeout, output, at_once, exit_codes } =
        config;
    let mut facts = Facts::default();
    facts.text("dir", Some(dir.display()));
    facts.texts("suffixes", suffixes);
    facts.limits(limits, |key| matches!(key.in_hooks, InHooks::Allowed));
    facts.grants(grants);
    facts.time("timeout", Some(*timeout));
    facts.time("total-timeout", Some(*total_timeout));
    facts.size("output", Some(*output));
    facts.plain("at-once", Some(at_once));
    for (key, codes) in exit_codes.texts() {
        facts.text(key, Some(codes));
    }
    facts
}

/// `None` after reporting a missing directory or a faulty name.
fn hook_dir(
    section: &mut Section<'_, '_>,
    name: &Located<&str>,
) -> Option<(Located<HookDirName>, HookDirDraft)> {
    section.require("dir", HOST_DIR);
    let dir = section.path("dir", HOST_DIR);
    let suffixes = section.some_texts("suffixes", SUFFIX, suffix);
    let class = section.class();
    let changes = section.table("limits", limits);
    let (grants, grants_at) = section.grants();
    let timeout = section.time("timeout", TIMEOUT);
    let total_timeout = section.time("total-timeout", TIMEOUT);
    let output = section.number("output", &OUTPUT);
    let at_once = section.count("at-once", AT_ONCE);
    let exit_codes = section.table("exit-codes", ExitCodes::read);

    let name = section.name(HooksConfig::TABLE, name, str::parse::<HookDirName>)?;
    let dir = dir?;
    let new = HookDirConfig::new(dir.value);
    let (suffixes, suffixes_at) = match suffixes {
        Some(suffixes) => suffixes.into_iter().map(|at| (at.value, at.location)).unzip(),
        None => (new.suffixes.clone(), Vec::new()),
    };
    let config = HookDirConfig {
        suffixes,
        grants,
        timeout: timeout.map_or(new.timeout, Located::into_value),
        total_timeout: total_timeout.map_or(new.total_timeout, Located::into_value),
        output: output.map_or(new.output, Located::into_value),
        at_once: at_once.map_or(new.at_once, Located::into_value),
        exit_codes,
        ..new
    };
    let locations = HookDirLocations {
        name: name.location.clone(),
        dir: dir.location,
        suffixes: suffixes_at,
        grants: grants_at,
    };
    Some((name, HookDirDraft { config, class, changes, locations }))
}

fn limits(section: &mut Section<'_, '_>) -> LimitChanges {
    let mut changes = LimitChanges::default();
    for key in LIMIT_KEYS.iter().filter(|key| !key.name.contains('.')) {
        match key.in_hooks {
            InHooks::Allowed => changes.add(key, section.number(key.name, &key.shape)),
            InHooks::Refused(why) => section.refuse(key.name, why),
        }
    }
    section.refuse("inbox", "is for extensions: hooks have no messages");
    changes
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
