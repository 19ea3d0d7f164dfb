//! Why a text is no document, and where.

use std::fmt::{self, Display};

use weir_names::harmless;

use crate::{Json, path};

/// Why a text does not describe a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentError {
    line: Option<usize>,
    /// Such as `$.methods[0].name`. Empty if it is about the text.
    path: String,
    message: String,
}

impl DocumentError {
    pub(super) fn new(message: impl Display) -> Self {
        Self { line: None, path: String::new(), message: harmless(message, 400) }
    }

    pub(super) fn expected(expected: &str, found: &Json) -> Self {
        Self::new(format_args!("must be {expected}, and is {}", found.kind()))
    }

    pub(super) fn not_json(error: &serde_json::Error) -> Self {
        Self::new(format_args!("not JSON: {error}"))
    }

    pub(super) fn at(mut self, key: &str) -> Self {
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

/// Says where in a document something went wrong.
pub(super) trait At {
    /// In the field of this name.
    fn at(self, key: &str) -> Self;

    /// In the value at this place of a list.
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
