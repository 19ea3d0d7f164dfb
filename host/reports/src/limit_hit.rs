//! Limits that were hit, and values of limits in JSON, in common units.

use std::{borrow::Cow, fmt, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weir_metrics::nanoseconds;

/// Hundredths of a percent in the whole.
const BASIS_POINTS: f64 = 10_000.0;

/// A limit or its use. A number in JSON: times in seconds, shares from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum LimitValue {
    /// A number of bytes, messages, requests, units of fuel or other things, or of requests or lines per second.
    Count(u64),
    /// A duration.
    Time(Duration),
    /// A share of the worker thread's time, from 0 to 1.
    Share(f64),
}

/// The unit of a limit's numbers. JSON has its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitUnit {
    /// Bytes.
    Bytes,
    /// A duration, kept in nanoseconds.
    #[serde(rename = "s")]
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
    #[serde(rename = "requests/s")]
    RequestsPerSecond,
    /// Lines per second.
    #[serde(rename = "lines/s")]
    LinesPerSecond,
    /// Things that the limit's name says. Also a unit that this version does not know, in an answer of another version.
    #[serde(other)]
    Count,
}

/// The limit of a [`LimitHit`]: a key, or a fixed limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitName {
    text: Cow<'static, str>,
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
        Self { text: Cow::Borrowed(text), unit }
    }

    /// The documented name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The unit of its numbers.
    #[must_use]
    pub const fn unit(&self) -> LimitUnit {
        self.unit
    }
}

/// Limits that no operator sets.
impl LimitName {
    /// Elements of all tables.
    pub const TABLE_ELEMENTS: Self = Self::new("table-elements", LimitUnit::Count);
    /// Tables.
    pub const TABLES: Self = Self::new("tables", LimitUnit::Count);
    /// Linear memories.
    pub const MEMORIES: Self = Self::new("memories", LimitUnit::Count);
    /// Core instances.
    pub const INSTANCES: Self = Self::new("instances", LimitUnit::Count);
    /// Random bytes of one call.
    pub const RANDOM_BYTES: Self = Self::new("random-bytes", LimitUnit::Bytes);
    /// Handles of resources, its own and those of the host.
    pub const HANDLES: Self = Self::new("handles", LimitUnit::Count);
    /// Bytes that pass to the host in one call.
    pub const TRANSFER: Self = Self::new("transfer", LimitUnit::Bytes);
    /// Total output of a command, in bytes.
    pub const OUTPUT: Self = Self::new("output", LimitUnit::Bytes);
    /// Time limit of one hook.
    pub const TIMEOUT: Self = Self::new("timeout", LimitUnit::Seconds);
    /// Time limit of all hooks of a directory together.
    pub const TOTAL_TIMEOUT: Self = Self::new("total-timeout", LimitUnit::Seconds);
    /// Time limit that the caller of hooks sets.
    pub const CALL: Self = Self::new("call", LimitUnit::Seconds);
}

impl fmt::Display for LimitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl LimitUnit {
    /// Converts a number in this unit to a common unit.
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

    /// Converts a number in JSON back to this unit.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such a cast saturates")]
    fn number(self, value: f64) -> u64 {
        match self {
            Self::Seconds => nanoseconds(Duration::try_from_secs_f64(value).unwrap_or_default()),
            Self::Share => (value * BASIS_POINTS).round() as u64,
            _ => value as u64,
        }
    }
}

/// The share that is this many hundredths of a percent.
fn fraction(basis_points: u64) -> f64 {
    f64::from(u32::try_from(basis_points).unwrap_or(u32::MAX)) / BASIS_POINTS
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

/// A [`LimitHit`] in JSON.
#[derive(Deserialize, Serialize)]
struct Json<N> {
    name: Cow<'static, str>,
    unit: LimitUnit,
    used: N,
    allowed: N,
}

impl Serialize for LimitHit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let LimitName { text: name, unit } = self.name.clone();
        Json { name, unit, used: unit.value(self.used), allowed: unit.value(self.allowed) }
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LimitHit {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Json { name: text, unit, used, allowed } = Json::deserialize(from)?;
        Ok(Self { name: LimitName { text, unit }, used: unit.number(used), allowed: unit.number(allowed) })
    }
}
