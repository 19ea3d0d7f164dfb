//! The keywords of schemas, and which of them may be used together.

use super::{
    DocumentError,
    fields::{fault, missing, text},
};
use crate::{Json, Shape, path::shown};

/// Keywords that decide how a schema is read. They are looked for in this order, and a schema may have only one.
const FORMS: [&str; 5] = ["$ref", "const", "enum", "oneOf", "anyOf"];

/// Keywords that are for people and allowed in every schema.
const NOTES: [&str; 8] =
    ["title", "description", "default", "examples", "deprecated", "$comment", "readOnly", "writeOnly"];

/// Keywords that a schema of this JSON type may have besides those that any schema may have.
fn keywords_of(kind: &str) -> &'static [&'static str] {
    match kind {
        "integer" | "number" => &["format", "minimum", "maximum"],
        "string" => &["format", "minLength", "maxLength"],
        "array" => &["items", "prefixItems", "minItems", "maxItems", "uniqueItems"],
        "object" => &["properties", "required", "additionalProperties"],
        _ => &[],
    }
}

/// The keyword of [`FORMS`] by which a schema is read, otherwise `type`. Refuses a schema with a keyword that is not
/// understood beside that one.
pub(super) fn form(json: &Json) -> Result<&'static str, DocumentError> {
    let Json::Object(fields) = json else { return Ok("type") };
    let form = FORMS.into_iter().find(|form| json.get(form).is_some()).unwrap_or("type");
    let kind = if form == "type" { kind(json)?.0 } else { "" };
    for (name, _) in fields {
        let name = &**name;
        let is_known = name == form
            || NOTES.contains(&name)
            || name == "$schema"
            || name.starts_with("x-")
            || keywords_of(kind).contains(&name)
            // `type` is not read here, because the values themselves have a type.
            || (name == "type" && matches!(form, "const" | "enum"));
        if !is_known {
            return Err(not_understood(name, form, kind));
        }
    }
    Ok(form)
}

fn not_understood(name: &str, form: &str, kind: &str) -> DocumentError {
    let beside = match (form, kind) {
        ("type", "") => "without a `type`".to_owned(),
        ("type", kind) => format!("of type `{kind}`"),
        (form, _) => format!("with `{form}`"),
    };
    fault!("is not understood in a schema {beside}").at(name)
}

/// The type that a schema names, or an empty text if it names none, and whether `null` is allowed besides that type.
pub(super) fn kind(json: &Json) -> Result<(&'static str, bool), DocumentError> {
    const KINDS: [&str; 7] = ["boolean", "null", "integer", "number", "string", "array", "object"];
    let known = |kind: &Json| {
        let kind = kind.as_str().ok_or_else(|| DocumentError::expected("a string", kind).at("type"))?;
        KINDS
            .into_iter()
            .find(|known| *known == kind)
            .ok_or_else(|| fault!("`{}` is no type of JSON", shown(kind)).at("type"))
    };
    match json.get("type") {
        None => Ok(("", false)),
        Some(Json::Array(kinds)) => match &**kinds {
            [only] => Ok((known(only)?, false)),
            [one, two] => match (known(one)?, known(two)?) {
                (kind, "null") | ("null", kind) => Ok((kind, true)),
                _ => Err(DocumentError::new("must be one type, or one and `null`").at("type")),
            },
            _ => Err(DocumentError::new("must be one type, or one and `null`").at("type")),
        },
        Some(kind) => Ok((known(kind)?, false)),
    }
}

/// Reads the schema of a number or a text.
pub(super) fn scalar(json: &Json, kind: &str) -> Result<Shape, DocumentError> {
    let format = json.get("format").map(|_| text(json, "format").map(str::to_owned)).transpose()?;
    Ok(match kind {
        "integer" => {
            Shape::Integer { minimum: whole(json, "minimum")?, maximum: whole(json, "maximum")?, format }
        }
        "number" => {
            Shape::Number { minimum: number(json, "minimum")?, maximum: number(json, "maximum")?, format }
        }
        _ => {
            let (min_length, max_length) = bounds(json, "minLength", "maxLength")?;
            Shape::String { format, min_length, max_length }
        }
    })
}

/// The least and the greatest length of a text or a list.
pub(super) fn bounds(
    json: &Json,
    least: &str,
    greatest: &str,
) -> Result<(Option<u64>, Option<u64>), DocumentError> {
    let read = |key: &str| match json.get(key) {
        None => Ok(None),
        Some(Json::Number(number)) if number.is_u64() => Ok(number.as_u64()),
        Some(_) => Err(DocumentError::new("must be a number of at least 0").at(key)),
    };
    Ok((read(least)?, read(greatest)?))
}

fn whole(json: &Json, key: &str) -> Result<Option<i128>, DocumentError> {
    let Some(value) = json.get(key) else { return Ok(None) };
    let Json::Number(number) = value else { return Err(DocumentError::expected("a number", value).at(key)) };
    number.as_i128().map(Some).ok_or_else(|| DocumentError::new("must be a number without fraction").at(key))
}

fn number(json: &Json, key: &str) -> Result<Option<f64>, DocumentError> {
    match json.get(key) {
        None => Ok(None),
        Some(Json::Number(number)) => Ok(Some(number.as_f64().ok_or_else(|| missing(key))?)),
        Some(other) => Err(DocumentError::expected("a number", other).at(key)),
    }
}
