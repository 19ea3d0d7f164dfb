//! Types and ranges of values, as files write them and messages and the manual name them.
//!
//! Knows nothing of the keys.

use std::{fmt, ops::RangeInclusive, time::Duration};

use bytesize::ByteSize;
use toml::de::DeValue;

use weir_names::CpuShare;

use super::{error::quote, kind::choice};

/// The type and range of a value. Completes "must be".
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A boolean.
    Flag,
    /// A whole number in a range.
    Count(RangeInclusive<u64>),
    /// A whole number in a range, or this word.
    CountOr(RangeInclusive<u64>, &'static str),
    /// A number of bytes in a range.
    Size(RangeInclusive<u64>),
    /// A duration in a range.
    Time(RangeInclusive<Duration>),
    /// A share in a range, in hundredths of a percent.
    Share(RangeInclusive<u64>),
    /// A string, with a description.
    Text(&'static str),
    /// One of these strings.
    Choice(Vec<&'static str>),
    /// A list of strings, with a description of each.
    Texts(&'static str),
    /// A list of strings and tables, with a description of each string.
    TextsAndTables(&'static str),
    /// A table with free keys, of values that become strings.
    Values,
    /// A table with free keys, of values that become strings, and of tables.
    ValuesAndTables,
    /// A table with keys of its own.
    Table,
    /// A list of tables.
    Tables,
    /// Tables with names that the operator chooses.
    Named,
    /// Lists of strings with names that the operator chooses, with a description of each string.
    NamedTexts(&'static str),
    /// Strings and tables with names that the operator chooses, with a description of each string.
    NamedTextsAndTables(&'static str),
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("`true` or `false`"),
            Self::Count(range) => write!(f, "a whole number from {} to {}", range.start(), range.end()),
            Self::CountOr(range, word) => {
                write!(f, "a whole number from {} to {}, or the string `{word}`", range.start(), range.end())
            }
            Self::Size(range) => {
                write!(f, "a size from `{}` to `{}`", bytes(*range.start()), bytes(*range.end()))
            }
            Self::Time(range) => {
                let (min, max) =
                    (humantime::format_duration(*range.start()), humantime::format_duration(*range.end()));
                write!(f, "a time from `{min}` to `{max}`")
            }
            Self::Share(range) => {
                let share = CpuShare::from_basis_points;
                write!(f, "a share from `{}` to `{}`", share(*range.start()), share(*range.end()))
            }
            Self::Text(what) => write!(f, "a string: {what}"),
            Self::Choice(words) => write!(f, "a string: {}", choice(words.iter().copied())),
            Self::Texts(what) => write!(f, "a list of strings, each {what}"),
            Self::TextsAndTables(what) => {
                write!(f, "a list of strings or tables, each string {what}")
            }
            Self::Values => f.write_str("a table of strings, numbers or booleans"),
            Self::ValuesAndTables => f.write_str("a table of strings, numbers, booleans or tables"),
            Self::Table => f.write_str("a table"),
            Self::Tables => f.write_str("a list of tables"),
            Self::Named => f.write_str("a table of tables"),
            Self::NamedTexts(what) => write!(f, "a table of lists of strings, each {what}"),
            Self::NamedTextsAndTables(what) => {
                write!(f, "a table of strings or tables, each string {what}")
            }
        }
    }
}

impl Shape {
    /// A whole number in a range of a smaller type.
    pub fn counts(range: RangeInclusive<impl Copy + Into<u64>>) -> Self {
        Self::Count((*range.start()).into()..=(*range.end()).into())
    }

    /// Whether a value is a table, or a list of tables alone.
    pub(super) fn is_table(&self) -> bool {
        matches!(self, Self::Table | Self::Tables | Self::Named)
    }

    /// Whether a number of this shape is in quotes in a file.
    pub(super) fn is_quoted(&self) -> bool {
        matches!(self, Self::Size(_) | Self::Time(_) | Self::Share(_))
    }

    /// The description, with an example if the notation is not obvious.
    pub(super) fn with_example(&self) -> String {
        match (self, self.example()) {
            (Self::Tables, _) => {
                format!("{self}, as in `[{{ … }}]`, or each under a header in double brackets")
            }
            (_, Some(example)) => format!("{self}, as in `\"{example}\"`"),
            (_, None) => self.to_string(),
        }
    }

    /// The description with an example as a variable has it, without quotes.
    pub(super) fn with_bare_example(&self) -> String {
        self.example().map_or_else(|| self.to_string(), |example| format!("{self}, as in `{example}`"))
    }

    fn example(&self) -> Option<&'static str> {
        match self {
            Self::Size(range) if range.contains(&(16 << 20)) => Some("16 MiB"),
            Self::Size(range) if range.contains(&(1 << 30)) => Some("1 GiB"),
            Self::Size(_) => Some("64 KiB"),
            Self::Time(range) if range.contains(&Duration::from_millis(250)) => Some("250ms"),
            Self::Time(_) => Some("30s"),
            Self::Share(_) => Some("5%"),
            _ => None,
        }
    }

    /// Whether a number is in the range; times in nanoseconds. `false` for a shape without numbers.
    #[must_use]
    pub fn has(&self, number: u64) -> bool {
        match self {
            Self::Count(range) | Self::CountOr(range, _) | Self::Size(range) | Self::Share(range) => {
                range.contains(&number)
            }
            Self::Time(range) => range.contains(&Duration::from_nanos(number)),
            _ => false,
        }
    }

    /// Reads a number: a count, bytes, or a string with a unit. 0 is the word in place of a count. An error is the wrong
    /// value in words, which completes "not".
    pub(super) fn number(&self, value: &DeValue<'_>) -> Result<u64, String> {
        match (self, value.as_str()) {
            (Self::CountOr(_, word), Some(text)) => (text == *word).then_some(0).ok_or_else(|| quote(text)),
            (Self::Count(range), _) | (Self::CountOr(range, _) | Self::Size(range), None) => {
                count(value, range)
            }
            (_, None) => Err(kind(value)),
            (_, Some(text)) => self.number_in(text).ok_or_else(|| quote(text)),
        }
    }

    /// Reads a number from text. Digits may be grouped as in a file, and a size without a unit is in bytes. `None` if
    /// the text is no such number, or out of range.
    pub(super) fn number_in(&self, text: &str) -> Option<u64> {
        // Some parsers would accept blanks around the number.
        if text.trim() != text {
            return None;
        }
        let number = match self {
            Self::Count(_) => grouped(text)?,
            Self::Size(_) => grouped(text).or_else(|| Some(text.parse::<ByteSize>().ok()?.0))?,
            Self::Time(_) => u64::try_from(humantime::parse_duration(text).ok()?.as_nanos()).ok()?,
            Self::Share(_) => CpuShare::basis_points_in(text).ok()?,
            _ => return None,
        };
        self.has(number).then_some(number)
    }

    /// The notation of a number in a file.
    pub fn text(&self, number: u64) -> String {
        match self {
            Self::Size(_) => bytes(number),
            Self::Time(_) => humantime::format_duration(Duration::from_nanos(number)).to_string(),
            Self::Share(_) => CpuShare::from_basis_points(number).to_string(),
            _ => number.to_string(),
        }
    }
}

/// The kind of a value. Completes "not".
pub(super) fn kind(value: &DeValue<'_>) -> String {
    let kind = value.type_str();
    let article = if kind.starts_with(['a', 'i']) { "an" } else { "a" };
    format!("{article} {kind}")
}

/// Reads a boolean. An error names the kind of any other value.
pub(super) fn flag(value: &DeValue<'_>) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| kind(value))
}

/// Reads a whole number in the range. An error is the wrong value in words.
pub(super) fn count(value: &DeValue<'_>, range: &RangeInclusive<u64>) -> Result<u64, String> {
    let integer = value.as_integer().ok_or_else(|| kind(value))?;
    u64::from_str_radix(integer.as_str(), integer.radix())
        .ok()
        .filter(|number| range.contains(number))
        .ok_or_else(|| quote(&integer.to_string()))
}

/// A decimal number with single underscores between digits.
fn grouped(text: &str) -> Option<u64> {
    let digits = |group: &str| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit());
    text.split('_').all(digits).then(|| text.replace('_', "").parse().ok())?
}

/// A string, number or boolean as the text that an extension reads. Numbers are decimal.
pub(super) fn scalar(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Boolean(flag) => Ok(flag.to_string()),
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
            .map(|number| number.to_string())
            .map_err(|_| quote(&integer.to_string())),
        DeValue::Float(float) => float
            .as_str()
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
            .map(|number| number.to_string())
            .ok_or_else(|| quote(float.as_str())),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => Err(kind(value)),
    }
}

/// A number of bytes in the largest unit that divides it, and 0 in bytes, as in a file.
pub fn bytes(bytes: u64) -> String {
    let units =
        [(bytesize::TIB, "TiB"), (bytesize::GIB, "GiB"), (bytesize::MIB, "MiB"), (bytesize::KIB, "KiB")];
    let (factor, unit) =
        units.into_iter().find(|(factor, _)| bytes > 0 && bytes.is_multiple_of(*factor)).unwrap_or((1, "B"));
    format!("{} {unit}", bytes / factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LIMIT_KEYS;
    use weir_metrics::nanoseconds;

    #[test]
    fn bytes_are_shown_in_the_largest_unit_that_divides_them_and_none_in_bytes() {
        assert_eq!([0, 1023, 1024, 3 << 20].map(bytes), ["0 B", "1023 B", "1 KiB", "3 MiB"]);
    }

    #[test]
    fn a_number_is_read_as_it_is_written_and_as_its_example_is() {
        for key in &LIMIT_KEYS {
            let (start, end) = match &key.shape {
                Shape::Count(range) | Shape::Size(range) | Shape::Share(range) => {
                    (*range.start(), *range.end())
                }
                Shape::Time(range) => (nanoseconds(*range.start()), nanoseconds(*range.end())),
                shape => panic!("{shape}"),
            };
            let odd = [1_000_000, 1_000_003, 65_537, 1_048_575, 1_234_567_891, 61_001_001_001];
            for number in odd.into_iter().chain([start, start + 1, end - 1, end, (start + end) / 2]) {
                if key.shape.has(number) {
                    let text = key.shape.text(number);
                    assert_eq!(key.shape.number_in(&text), Some(number), "{} = {text}", key.name);
                }
            }
        }
        for shape in LIMIT_KEYS.iter().map(|key| &key.shape) {
            assert!(shape.example().is_none_or(|example| shape.number_in(example).is_some()), "{shape}");
        }
        let odd = (1 << 40) - 1;
        let size = Shape::Size(1 << 20..=1 << 40);
        assert_eq!(size.number_in(&size.text(odd)), Some(odd));
    }
}
