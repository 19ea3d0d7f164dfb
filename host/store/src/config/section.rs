//! The table `[store.NAME]`: its keys, and its part in the checks of a configuration.

use std::collections::BTreeMap;

use weir_config::{
    ConfigError, STORE_CONTRACT, bytes,
    extend::{
        ConfigSection, ERRORS_MAX, Facts, Judged, Located, Location, MemoryUse, Section, Settling, nearest,
    },
};
use weir_names::{ContractName, StoreName};

use super::{BYTES, CACHE, DURABLE_WITHIN, KEYS, StoreConfig, StoresConfig, VALUE_SIZE};

impl ConfigSection for StoresConfig {
    const TABLE: &'static str = "store";
    const IN_BUDGET: &'static str = "the stores";
    type Draft = Vec<(Located<StoreName>, StoreConfig)>;
    type Locations = BTreeMap<StoreName, Location>;

    fn read(draft: &mut Self::Draft, file: &mut Section<'_, '_>) {
        file.named(Self::TABLE, |section, name| draft.extend(store(section, &name)));
    }

    fn settle(draft: Self::Draft, settling: &mut Settling<'_>) -> (Self, Self::Locations) {
        let (mut stores, mut locations) = (BTreeMap::new(), BTreeMap::new());
        for (name, (at, config)) in settling.by_name(Self::TABLE, draft) {
            locations.insert(name.clone(), at);
            stores.insert(name, config);
        }
        (Self(stores), locations)
    }

    fn check_values(&self) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        for (name, config) in &self.0 {
            errors.extend(config.out_of_range().into_iter().map(|(key, what)| {
                let key = format!("store.{name}.{key}");
                let message = format!("`{key}` must be {what}");
                ConfigError::new(key, message, None)
            }));
        }
        errors
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
                // Comparing all pairs would take minutes in a hostile file, for messages that are never shown.
                let near = (errors.len() < ERRORS_MAX)
                    .then(|| nearest(name.as_str(), self.0.keys().map(StoreName::as_str)));
                let help = near.flatten().map_or_else(
                    || format!("add it, as `[store.{name}]`"),
                    |near| format!("did you mean `{near}`?"),
                );
                let key = format!("{}.grants.stores", granted.path);
                let message = format!("in `{key}`: there is no store `{name}`: {help}");
                let location = granted.locations.and_then(|at| at.store(item));
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

fn facts(config: &StoreConfig) -> Facts {
    let StoreConfig { bytes, keys, value_size, cache, durable_within, shared, events } = config;
    let mut facts = Facts::default();
    facts.size("bytes", Some(*bytes));
    facts.plain("keys", Some(keys));
    facts.size("value-size", Some(*value_size));
    facts.size("cache", Some(*cache));
    facts.time("durable-within", *durable_within);
    facts.plain("shared", Some(shared));
    facts.plain("events", Some(events));
    facts
}

/// `None` after reporting a faulty name.
fn store(section: &mut Section<'_, '_>, name: &Located<&str>) -> Option<(Located<StoreName>, StoreConfig)> {
    let bytes = section.number("bytes", &BYTES);
    let keys = section.count("keys", KEYS);
    let value_size = section.number("value-size", &VALUE_SIZE);
    let cache = section.number("cache", &CACHE);
    let durable_within = section.time("durable-within", DURABLE_WITHIN);
    let shared = section.flag("shared");
    let events = section.flag("events");

    let name = section.name(StoresConfig::TABLE, name, str::parse::<StoreName>)?;
    let new = StoreConfig::default();
    let config = StoreConfig {
        bytes: bytes.map_or(new.bytes, Located::into_value),
        keys: keys.map_or(new.keys, Located::into_value),
        value_size: value_size.map_or(new.value_size, Located::into_value),
        cache: cache.map_or(new.cache, Located::into_value),
        durable_within: durable_within.map(Located::into_value),
        shared: shared.unwrap_or(new.shared),
        events: events.unwrap_or(new.events),
    };
    Some((name, config))
}
