//! What a component says of its data: its own version, and the oldest version that can read what it writes.

use std::cmp::Ordering;

use semver::Version;
use serde::{Deserialize, Serialize};

/// The longest version that is read.
const MAX_VERSION: usize = 64;

/// What a component says of its data. One that says nothing writes what every version can read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Form {
    /// Its own version, if that is a semantic version.
    pub(crate) version: Option<String>,
    /// The oldest version that can read what it writes.
    pub(crate) data_since: Option<String>,
}

/// A component says of its data what cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its manifest has `data-since` {data_since:?}, which must be a version as in `1.2.0`, and not above its own version {version:?}"
)]
pub struct FormError {
    data_since: String,
    version: String,
}

impl Form {
    /// Reads `version` and `data-since` of a manifest.
    ///
    /// # Errors
    ///
    /// Fails if `data_since` or, beside it, `version` is no semantic version, or `version` could not read what it writes
    /// itself.
    pub fn new(version: Option<&str>, data_since: Option<&str>) -> Result<Self, FormError> {
        let own = version.filter(|version| parsed(version).is_some()).map(ToOwned::to_owned);
        let form = Self { version: own, data_since: data_since.map(ToOwned::to_owned) };
        let says_what_can_be =
            data_since.is_none_or(|since| parsed(since).is_some() && form.reads(Some(since)));
        says_what_can_be.then_some(form).ok_or_else(|| FormError {
            data_since: short(data_since.unwrap_or_default()),
            version: short(version.unwrap_or_default()),
        })
    }

    /// Whether it can read data that only this version and later ones can read.
    pub(crate) fn reads(&self, since: Option<&str>) -> bool {
        since.is_none_or(|since| !is_later(Some(since), self.version.as_deref()))
    }
}

/// Whether a version comes after another one. What is unknown comes before all others.
pub(crate) fn is_later(version: Option<&str>, other: Option<&str>) -> bool {
    match (version.and_then(parsed), other.and_then(parsed)) {
        (Some(version), Some(other)) => version.cmp_precedence(&other) == Ordering::Greater,
        (version, _) => version.is_some(),
    }
}

fn parsed(text: &str) -> Option<Version> {
    (text.len() <= MAX_VERSION).then(|| text.parse().ok()).flatten()
}

fn short(text: &str) -> String {
    weir_names::harmless(text, MAX_VERSION)
}
