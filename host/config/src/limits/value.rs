//! Values of limits in JSON, in common units.

use std::{fmt, time::Duration};

use serde::{Serialize, Serializer};

use super::{LimitKey, LimitSource};

/// A limit or its use. A number in JSON: times in seconds, shares from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum LimitValue {
    /// Bytes, messages, requests, fuel or lines per second.
    Count(u64),
    /// A duration.
    Time(Duration),
    /// A share of the worker thread's time, from 0 to 1.
    Share(f64),
}

/// The unit of a limit's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitUnit {
    /// Bytes.
    Bytes,
    /// A duration, kept in nanoseconds.
    Seconds,
    /// A share of the worker thread's time, kept in hundredths of a percent.
    Share,
    /// Units of fuel.
    Fuel,
    /// Requests.
    Requests,
    /// Messages.
    Messages,
    /// Requests per second.
    RequestsPerSecond,
    /// Lines per second.
    LinesPerSecond,
    /// Things that the limit's name says.
    Count,
}

/// The limit of a [`LimitHit`]: a key, or a fixed limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitName {
    text: &'static str,
    unit: LimitUnit,
}

/// A limit that an extension hit. JSON adds the unit, and has times in seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitHit {
    /// The key, or the documented name.
    pub name: LimitName,
    /// The use, in the limit's unit; nanoseconds for times.
    pub used: u64,
    /// The limit, in the same unit.
    pub allowed: u64,
}

impl LimitHit {
    /// A hit with numbers in the limit's unit.
    #[must_use]
    pub fn new(limit: impl Into<LimitName>, used: u64, allowed: u64) -> Self {
        Self { name: limit.into(), used, allowed }
    }
}

impl LimitName {
    /// A name with the unit of its numbers.
    #[must_use]
    pub const fn new(text: &'static str, unit: LimitUnit) -> Self {
        Self { text, unit }
    }

    /// The documented name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.text
    }

    /// The unit of its numbers.
    #[must_use]
    pub const fn unit(self) -> LimitUnit {
        self.unit
    }
}

impl From<LimitKey> for LimitName {
    fn from(key: LimitKey) -> Self {
        Self::new(key.name, key.unit)
    }
}

impl fmt::Display for LimitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

impl LimitUnit {
    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Seconds => "s",
            Self::Share => "share",
            Self::Fuel => "fuel",
            Self::Requests => "requests",
            Self::Messages => "messages",
            Self::RequestsPerSecond => "requests/s",
            Self::LinesPerSecond => "lines/s",
            Self::Count => "count",
        }
    }

    /// Converts a number to a common unit.
    #[must_use]
    pub fn value(self, number: u64) -> LimitValue {
        match self {
            Self::Seconds => LimitValue::Time(Duration::from_nanos(number)),
            Self::Share => LimitValue::Share(fraction(number)),
            Self::Bytes
            | Self::Fuel
            | Self::Requests
            | Self::Messages
            | Self::RequestsPerSecond
            | Self::LinesPerSecond
            | Self::Count => LimitValue::Count(number),
        }
    }
}

/// From hundredths of a percent.
fn fraction(basis_points: u64) -> f64 {
    f64::from(u32::try_from(basis_points).unwrap_or(u32::MAX)) / 10_000.0
}

impl Serialize for LimitValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => serializer.serialize_u64(*count),
            Self::Time(time) => serializer.serialize_f64(time.as_secs_f64()),
            Self::Share(share) => serializer.serialize_f64(*share),
        }
    }
}

impl Serialize for LimitHit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Json<'a> {
            name: &'a str,
            unit: &'static str,
            used: LimitValue,
            allowed: LimitValue,
        }
        let LimitName { text, unit } = self.name;
        let (used, allowed) = (unit.value(self.used), unit.value(self.allowed));
        Json { name: text, unit: unit.name(), used, allowed }.serialize(serializer)
    }
}

/// Serializes a duration in seconds.
///
/// # Errors
///
/// Those of the serializer.
pub fn seconds<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration.map(|duration| duration.as_secs_f64()).serialize(serializer)
}

/// Serializes the kind and details for programs, and a text for people.
///
/// # Errors
///
/// Those of the serializer.
pub fn source<S: Serializer>(source: &LimitSource, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Json<'a> {
        kind: &'static str,
        text: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        file: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<usize>,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
    }
    let (kind, file, line, name) = match source {
        LimitSource::Class(name) => ("class", None, None, Some(name.as_str())),
        LimitSource::File { file, line } => ("file", Some(file.as_str()), Some(*line), None),
        LimitSource::Environment(name) => ("environment", None, None, Some(name.as_str())),
        LimitSource::Main(name) => ("main", None, None, Some(*name)),
        LimitSource::Program => ("program", None, None, None),
    };
    Json { kind, text: source.to_string(), file, line, name }.serialize(serializer)
}
