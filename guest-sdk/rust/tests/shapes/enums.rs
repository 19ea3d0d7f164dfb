//! Enums in each of serde's ways to tell variants apart.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_sdk::Shape;

use crate::structs::{Plain, Strict};

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) enum Words {
    First,
    SecondWord,
}

/// Words.
#[derive(Serialize, Deserialize, JsonSchema, Shape)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DocumentedWords {
    /// The first.
    First,
    /// The second.
    SecondWord,
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SomeDocumentedWords {
    /// The first.
    First,
    SecondWord,
    ThirdWord,
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
pub(crate) enum RenamedWords {
    #[serde(rename = "1st")]
    First,
    SecondWord,
}

/// In each form.
#[derive(Serialize, Deserialize, JsonSchema, Shape)]
#[serde(rename_all = "camelCase")]
pub(crate) enum External {
    NoContent,
    /// With a comment.
    Documented,
    /// A type.
    OneType(
        /// In it.
        Plain,
    ),
    Number(u8),
    Perhaps(Option<Strict>),
    TwoTypes(u8, String),
    /// With fields.
    #[serde(rename_all = "kebab-case")]
    Fields {
        /// The first.
        the_first: u8,
        the_second: Option<u8>,
        #[serde(default)]
        the_third: u8,
    },
    NoFields {},
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
#[serde(tag = "type")]
pub(crate) enum Internal {
    /// No fields.
    NoContent,
    /// With fields.
    Fields {
        /// The first.
        first: u8,
        second: Option<u8>,
    },
    #[serde(rename = "none")]
    NoFields {},
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum InternalOfTypes {
    /// Plain.
    Plain(Plain),
    Strict(Strict),
    Documented(crate::structs::Documented),
    Boxed(Box<Plain>),
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
#[serde(tag = "type")]
pub(crate) enum TaggedMap {
    Map(BTreeMap<String, u8>),
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
#[serde(tag = "t", content = "c")]
pub(crate) enum Adjacent {
    NoContent,
    /// A type.
    OneType(
        /// In it.
        Plain,
    ),
    TwoTypes(u8, String),
    Fields {
        first: u8,
    },
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
#[serde(tag = "t", content = "c", deny_unknown_fields)]
pub(crate) enum StrictAdjacent {
    NoContent,
    Fields { first: u8 },
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
#[serde(tag = "t", deny_unknown_fields)]
pub(crate) enum StrictInternal {
    NoContent,
    Fields { first: u8 },
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
#[serde(rename_all_fields = "UPPERCASE")]
pub(crate) enum FieldNames {
    Fields { the_first: u8 },
}

/// Contains itself.
#[derive(Serialize, Deserialize, JsonSchema, Shape)]
#[serde(tag = "is", rename_all = "lowercase")]
pub(crate) enum Recursive {
    Leaf,
    Branch { left: Box<Self>, right: Box<Recursive>, more: Vec<Self> },
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) enum SkippedVariant {
    Known,
    #[serde(skip)]
    _Unknown,
}

#[derive(Serialize, Deserialize, JsonSchema, Shape)]
pub(crate) enum One {
    Only(u8),
}

#[derive(Serialize, Deserialize, Shape)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OpenWords {
    On,
    #[serde(other)]
    Unknown,
}

#[derive(Serialize, Deserialize, Shape)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum OpenTagged {
    A,
    #[serde(other)]
    Unknown,
}
