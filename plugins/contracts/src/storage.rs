//! `local.storage@1`: values that survive power cuts.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_sdk::{Contract, Empty, Operation};

/// The contract.
pub const CONTRACT: Contract = Contract::new("local.storage@1");

/// The value of a key, as on disk.
pub const GET: Operation<Key, Found> = CONTRACT.operation("get");
/// Gives a key a value. Answered when the value is on disk.
pub const SET: Operation<Entry, Empty> = CONTRACT.operation("set");
/// Deletes a key. Answered when that is on disk.
pub const DELETE: Operation<Key, Deleted> = CONTRACT.operation("delete");
/// The keys that begin with a prefix.
pub const LIST: Operation<Prefix, Keys> = CONTRACT.operation("list");

/// A key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// The key.
    pub key: String,
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Any value. A `null` reads as no value.
    pub value: Value,
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// None, in JSON `null`, if the key has no value.
    pub value: Option<Value>,
}

/// The result of a deletion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deleted {
    /// Whether the key had a value.
    pub existed: bool,
}

/// The prefix of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prefix {
    /// The prefix. The default fits every key.
    pub prefix: String,
}

/// Some keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    /// In the order of their bytes.
    pub keys: Vec<String>,
}
