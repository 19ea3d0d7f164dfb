//! The operations that carry values. A value stays the text that came: its numbers lose nothing, and a small
//! text cannot become a large tree in memory.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use weir_contracts::storage;
use weir_sdk::{Empty, Operation};

/// As `storage::GET`.
pub(crate) const GET: Operation<storage::Key, Found> = storage::CONTRACT.operation(storage::GET.name());
/// As `storage::SET`.
pub(crate) const SET: Operation<Entry, Empty> = storage::CONTRACT.operation(storage::SET.name());

/// As `storage::Entry`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) value: Box<RawValue>,
}

/// As `storage::Found`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Found {
    pub(crate) value: Option<Box<RawValue>>,
}
