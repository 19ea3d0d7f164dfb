//! `settings@1`: the device's settings, each with a fixed type.
//!
//! A setting's key is a segment of a topic: letters, digits, `-` and `_`. A new value must have the type of
//! the old one; otherwise the answer is the code `wrong-type`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use weir_sdk::Shape;

weir_sdk::contract! {
    /// The device's settings, each with a fixed type.
    pub const CONTRACT = "settings@1";

    /// A setting.
    pub const GET: fn(Key) -> Setting = "get", errors { "not-found": "No setting has this key." };
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

/// A setting's key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Shape)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// The key.
    pub key: String,
}

/// A setting's key and its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Shape)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// A boolean, a number or a string.
    pub value: Value,
}

/// A setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Shape)]
pub struct Setting {
    /// Its value.
    pub value: Value,
    /// Its type.
    pub r#type: Type,
}

/// The types of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Shape)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Shape)]
pub struct Previous {
    /// Its value. None, in JSON `null`, if it had none.
    pub previous: Option<Value>,
}

/// The prefix of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Shape)]
#[serde(default, deny_unknown_fields)]
pub struct Prefix {
    /// The prefix. The default fits every key.
    pub prefix: String,
}

/// Some settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Shape)]
pub struct Settings {
    /// By key.
    pub settings: BTreeMap<String, Setting>,
}

/// The event of a setting's new value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Shape)]
pub struct Changed {
    /// The key.
    pub key: String,
    /// The new value.
    pub value: Value,
    /// The old value. None, in JSON `null`, if it had none.
    pub previous: Option<Value>,
}
