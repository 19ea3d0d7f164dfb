//! The configuration of stores.

mod section;

use std::{collections::BTreeMap, fmt, ops::RangeInclusive, time::Duration};

use weir_config::{
    Shape,
    extend::{
        Table,
        kind::{flag, number},
    },
    keys,
};
use weir_names::StoreName;

use crate::FILE_TIMES;

/// The fewest bytes of a store.
const LEAST: u64 = 64 << 10;

/// 64 KiB to 1 TiB.
const BYTES: Shape = Shape::Size(LEAST..=1 << 40);

const KEYS: RangeInclusive<u32> = 1..=100_000_000;

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
    /// Bytes of all entries: 64 KiB to 1 TiB. Each counts its owner, its key, its value and
    /// [`ENTRY_BYTES`](crate::ENTRY_BYTES); above 2 KiB, or with more than 512 bytes of owner and key, the next power of
    /// two, and at least 4 KiB. The file has at most [`FILE_TIMES`] times as many. Default: 16 MiB.
    pub bytes: u64,
    /// Keys: 1 to 100,000,000. Default: 100,000.
    pub keys: u32,
    /// Bytes of one value: 1 KiB to 64 MiB. Default: 1 MiB.
    pub value_size: u64,
    /// Memory for pages of the file, in bytes: 64 KiB to 1 GiB. Default: 1 MiB.
    pub cache: u64,
    /// How long a write may be answered and not on disk: 1 ms to 1 hour. `None`: it is on disk first.
    pub durable_within: Option<Duration>,
    /// Whether all that use it have the same keys. Otherwise each has keys of its own.
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
    /// Bytes that the file may have.
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
        "keys" keys = number(Shape::counts(KEYS));
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
