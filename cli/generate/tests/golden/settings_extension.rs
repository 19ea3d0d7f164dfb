//! The device's settings, each with a fixed type.
//!
//! Written by `weir generate rust --for extension` from `settings@1`: changes here do not last.

#![allow(dead_code, reason = "a contract has more than one program uses")]

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

weir_sdk::contract! {
    /// The device's settings, each with a fixed type.
    pub const CONTRACT = "settings@1";

    /// A setting.
    pub const GET: fn(Key) -> Setting = "get", errors {
        "not-found": "No setting has this key.",
    };
    /// Gives a setting a value. Publishes the change if the value is new.
    pub const SET: fn(Entry) -> Previous = "set", errors {
        "invalid-argument": "A key is 1 to 128 letters, digits, `-` and `_`; a text has at most 4096 bytes.",
        "wrong-type": "The setting has a value of another type.",
        "full": "There are 1024 settings, their keys and texts have 262,144 bytes, or storage is full.",
        "io": "Storage failed to write. The change is not visible, but may be there after a restart.",
    };
    /// The settings with a prefix of their keys.
    pub const LIST: fn(Prefix) -> Settings = "list";

    /// Changes, each published under `settings.changed.<key>`: `CHANGED.at(key)`.
    pub const CHANGED: topic(Changed) = "settings.changed.>";
}

/// Arguments of `get`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// The key.
    pub key: String,
}

/// Arguments of `set`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// A boolean, a number or a string.
    pub value: serde_json::Value,
}

/// Arguments of `list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
#[serde(deny_unknown_fields)]
pub struct Prefix {
    /// The prefix. The default fits every key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[shape(as = "String")]
    pub prefix: Option<String>,
}

/// A setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
pub struct Setting {
    /// Its value.
    pub value: serde_json::Value,
    /// Its type.
    pub r#type: Type,
}

/// The types of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, weir_sdk::Shape)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
pub struct Previous {
    /// Its value. None, in JSON `null`, if it had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<serde_json::Value>,
}

/// Some settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
pub struct Settings {
    /// By key.
    pub settings: BTreeMap<String, Setting>,
}

/// The event of a setting's new value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
pub struct Changed {
    /// The key.
    pub key: String,
    /// The new value.
    pub value: serde_json::Value,
    /// The old value. None, in JSON `null`, if it had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<serde_json::Value>,
}
