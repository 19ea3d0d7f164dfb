//! Shows documents to people, and types on one line.

mod markdown;
mod text;

use std::fmt::Display;

use crate::{Field, Schema, Shape, check::range_of, path::shown};

/// A type, such as `{ key: string, limit?: integer }` or `list of Setting`.
pub(crate) fn type_text(schema: &Schema) -> String {
    match &schema.shape {
        Shape::Any => "any".into(),
        Shape::Never => "never".into(),
        Shape::Null => "null".into(),
        Shape::Boolean => "boolean".into(),
        Shape::Integer { minimum, maximum, format } => {
            let bounds = (minimum.as_ref(), maximum.as_ref());
            let known = format.as_deref().is_some_and(|format| is_range_of(format, *minimum, *maximum));
            let range = if known { None } else { range(bounds.0, bounds.1, "") };
            noted("integer", [format.as_deref().map(shown), range])
        }
        Shape::Number { minimum, maximum, .. } => {
            noted("number", [range(minimum.as_ref(), maximum.as_ref(), "")])
        }
        Shape::String { format, min_length, max_length } => {
            let unit = if *max_length == Some(1) || (*min_length == Some(1) && max_length.is_none()) {
                " character"
            } else {
                " characters"
            };
            let range = range(min_length.as_ref(), max_length.as_ref(), unit);
            noted("string", [format.as_deref().map(shown), range])
        }
        Shape::Constant(constant) => shown(&constant.to_string()),
        Shape::Words { words, open } => {
            let words: Vec<String> = words.iter().map(|word| format!("\"{}\"", shown(&word.word))).collect();
            opened(words.join(" | "), *open)
        }
        Shape::List { items, min, max, unique } => {
            let list = if *unique { "set" } else { "list" };
            let list = noted(list, [range(min.as_ref(), max.as_ref(), "")]);
            format!("{list} of {}", grouped(items))
        }
        Shape::Tuple(places) => {
            let places: Vec<String> = places.iter().map(type_text).collect();
            format!("[{}]", places.join(", "))
        }
        Shape::Map(values) => format!("map of {}", grouped(values)),
        Shape::Record { fields, .. } if fields.is_empty() => "{}".into(),
        Shape::Record { fields, .. } => {
            let fields: Vec<String> = fields.iter().map(field_text).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        Shape::OneOf { options, open } => {
            let options: Vec<String> = options.iter().map(type_text).collect();
            opened(options.join(" | "), *open)
        }
        Shape::Nullable(inner) => format!("{} | null", type_text(inner)),
        Shape::Named(name) => shown(name),
    }
}

/// A field, such as `limit?: integer`.
pub(crate) fn field_text(field: &Field) -> String {
    let optional = if field.required { "" } else { "?" };
    format!("{}{optional}: {}", shown(&field.name), type_text(&field.schema))
}

fn opened(text: String, open: bool) -> String {
    if open { text + " | …" } else { text }
}

/// A type as it is written after `of`, in parentheses if needed.
fn grouped(schema: &Schema) -> String {
    let text = type_text(schema);
    let is_union = matches!(&schema.shape, Shape::Words { .. } | Shape::OneOf { .. } | Shape::Nullable(_));
    if is_union { format!("({text})") } else { text }
}

/// A type and notes about it, such as `integer (uint8)`.
fn noted<const N: usize>(kind: &str, notes: [Option<String>; N]) -> String {
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    if notes.is_empty() { kind.into() } else { format!("{kind} ({})", notes.join(", ")) }
}

fn range<T: PartialEq + Display>(min: Option<&T>, max: Option<&T>, unit: &str) -> Option<String> {
    match (min, max) {
        (None, None) => None,
        (Some(min), Some(max)) if min == max => Some(format!("{min}{unit}")),
        (Some(min), Some(max)) => Some(format!("{min} to {max}{unit}")),
        (Some(min), None) => Some(format!("at least {min}{unit}")),
        (None, Some(max)) => Some(format!("at most {max}{unit}")),
    }
}

/// Whether a known format already says these bounds: each of them is missing, or is that of the format itself.
/// schemars writes such bounds beside some formats.
fn is_range_of(format: &str, minimum: Option<i128>, maximum: Option<i128>) -> bool {
    let (least, greatest) = range_of(Some(format));
    (least, greatest) != range_of(None)
        && minimum.is_none_or(|minimum| minimum == least)
        && maximum.is_none_or(|maximum| maximum == greatest)
}
