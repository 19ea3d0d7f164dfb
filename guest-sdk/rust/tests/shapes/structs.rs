//! Structs of every form.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_sdk::Shape;

/// A thing.
///
/// It has a `"name"`.
///   - indented
#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) struct Documented {
    /// Its name.
    name: String,
    /// Its size,
    /// on two lines.
    size: Option<u32>,
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) struct Plain {
    a: u8,
    b: bool,
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
#[serde(deny_unknown_fields)]
pub(crate) struct Strict {
    a: u8,
}

#[derive(Default, Serialize, Deserialize, JsonSchema, Shape)]
#[serde(default)]
pub(crate) struct Defaults {
    a: u8,
    b: String,
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) struct SomeDefaults {
    #[serde(default)]
    a: u8,
    #[serde(default = "five")]
    b: u8,
    c: u8,
}

fn five() -> u8 {
    5
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
#[serde(rename = "Other")]
pub(crate) struct Renamed {
    #[serde(rename = "type", alias = "kind")]
    a: u8,
    #[serde(rename(serialize = "x-y", deserialize = "x-y"))]
    b: u8,
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Camel {
    first_name: String,
    #[serde(rename = "LAST")]
    last_name: String,
    _odd_: u8,
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
#[serde(rename_all(serialize = "kebab-case", deserialize = "kebab-case"))]
pub(crate) struct Kebab {
    first_name: String,
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) struct Screaming {
    first_name: String,
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) struct Skipped {
    a: u8,
    #[serde(skip)]
    _b: u8,
    #[serde(skip_serializing, skip_deserializing)]
    _c: u8,
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) struct Optional {
    a: Option<u8>,
    b: Option<Box<Plain>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    c: Vec<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    d: Option<serde_json::Value>,
}

#[derive(Serialize, Shape)]
pub(crate) struct SometimesWritten {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    a: Vec<u8>,
}

/// Nothing.
#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) struct Unit;

/// A number of something.
#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) struct Id(u64);

/// An id.
#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) struct Wrapped(Id);

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) struct WrappedOption(
    /// Perhaps.
    Option<Plain>,
);

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
#[serde(transparent)]
pub(crate) struct Transparent {
    only: Vec<u8>,
}

/// With a comment.
#[derive(Serialize, Deserialize, JsonSchema, Shape)]
#[serde(transparent)]
pub(crate) struct TransparentDocumented {
    only: Vec<u8>,
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) struct Pair(
    /// The first.
    u8,
    Option<Plain>,
);

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) struct NoPlaces();

/// Contains itself.
#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) struct Tree {
    children: Vec<Tree>,
    parent: Option<Box<Self>>,
    named: BTreeMap<String, Self>,
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) struct Even {
    next: Option<Box<Odd>>,
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) struct Odd {
    next: Option<Box<Even>>,
}

/// A page of a list.
#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) struct Page<T> {
    items: Vec<T>,
    next: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) struct Pages {
    of_plain: Page<Plain>,
    of_numbers: Page<u8>,
    of_words: Page<Vec<String>>,
    of_more: Option<Page<u8>>,
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) struct Borrowed<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    key: &'a str,
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) struct Other {
    time: Duration,
    times: (Duration, Option<Duration>),
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) struct Nested {
    /// Of another type.
    plain: Plain,
    any: serde_json::Value,
    /// Anything.
    anything: serde_json::Value,
    deep: Vec<BTreeMap<String, [Strict; 2]>>,
}

#[doc = "Quotes `\"`, a backslash \\, a tab \t, and ümläuts 🦀."]
#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) struct Escapes {
    #[serde(rename = "a \"quoted\" \\ name\n")]
    a: u8,
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) struct Raw {
    r#type: u8,
    r#fn: Option<r#Strict>,
}

#[doc = "With the attribute."]
#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) struct Described {
    /** In a block. */
    a: u8,
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) struct As {
    #[serde(with = "text")]
    #[schemars(with = "Option<String>")]
    #[shape(as = "Option<String>")]
    a: u8,
}

mod text {
    pub(super) fn serialize<S: serde::Serializer>(value: &u8, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_some(&value.to_string())
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
        let text: Option<String> = serde::Deserialize::deserialize(deserializer)?;
        text.unwrap_or_default().parse().map_err(serde::de::Error::custom)
    }
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) struct Empty {}
