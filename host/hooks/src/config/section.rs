//! The table `[hooks.NAME]`: its keys, and its part in the checks of a configuration.

use std::collections::BTreeMap;

use weir_config::{
    ConfigError, HOOKS_CONTRACT, bytes,
    extend::{
        ConfigSection, Facts, Granted, Judged, Located, MemoryUse, Places, ProtectedDir, Section, Settling,
        facts,
    },
};
use weir_names::{ContractName, HookDirName};

use super::{HookDirConfig, HooksConfig, check};

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
            location: at.get(name).and_then(Places::here),
            bytes: config.memory_sum(),
            factors: factors(config),
        };
        self.0.iter().map(part).collect()
    }

    fn protected(&self, at: &Self::Locations) -> Vec<ProtectedDir> {
        let dir = |(name, config): (&HookDirName, &HookDirConfig)| {
            check::protected(format!("hooks.{name}.dir"), config, at.get(name).and_then(|at| at.of("dir")))
        };
        self.0.iter().map(dir).collect()
    }

    fn granted<'c>(&'c self, at: &'c Self::Locations) -> Vec<Granted<'c>> {
        let granted = |(name, config): (&HookDirName, &'c HookDirConfig)| Granted {
            path: format!("hooks.{name}"),
            dirs: &config.grants.dirs,
            stores: &config.grants.stores,
            places: at.get(name).and_then(|at| at.within("grants")),
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
