//! Reads fields of JSON objects. Errors say why a text is no document, and where.

use std::{
    collections::HashSet,
    fmt::{self, Display},
    str::FromStr,
};

use weir_names::{NameError, harmless};

use crate::{
    Json,
    path::{self, shown},
};

/// Why a text does not describe a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentError {
    /// The number of the document, from 1, where a text may have several: its line in a section, or its place in a
    /// list.
    line: Option<usize>,
    /// The place of the fault, such as `$.methods[0].name`. Empty for a fault of the whole text.
    path: String,
    message: String,
}

/// Makes a [`DocumentError`] with a message, like `format!`.
macro_rules! fault {
    ($($message:tt)+) => {
        $crate::DocumentError::new(format_args!($($message)+))
    };
}
pub(crate) use fault;

impl DocumentError {
    pub(crate) fn new(message: impl Display) -> Self {
        Self { line: None, path: String::new(), message: harmless(message, 400) }
    }

    pub(super) fn expected(expected: &str, found: &Json) -> Self {
        Self::new(format_args!("must be {expected}, and is {}", found.kind()))
    }

    pub(super) fn not_json(error: &serde_json::Error) -> Self {
        Self::new(format_args!("not JSON: {error}"))
    }

    pub(crate) fn at(mut self, key: &str) -> Self {
        self.path.insert_str(0, &path::field(key));
        self
    }

    pub(super) fn at_root(mut self) -> Self {
        self.path.insert(0, '$');
        self
    }

    fn at_index(mut self, index: usize) -> Self {
        self.path.insert_str(0, &path::index(index));
        self
    }

    pub(super) fn on_line(self, line: usize) -> Self {
        Self { line: Some(line), ..self }
    }
}

impl std::error::Error for DocumentError {}

impl Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "document {line}: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "`{}`: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// Adds to an error where in a document it occurred.
pub(super) trait At {
    /// The error occurred in the field of this name.
    fn at(self, key: &str) -> Self;

    /// The error occurred in the value at this place of a list.
    fn at_index(self, index: usize) -> Self;
}

impl<T> At for Result<T, DocumentError> {
    fn at(self, key: &str) -> Self {
        self.map_err(|error| error.at(key))
    }

    fn at_index(self, index: usize) -> Self {
        self.map_err(|error| error.at_index(index))
    }
}

/// Refuses names of which two are the same.
pub(super) fn different<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), DocumentError> {
    let mut known = HashSet::new();
    for name in names {
        if !known.insert(name) {
            return Err(fault!("`{}` is there twice", shown(name)));
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

/// Reads each value of the list in this field. A field that is absent is an empty list.
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

/// The text in this field. A field that is absent is an empty text.
pub(super) fn optional_text<'a>(json: &'a Json, key: &str) -> Result<&'a str, DocumentError> {
    match json.get(key) {
        None => Ok(""),
        Some(Json::String(text)) => Ok(text),
        Some(other) => Err(DocumentError::expected("a string", other).at(key)),
    }
}

/// The boolean in this field. A field that is absent is `false`.
pub(super) fn flag(json: &Json, key: &str) -> Result<bool, DocumentError> {
    match json.get(key) {
        None => Ok(false),
        Some(Json::Bool(value)) => Ok(*value),
        Some(other) => Err(DocumentError::expected("a boolean", other).at(key)),
    }
}

pub(super) fn missing(key: &str) -> DocumentError {
    fault!("has no `{key}`")
}
