//! What the value of a key must be: types and ranges, as a file writes them and as messages and the
//! manual name them.
//!
//! Knows nothing of which keys there are.

use std::{fmt, ops::RangeInclusive, time::Duration};

use bytesize::ByteSize;
use toml::de::DeValue;

use super::error::quote;

/// What a value must be. Displayed, it completes "must be".
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    /// A boolean.
    Flag,
    /// A whole number within a range.
    Count(RangeInclusive<u64>),
    /// A number of bytes within a range.
    Size(RangeInclusive<u64>),
    /// A length of time within a range.
    Time(RangeInclusive<Duration>),
    /// A string; the text says what it is.
    Text(&'static str),
    /// A list of strings; the text says what each is.
    Texts(&'static str),
    /// A table whose keys the operator chooses, of values that become strings.
    Values,
    /// A table with keys of its own.
    Table,
    /// A list of tables with keys of their own.
    Tables,
    /// A table of tables under names that the operator chooses.
    Named,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("`true` or `false`"),
            Self::Count(range) => write!(f, "a whole number from {} to {}", range.start(), range.end()),
            Self::Size(range) => {
                write!(f, "a size from `{}` to `{}`", bytes(*range.start()), bytes(*range.end()))
            }
            Self::Time(range) => {
                let (min, max) =
                    (humantime::format_duration(*range.start()), humantime::format_duration(*range.end()));
                write!(f, "a time from `{min}` to `{max}`")
            }
            Self::Text(what) => write!(f, "a string: {what}"),
            Self::Texts(what) => write!(f, "a list of strings, each {what}"),
            Self::Values => f.write_str("a table of strings, numbers or booleans"),
            Self::Table => f.write_str("a table"),
            Self::Tables => f.write_str("a list of tables"),
            Self::Named => f.write_str("a table of tables"),
        }
    }
}

impl Shape {
    /// What a value of this shape looks like, where that is not plain.
    pub(super) fn example(&self) -> Option<&'static str> {
        match self {
            Self::Size(_) => Some("`\"16 MiB\"`"),
            Self::Time(_) => Some("`\"250ms\"`"),
            Self::Tables => Some("`[{ … }]`, or each under a header in double brackets"),
            _ => None,
        }
    }
}

/// What a value is instead of what it must be. Displayed, it completes "not".
#[derive(Debug)]
pub(super) struct Found(String);

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Found {
    /// A value of another type.
    pub(super) fn kind(value: &DeValue<'_>) -> Self {
        let kind = value.type_str();
        let article = if kind.starts_with(['a', 'i']) { "an" } else { "a" };
        Self(format!("{article} {kind}"))
    }

    fn text(text: &str) -> Self {
        Self(quote(text))
    }
}

pub(super) fn flag(value: &DeValue<'_>) -> Result<bool, Found> {
    value.as_bool().ok_or_else(|| Found::kind(value))
}

/// A whole number, within the range that its shape will name.
pub(super) fn count(value: &DeValue<'_>, range: &RangeInclusive<u64>) -> Result<u64, Found> {
    let integer = value.as_integer().ok_or_else(|| Found::kind(value))?;
    u64::from_str_radix(integer.as_str(), integer.radix())
        .ok()
        .filter(|number| range.contains(number))
        .ok_or_else(|| Found::text(&integer.to_string()))
}

/// A number of bytes: an integer, or a string with a unit.
pub(super) fn size(value: &DeValue<'_>, range: &RangeInclusive<u64>) -> Result<u64, Found> {
    let Some(text) = value.as_str() else {
        return count(value, range);
    };
    text.parse()
        .ok()
        .map(|ByteSize(bytes)| bytes)
        .filter(|bytes| range.contains(bytes))
        .ok_or_else(|| Found::text(text))
}

/// A string with a number and a unit of time.
pub(super) fn time(value: &DeValue<'_>, range: &RangeInclusive<Duration>) -> Result<Duration, Found> {
    let text = value.as_str().ok_or_else(|| Found::kind(value))?;
    humantime::parse_duration(text).ok().filter(|time| range.contains(time)).ok_or_else(|| Found::text(text))
}

/// A string, number or boolean as the string that an extension reads. Numbers are written in
/// decimal.
pub(super) fn scalar(value: &DeValue<'_>) -> Result<String, Found> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Boolean(flag) => Ok(flag.to_string()),
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
            .map(|number| number.to_string())
            .map_err(|_| Found::text(&integer.to_string())),
        DeValue::Float(float) => float
            .as_str()
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
            .map(|number| number.to_string())
            .ok_or_else(|| Found::text(float.as_str())),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => Err(Found::kind(value)),
    }
}

/// A number of bytes in the largest unit that divides it.
pub(super) fn bytes(bytes: u64) -> String {
    let units = [(bytesize::GIB, "GiB"), (bytesize::MIB, "MiB"), (bytesize::KIB, "KiB"), (1, "bytes")];
    let (factor, unit) =
        units.into_iter().find(|(factor, _)| bytes.is_multiple_of(*factor)).unwrap_or((1, "bytes"));
    format!("{} {unit}", bytes / factor)
}
