//! Values of limits in JSON: in units that people use, each with its name.

use std::{fmt, time::Duration};

use serde::{Serialize, Serializer};

use super::{LimitKey, LimitSource};

/// What is allowed or used. In JSON each is a number: times are in seconds, shares go from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum LimitValue {
    /// Bytes, messages, requests, units of fuel or lines a second.
    Count(u64),
    /// A length of time.
    Time(Duration),
    /// A share of the worker thread's time, from 0 to 1.
    Share(f64),
}

/// What the numbers of a limit count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitUnit {
    /// Bytes.
    Bytes,
    /// A length of time, kept in nanoseconds.
    Seconds,
    /// A share of the worker thread's time, kept in hundredths of a percent.
    Share,
    /// Units of fuel.
    Fuel,
    /// Requests.
    Requests,
    /// Messages.
    Messages,
    /// Lines a second.
    LinesPerSecond,
    /// Things that the name of the limit says.
    Count,
}

/// What a [`LimitHit`] can name: a key, or a limit that nobody sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitName {
    text: &'static str,
    unit: LimitUnit,
}

/// A limit that an extension hit. In JSON it has the unit of its numbers beside it, and times are in
/// seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitHit {
    /// The key that sets it, or the name under which it is documented.
    pub name: LimitName,
    /// What was used, in the limit's own unit: nanoseconds where that is time.
    pub used: u64,
    /// What was allowed, in the same unit.
    pub allowed: u64,
}

impl LimitHit {
    /// A limit, and two numbers in its own unit.
    #[must_use]
    pub fn new(limit: impl Into<LimitName>, used: u64, allowed: u64) -> Self {
        Self { name: limit.into(), used, allowed }
    }
}

impl LimitName {
    /// A limit of this name, whose numbers have this unit.
    #[must_use]
    pub const fn new(text: &'static str, unit: LimitUnit) -> Self {
        Self { text, unit }
    }

    /// The name, as it is documented.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.text
    }

    /// What its numbers count.
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
    /// Its name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Seconds => "s",
            Self::Share => "share",
            Self::Fuel => "fuel",
            Self::Requests => "requests",
            Self::Messages => "messages",
            Self::LinesPerSecond => "lines/s",
            Self::Count => "count",
        }
    }

    /// A number as it is kept, as people use it.
    #[must_use]
    pub fn value(self, number: u64) -> LimitValue {
        match self {
            Self::Seconds => LimitValue::Time(Duration::from_nanos(number)),
            Self::Share => LimitValue::Share(fraction(number)),
            Self::Bytes
            | Self::Fuel
            | Self::Requests
            | Self::Messages
            | Self::LinesPerSecond
            | Self::Count => LimitValue::Count(number),
        }
    }
}

/// Of hundredths of a percent.
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

/// A length of time as JSON has it.
///
/// # Errors
///
/// Those of the serializer.
pub fn seconds<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration.map(|duration| duration.as_secs_f64()).serialize(serializer)
}

/// What kind it is and what that has, for programs, and all of it for people.
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
