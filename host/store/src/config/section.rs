//! The table `[store.NAME]`: its keys, and its part in the checks of a configuration.

use std::collections::BTreeMap;

use weir_config::{
    ConfigError, STORE_CONTRACT, bytes,
    extend::{
        ConfigSection, Facts, Judged, Located, Location, MemoryUse, Places, Section, Settling, facts, faults,
        suggestion,
    },
};
use weir_names::{ContractName, StoreName};

use super::{StoreConfig, StoresConfig};

impl ConfigSection for StoresConfig {
    const TABLE: &'static str = "store";
    const IN_BUDGET: &'static str = "the stores";
    const ABOUT: (&'static str, &'static str) = ("Key-value stores: [below](#storename).", "");
    type Draft = Vec<(Located<StoreName>, (StoreConfig, Places))>;
    type Locations = BTreeMap<StoreName, Location>;

    fn read(draft: &mut Self::Draft, file: &mut Section<'_, '_>) {
        draft.extend(file.named_tables(Self::TABLE, None, str::parse, || Some(StoreConfig::default())));
    }

    fn settle(draft: Self::Draft, settling: &mut Settling<'_>) -> (Self, Self::Locations) {
        let (mut stores, mut locations) = (BTreeMap::new(), BTreeMap::new());
        for (name, (at, (config, _))) in settling.by_name(Self::TABLE, draft) {
            locations.insert(name.clone(), at);
            stores.insert(name, config);
        }
        (Self(stores), locations)
    }

    fn check_values(&self) -> Vec<ConfigError> {
        self.0.iter().flat_map(|(name, config)| faults(config, &format!("store.{name}"))).collect()
    }

    fn check(&self, judged: &Judged<'_>, at: &Self::Locations, errors: &mut Vec<ConfigError>) {
        if judged.config().main.data_dir.is_none()
            && let Some(name) = self.0.keys().next()
        {
            let message =
                format!("`store.{name}` needs `main.data-dir`, the directory of the stores' files: add it");
            errors.push(ConfigError::new("main.data-dir", message, at.get(name).cloned()));
        }
    }

    fn check_names(&self, judged: &Judged<'_>, _at: &Self::Locations, errors: &mut Vec<ConfigError>) {
        for granted in judged.granted() {
            for (item, grant) in granted.stores.iter().enumerate() {
                let name = &grant.name;
                if self.0.contains_key(name) {
                    continue;
                }
                let known = self.0.keys().map(StoreName::as_str);
                let help = suggestion(name.as_str(), known, errors, format!("add it, as `[store.{name}]`"));
                let key = format!("{}.grants.stores", granted.path);
                let message = format!("in `{key}`: there is no store `{name}`: {help}");
                let location = granted.place_of_store(item);
                errors.push(ConfigError::new(key, message, location));
            }
        }
    }

    fn memory(&self, at: &Self::Locations) -> Vec<MemoryUse> {
        let part = |(name, config): (&StoreName, &StoreConfig)| MemoryUse {
            what: format!("store `{name}` comes"),
            location: at.get(name).cloned(),
            bytes: config.cache,
            factors: format!("`cache` {}", bytes(config.cache)),
        };
        self.0.iter().map(part).collect()
    }

    fn serves() -> Vec<ContractName> {
        STORE_CONTRACT.parse().into_iter().collect()
    }

    fn facts(&self) -> BTreeMap<String, Facts> {
        self.0.iter().map(|(name, config)| (format!("store.{name}"), facts(config))).collect()
    }
}
