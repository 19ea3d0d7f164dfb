//! `settings@1`: the device's settings, each with a fixed type.
//!
//! A setting's key is a segment of a topic: letters, digits, `-` and `_`. A new value must have the type of
//! the old one; otherwise the answer is the code `wrong-type`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_sdk::{Contract, Operation, Topic};

/// The contract.
pub const CONTRACT: Contract = Contract::new("settings@1");

/// Changes, each published under `settings.changed.<key>`: `CHANGED.at(key)`.
pub const CHANGED: Topic<Changed> = Topic::new("settings.changed.>");

/// A setting. The code `not-found` if there is none.
pub const GET: Operation<Key, Setting> = CONTRACT.operation("get");
/// Gives a setting a value. Publishes the change if the value is new.
pub const SET: Operation<Entry, Previous> = CONTRACT.operation("set");
/// The settings with a prefix of their keys.
pub const LIST: Operation<Prefix, Settings> = CONTRACT.operation("list");

/// A setting's key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// The key.
    pub key: String,
}

/// A setting's key and its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// A boolean, a number or a string.
    pub value: Value,
}

/// A setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Its value.
    pub value: Value,
    /// Its type.
    pub r#type: Type,
}

/// The types of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Type {
    /// True or false.
    Bool,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// A text.
    String,
}

/// A setting before its change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Previous {
    /// Its value. None, in JSON `null`, if it had none.
    pub previous: Option<Value>,
}

/// The prefix of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prefix {
    /// The prefix. The default fits every key.
    pub prefix: String,
}

/// Some settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// By key.
    pub settings: BTreeMap<String, Setting>,
}

/// The event of a setting's new value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Changed {
    /// The key.
    pub key: String,
    /// The new value.
    pub value: Value,
    /// The old value. None, in JSON `null`, if it had none.
    pub previous: Option<Value>,
}
