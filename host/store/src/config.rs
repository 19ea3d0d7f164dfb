//! The configuration of stores: the table `[store.NAME]`, its keys, and its part in the checks of a configuration.

use std::{collections::BTreeMap, fmt, ops::RangeInclusive, time::Duration};

use weir_config::{
    ConfigError, STORE_CONTRACT, Shape, bytes,
    extend::{
        ConfigSection, Facts, Judged, Located, Location, MemoryUse, Places, Section, Settling, Table, facts,
        faults,
        kind::{flag, number},
        suggestion,
    },
    keys,
};
use weir_names::{ContractName, StoreName};

use crate::FILE_TIMES;

/// The fewest bytes of a store.
const LEAST: u64 = 64 << 10;

/// 64 KiB to 1 TiB.
const BYTES: Shape = Shape::Size(LEAST..=1 << 40);

/// 1 KiB to 64 MiB.
const VALUE_SIZE: Shape = Shape::Size(1 << 10..=64 << 20);

/// 64 KiB to 1 GiB.
const CACHE: Shape = Shape::Size(64 << 10..=1 << 30);

const DURABLE_WITHIN: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(60 * 60);

/// The stores of a [`Config`](weir_config::Config), by name.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct StoresConfig(pub BTreeMap<StoreName, StoreConfig>);

/// A store: its bounds, and what holds when a write is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreConfig {
    /// The most bytes of all entries: 64 KiB to 1 TiB. Each counts its owner, its key, its value and
    /// [`ENTRY_BYTES`](crate::ENTRY_BYTES); above 2 KiB, or with more than 512 bytes of owner and key, the next power
    /// of two, and at least 4 KiB. The file has at most [`FILE_TIMES`] times as many. Default: 16 MiB.
    pub bytes: u64,
    /// The most keys: 1 to 100,000,000. Default: 100,000.
    pub keys: u32,
    /// The most bytes of one value: 1 KiB to 64 MiB. Default: 1 MiB.
    pub value_size: u64,
    /// Memory for pages of the file, in bytes: 64 KiB to 1 GiB. Default: 1 MiB.
    pub cache: u64,
    /// How long a write may be answered and not on disk: 1 ms to 1 hour. With `None`, it is on disk before its answer.
    pub durable_within: Option<Duration>,
    /// Whether all users of the store have the same keys. Otherwise each has keys of its own.
    pub shared: bool,
    /// Whether each change is published under `store.changed.NAME`.
    pub events: bool,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            bytes: 16 << 20,
            keys: 100_000,
            value_size: 1 << 20,
            cache: 1 << 20,
            durable_within: None,
            shared: false,
            events: false,
        }
    }
}

impl StoreConfig {
    /// The most bytes that the store's file may have.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.bytes.max(LEAST).saturating_mul(FILE_TIMES)
    }
}

impl Table for StoreConfig {
    keys! {
        StoreConfig;
        /// Bytes of all [entries](store.md#what-counts). Each counts its owner, key, value and 128 bytes; above 2 KiB,
        /// or with a long key, the next power of two from 4 KiB. The file has at most four times as many.
        "bytes" bytes = number(BYTES);
        /// Keys.
        "keys" keys = number(Shape::Count(1..=100_000_000));
        /// Bytes of one value.
        "value-size" value_size = number(VALUE_SIZE);
        /// Memory for pages of the file. A change holds once the file is opened anew.
        "cache" cache = number(CACHE);
        /// How long a write may be answered and not on disk. A crash or a power cut then loses what was answered last.
        "durable-within" durable_within = number(Shape::Time(DURABLE_WITHIN)), default("each write is on disk before its answer");
        /// Whether all that are granted the store have the same keys. Otherwise each extension and each directory of
        /// hooks has keys of its own.
        "shared" shared = flag();
        /// Whether each change is published under `store.changed.NAME`.
        "events" events = flag();
    }
}

impl FromIterator<(StoreName, StoreConfig)> for StoresConfig {
    fn from_iter<I: IntoIterator<Item = (StoreName, StoreConfig)>>(stores: I) -> Self {
        Self(stores.into_iter().collect())
    }
}

impl fmt::Debug for StoresConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

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
