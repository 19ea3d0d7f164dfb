//! The manifest: JSON in a custom section, written by the SDK and checked here.

use std::str::FromStr;

use semver::Version;
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use weir_config::{DirMode, GuestPath, NetGrant};
use weir_names::{ContractName, ExtensionId, QueueName, TopicPattern, harmless};

use super::manifest_in;

/// How many bytes of a version are kept.
const MAX_VERSION: usize = 64;

/// The author's account of an extension and its needs. It grants nothing: the operator's file decides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Manifest {
    /// The id that the author suggests.
    pub id: ExtensionId,
    /// The extension's own version.
    #[serde(deserialize_with = "version")]
    pub version: String,
    /// The oldest version of the extension that can read what this one writes. All can if it is not stated.
    #[serde(
        rename = "data-since",
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "semantic_version"
    )]
    pub data_since: Option<String>,
    /// Contracts that the extension serves.
    #[serde(default)]
    pub fulfills: Vec<ContractName>,
    /// Contracts that the extension cannot do without.
    #[serde(default)]
    pub requires: Vec<ContractName>,
    /// Contracts that the extension calls if they are there.
    #[serde(default)]
    pub wants: Vec<ContractName>,
    /// Topics that the extension publishes to.
    #[serde(default)]
    pub publishes: Vec<TopicPattern>,
    /// Topics that the extension subscribes to.
    #[serde(default)]
    pub subscribes: Vec<TopicPattern>,
    /// Queues that the extension puts jobs into.
    #[serde(default)]
    pub puts: Vec<QueueName>,
    /// Queues that the extension takes jobs from.
    #[serde(default)]
    pub takes: Vec<QueueName>,
    /// What the extension reaches besides channels.
    #[serde(default)]
    pub grants: Needs,
}

/// What an extension reaches besides channels, by its author's account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Needs {
    /// Directories that the extension opens.
    pub dirs: Vec<DirNeed>,
    /// Environment variables that the extension reads.
    pub env: Vec<String>,
    /// Network addresses that the extension connects to.
    #[serde(deserialize_with = "texts::<NetGrant, _>")]
    pub net: Vec<String>,
}

/// A directory that an extension opens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DirNeed {
    /// The directory's path as the extension sees it.
    #[serde(deserialize_with = "text::<GuestPath, _>")]
    pub guest: String,
    /// `ro`, or `rw` if the extension writes there.
    #[serde(deserialize_with = "text::<DirMode, _>")]
    pub mode: String,
}

/// What a manifest says of the extension's data, unchecked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[non_exhaustive]
pub struct DataStatement {
    /// The extension's own version.
    #[serde(deserialize_with = "stated")]
    pub version: Option<String>,
    /// The oldest version of the extension that can read what this one writes.
    #[serde(deserialize_with = "stated")]
    pub data_since: Option<String>,
}

impl DataStatement {
    /// Reads the statement of a component, or returns what is wrong with its manifest. What has no manifest states nothing.
    /// A manifest that cannot be used otherwise still states this.
    pub(crate) fn of(component: &[u8]) -> Result<Self, String> {
        let read = |section: &[u8]| serde_json::from_slice(section).map_err(|error| error.to_string());
        manifest_in(component, read).map(Option::unwrap_or_default)
    }
}

impl Manifest {
    /// Reads the section, or returns what is wrong with it.
    pub(crate) fn parse(section: &[u8]) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Schema {
            schema: u32,
        }

        let Schema { schema } = serde_json::from_slice(section).map_err(|error| error.to_string())?;
        if schema != 1 {
            return Err(format!("it has schema {schema}, and this version of Weir knows schema 1"));
        }
        serde_json::from_slice(section).map_err(|error| error.to_string())
    }
}

fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(harmless(&String::deserialize(deserializer)?, MAX_VERSION))
}

/// Reads a text. `null` is none.
fn stated<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    String::deserialize(deserializer).map(Some)
}

fn semantic_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.len() <= MAX_VERSION && Version::parse(&text).is_ok() {
        return Ok(Some(text));
    }
    let text = harmless(&text, MAX_VERSION);
    Err(Error::custom(format_args!("`data-since` is `{text}`, which is no version: write it as in `1.2.0`")))
}

fn text<'de, T, D>(deserializer: D) -> Result<String, D::Error>
where
    T: FromStr<Err: std::fmt::Display>,
    D: Deserializer<'de>,
{
    checked::<T, _>(String::deserialize(deserializer)?)
}

fn texts<'de, T, D>(deserializer: D) -> Result<Vec<String>, D::Error>
where
    T: FromStr<Err: std::fmt::Display>,
    D: Deserializer<'de>,
{
    Vec::<String>::deserialize(deserializer)?.into_iter().map(checked::<T, _>).collect()
}

/// Returns the text, if it can be parsed as a `T`.
fn checked<T: FromStr<Err: std::fmt::Display>, E: Error>(text: String) -> Result<String, E> {
    match text.parse::<T>() {
        Ok(_) => Ok(text),
        Err(error) => Err(E::custom(error)),
    }
}
