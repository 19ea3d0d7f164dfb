//! Fields of JSON objects.

use std::{collections::HashSet, str::FromStr};

use weir_names::NameError;

use super::{DocumentError, error::At};
use crate::{Json, path::shown};

pub(super) fn different<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), DocumentError> {
    let mut known = HashSet::new();
    for name in names {
        if !known.insert(name) {
            return Err(DocumentError::new(format_args!("`{}` is there twice", shown(name))));
        }
    }
    Ok(())
}

pub(super) fn object(json: &Json) -> Result<&[(String, Json)], DocumentError> {
    match json {
        Json::Object(fields) => Ok(fields),
        other => Err(DocumentError::expected("an object", other)),
    }
}

pub(super) fn list<T>(
    json: &Json,
    key: &str,
    read: impl Fn(&Json) -> Result<T, DocumentError>,
) -> Result<Vec<T>, DocumentError> {
    match json.get(key) {
        None => Ok(Vec::new()),
        Some(Json::Array(values)) => (0..)
            .zip(values)
            .map(|(index, value)| read(value).at_index(index))
            .collect::<Result<_, _>>()
            .at(key),
        Some(other) => Err(DocumentError::expected("an array", other).at(key)),
    }
}

pub(super) fn name<T: FromStr<Err = NameError>>(json: &Json, key: &str) -> Result<T, DocumentError> {
    text(json, key)?.parse().map_err(DocumentError::new).at(key)
}

pub(super) fn text<'a>(json: &'a Json, key: &str) -> Result<&'a str, DocumentError> {
    match json.get(key) {
        Some(_) => optional_text(json, key),
        None => Err(object(json).err().unwrap_or_else(|| missing(key))),
    }
}

pub(super) fn description(json: &Json) -> Result<String, DocumentError> {
    optional_text(json, "description").map(str::to_owned)
}

pub(super) fn optional_text<'a>(json: &'a Json, key: &str) -> Result<&'a str, DocumentError> {
    match json.get(key) {
        None => Ok(""),
        Some(Json::String(text)) => Ok(text),
        Some(other) => Err(DocumentError::expected("a string", other).at(key)),
    }
}

pub(super) fn flag(json: &Json, key: &str) -> Result<bool, DocumentError> {
    match json.get(key) {
        None => Ok(false),
        Some(Json::Bool(value)) => Ok(*value),
        Some(other) => Err(DocumentError::expected("a boolean", other).at(key)),
    }
}

pub(super) fn missing(key: &str) -> DocumentError {
    DocumentError::new(format_args!("has no `{key}`"))
}
