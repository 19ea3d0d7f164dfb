//! Judges values that are neither lists nor objects.

use std::fmt::Display;

use serde_json::Value;

use super::fault::Fault;
use crate::{
    Shape,
    path::{counted, shown},
};

/// A value that is neither a list nor an object.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scalar<'a> {
    Null,
    Boolean(bool),
    Integer(i128),
    /// A number with a fraction or an exponent, or one that is too large for 64 bits.
    Number(f64),
    Text(&'a str),
}

impl Scalar<'_> {
    /// What is wrong with the value by this type, which is neither a union nor a reference.
    pub(super) fn fault(self, shape: &Shape) -> Option<Fault> {
        match (shape, self) {
            (Shape::Any, _) | (Shape::Null, Self::Null) | (Shape::Boolean, Self::Boolean(_)) => None,
            (Shape::Integer { minimum, maximum, format }, Self::Integer(number)) => {
                range_fault(number, integer_range(*minimum, *maximum, format.as_deref()))
            }
            (Shape::Integer { minimum, maximum, format }, Self::Number(number)) => match huge(number) {
                Some(whole) => range_fault(whole, integer_range(*minimum, *maximum, format.as_deref())),
                None => Some(Fault::other("an integer", format!("`{number}`"))),
            },
            (Shape::Number { minimum, maximum, .. }, Self::Number(number)) => {
                range_fault(number, number_range(*minimum, *maximum))
            }
            (Shape::Number { minimum, maximum, .. }, Self::Integer(number)) => {
                range_fault(approximate(number), number_range(*minimum, *maximum))
            }
            (Shape::String { min_length, max_length, .. }, Self::Text(text)) => {
                length_fault(text, *min_length, *max_length)
            }
            (Shape::Words { words, open }, Self::Text(text)) => {
                let fits = *open || words.iter().any(|word| word.word == text);
                (!fits).then(|| Fault::tag(quoted(words.iter().map(|word| &*word.word)), quote(text)))
            }
            (Shape::Words { words, .. }, other) => {
                Some(Fault::tag(quoted(words.iter().map(|word| &*word.word)), other.kind()))
            }
            (Shape::Constant(constant), value) => {
                let found = if let Self::Text(text) = value { quote(text) } else { value.kind().into() };
                (!value.is(constant)).then(|| Fault::tag(vec![written(constant)], found))
            }
            (expected, found) => Some(Fault::other(kind_of(expected), found.kind())),
        }
    }

    fn is(self, constant: &Value) -> bool {
        match (self, constant) {
            (Self::Null, Value::Null) => true,
            (Self::Boolean(value), Value::Bool(constant)) => value == *constant,
            (Self::Integer(value), Value::Number(constant)) => constant.as_i128() == Some(value),
            (Self::Number(value), Value::Number(constant)) => constant.as_f64() == Some(value),
            (Self::Text(value), Value::String(constant)) => value == constant,
            _ => false,
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "a boolean",
            Self::Integer(_) | Self::Number(_) => "a number",
            Self::Text(_) => "a string",
        }
    }
}

/// A type as messages name it, such as `a string`.
pub(crate) fn kind_of(shape: &Shape) -> String {
    let kind = match shape {
        Shape::Null => "null",
        Shape::Boolean => "a boolean",
        Shape::Integer { .. } => "an integer",
        Shape::Number { .. } => "a number",
        Shape::String { .. } => "a string",
        Shape::Constant(constant) => return written(constant),
        Shape::Words { words, .. } => {
            return crate::path::alternatives(&quoted(words.iter().map(|word| &*word.word)), "or");
        }
        Shape::List { .. } | Shape::Tuple(_) => "an array",
        Shape::Map(_) | Shape::Record { .. } => "an object",
        Shape::Never => "absent",
        Shape::Any | Shape::OneOf { .. } | Shape::Nullable(_) | Shape::Named(_) => "a value",
    };
    kind.into()
}

/// The range of an integer of this format. Without a known format, that of an `i128`.
pub(crate) fn range_of(format: Option<&str>) -> (i128, i128) {
    match format {
        Some("int8") => (i8::MIN.into(), i8::MAX.into()),
        Some("int16") => (i16::MIN.into(), i16::MAX.into()),
        Some("int32") => (i32::MIN.into(), i32::MAX.into()),
        Some("int64" | "int") => (i64::MIN.into(), i64::MAX.into()),
        Some("uint8") => (0, u8::MAX.into()),
        Some("uint16") => (0, u16::MAX.into()),
        Some("uint32") => (0, u32::MAX.into()),
        Some("uint64" | "uint") => (0, u64::MAX.into()),
        Some("uint128") => (0, i128::MAX),
        _ => (i128::MIN, i128::MAX),
    }
}

/// The range of an integer, within that of its format.
pub(crate) fn integer_range(
    minimum: Option<i128>,
    maximum: Option<i128>,
    format: Option<&str>,
) -> (i128, i128) {
    let (least, greatest) = range_of(format);
    (minimum.map_or(least, |it| it.max(least)), maximum.map_or(greatest, |it| it.min(greatest)))
}

/// The range of a number that may have a fraction.
pub(crate) fn number_range(minimum: Option<f64>, maximum: Option<f64>) -> (f64, f64) {
    (minimum.unwrap_or(f64::NEG_INFINITY), maximum.unwrap_or(f64::INFINITY))
}

fn range_fault<N: PartialOrd + Display>(number: N, (least, greatest): (N, N)) -> Option<Fault> {
    if number < least {
        return Some(Fault::message(format!("must be at least {least}, and is {number}")));
    }
    (number > greatest).then(|| Fault::message(format!("must be at most {greatest}, and is {number}")))
}

fn length_fault(text: &str, min: Option<u64>, max: Option<u64>) -> Option<Fault> {
    if min.is_none() && max.is_none() {
        return None;
    }
    let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
    count_fault(length, min, max, "character")
}

/// What is wrong with this number of things.
pub(super) fn count_fault(count: u64, min: Option<u64>, max: Option<u64>, thing: &str) -> Option<Fault> {
    let must = |what: &str, bound: u64| {
        Fault::message(format!("must have {what}{}, and has {count}", counted(bound, thing)))
    };
    match (min, max) {
        (Some(min), Some(max)) if min == max && count != min => Some(must("", min)),
        (Some(min), _) if count < min => Some(must("at least ", min)),
        (_, Some(max)) if count > max => Some(must("at most ", max)),
        _ => None,
    }
}

/// The whole number that the parser has read as a floating-point number, because it takes more than 64 bits. Nothing if
/// it has a fraction, has less than 64 bits, or has more than 128 bits.
fn huge(number: f64) -> Option<i128> {
    (number.fract() == 0.0 && number.abs() >= 9e18).then(|| number.to_string().parse().ok())?
}

#[expect(clippy::cast_precision_loss, reason = "the result is compared with bounds that are as imprecise")]
fn approximate(number: i128) -> f64 {
    number as f64
}

fn quoted<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<String> {
    texts.map(quote).collect()
}

fn quote(text: &str) -> String {
    format!("`{}`", shown(text))
}

fn written(constant: &Value) -> String {
    match constant {
        Value::String(text) => quote(text),
        other => format!("`{other}`"),
    }
}
