//! Values of limits in JSON: in units that people use, each with its name.

use std::time::Duration;

use super::{KEYS, LimitSource};
use crate::Shape;
use serde::{Serialize, Serializer};

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

/// A limit that an extension hit. In JSON it has the unit of its numbers beside it, and times are in
/// seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitHit {
    /// The key that sets it, or the name under which it is documented.
    pub name: String,
    /// What was used, in the limit's own unit: nanoseconds where that is time.
    pub used: u64,
    /// What was allowed, in the same unit.
    pub allowed: u64,
}

impl LimitHit {
    /// A limit by its name, and two numbers in its own unit.
    #[must_use]
    pub fn new(name: &str, used: u64, allowed: u64) -> Self {
        Self { name: name.to_owned(), used, allowed }
    }
}

impl LimitValue {
    /// A number of the limit of that name, in the unit in which it is kept.
    pub fn new(name: &str, number: u64) -> Self {
        match shape(name) {
            Some(Shape::Time(_)) => Self::Time(Duration::from_nanos(number)),
            Some(Shape::Share(_)) => Self::Share(fraction(number)),
            _ => Self::Count(number),
        }
    }
}

/// What the numbers of a limit count, by the name that JSON has for it.
pub fn unit(name: &str) -> &'static str {
    match (shape(name), name) {
        (Some(Shape::Size(_)), _) | (None, "host-stack" | "random-bytes" | "transfer") => "bytes",
        (Some(Shape::Time(_)), _) => "s",
        (Some(Shape::Share(_)), _) => "share",
        (_, "fuel-per-message" | "fuel-to-start" | "fuel-slice") => "fuel",
        (_, "in-flight") => "requests",
        (_, "log-rate") => "lines/s",
        (_, "inbox.messages") => "messages",
        _ => "count",
    }
}

/// None of those that nobody sets.
fn shape(name: &str) -> Option<&'static Shape> {
    KEYS.iter().find(|key| key.name == name).map(|key| &key.shape)
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
        let value = |number| LimitValue::new(&self.name, number);
        let (used, allowed) = (value(self.used), value(self.allowed));
        Json { name: &self.name, unit: unit(&self.name), used, allowed }.serialize(serializer)
    }
}

pub fn seconds<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration.map(|duration| duration.as_secs_f64()).serialize(serializer)
}

/// What kind it is and what that has, for programs, and all of it for people.
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
