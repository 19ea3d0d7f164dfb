//! `local.storage@1`: values that survive power cuts.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_sdk::{Empty, Shape};

weir_sdk::contract! {
    /// Values that survive power cuts.
    pub const CONTRACT = "local.storage@1";

    /// The value of a key, as on disk.
    pub const GET: fn(Key) -> Found = "get", errors { "invalid-argument": "A key has 1 to 256 bytes." };
    /// Gives a key a value. Answered when the value is on disk.
    pub const SET: fn(Entry) -> Empty = "set", errors {
        "invalid-argument": "A key has 1 to 256 bytes.",
        "too-large": "A value has at most 1 MiB as JSON.",
        "full": "All keys and values together would have more than `max-bytes`.",
        "io": "The disk did not take the change. It is not visible, but may be there after a restart.",
    };
    /// Deletes a key. Answered when that is on disk.
    pub const DELETE: fn(Key) -> Deleted = "delete", errors {
        "invalid-argument": "A key has 1 to 256 bytes.",
        "io": "The disk did not take the change. It is not visible, but may be there after a restart.",
    };
    /// The keys that begin with a prefix.
    pub const LIST: fn(Prefix) -> Keys = "list", errors {
        "too-large": "The keys have more than 524,288 bytes together: use a longer prefix.",
    };
}

/// A key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Shape)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// The key.
    pub key: String,
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Shape)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Any value. A `null` reads as no value.
    pub value: Value,
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Shape)]
pub struct Found {
    /// None, in JSON `null`, if the key has no value.
    pub value: Option<Value>,
}

/// The result of a deletion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Shape)]
pub struct Deleted {
    /// Whether the key had a value.
    pub existed: bool,
}

/// The prefix of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Shape)]
#[serde(default, deny_unknown_fields)]
pub struct Prefix {
    /// The prefix. The default fits every key.
    pub prefix: String,
}

/// Some keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Shape)]
pub struct Keys {
    /// In the order of their bytes.
    pub keys: Vec<String>,
}
