//! What Main says of stores.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(crate) struct Stores {
    pub(crate) stores: Vec<StoreStatus>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct StoreStatus {
    pub(crate) name: String,
    pub(crate) shared: bool,
    pub(crate) durable_within: Option<String>,
    pub(crate) keys: u64,
    pub(crate) max_keys: u64,
    pub(crate) bytes: u64,
    pub(crate) max_bytes: u64,
    pub(crate) file_bytes: u64,
    pub(crate) error: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Entries {
    pub(crate) entries: Vec<Entry>,
    pub(crate) next: Option<NextEntry>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Entry {
    pub(crate) owner: String,
    pub(crate) key: String,
    pub(crate) bytes: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct NextEntry {
    pub(crate) owner: String,
    pub(crate) key: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Existed {
    pub(crate) existed: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Compacted {
    pub(crate) file_bytes_before: u64,
    pub(crate) file_bytes: u64,
}
