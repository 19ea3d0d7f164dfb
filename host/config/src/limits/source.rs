//! The source of a limit's value.

use std::{collections::BTreeMap, fmt};

use serde::{Serializer, ser::SerializeMap};

use super::{LimitKey, Limits};

/// The source of a limit's value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitSource {
    /// The built-in class of this name.
    Class(String),
    /// A line of a file.
    File {
        /// The name of the file.
        file: String,
        /// The line, from 1.
        line: usize,
    },
    /// An environment variable.
    Environment(String),
    /// The default from this key under `[main]`.
    Main(&'static str),
    /// The embedding program.
    Program,
}

impl fmt::Display for LimitSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Class(name) => write!(f, "built in, `{name}`"),
            Self::File { file, line } => write!(f, "{file}:{line}"),
            Self::Environment(name) => f.write_str(name),
            Self::Main(key) => write!(f, "`main.{key}`"),
            Self::Program => f.write_str("the embedding program"),
        }
    }
}

/// Serializes the kind and details for programs, and a text for people.
///
/// # Errors
///
/// The errors of the serializer.
pub fn source<S: Serializer>(source: &LimitSource, serializer: S) -> Result<S::Ok, S::Error> {
    let (kind, name) = match source {
        LimitSource::Class(name) => ("class", Some(&**name)),
        LimitSource::File { .. } => ("file", None),
        LimitSource::Environment(name) => ("environment", Some(&**name)),
        LimitSource::Main(name) => ("main", Some(*name)),
        LimitSource::Program => ("program", None),
    };
    let mut json = serializer.serialize_map(None)?;
    json.serialize_entry("kind", kind)?;
    json.serialize_entry("text", &source.to_string())?;
    if let LimitSource::File { file, line } = source {
        json.serialize_entry("file", file)?;
        json.serialize_entry("line", line)?;
    }
    if let Some(name) = name {
        json.serialize_entry("name", name)?;
    }
    json.end()
}

#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Sources {
    /// Each limit that was set, with the value and its source.
    set: BTreeMap<&'static str, (u64, LimitSource)>,
}

impl Sources {
    pub(super) fn note(&mut self, key: &'static LimitKey, value: u64, source: LimitSource) {
        self.set.insert(key.name, (value, source));
    }

    /// The source of a limit's current value. If that differs from the value that was set, a program has changed it.
    pub(super) fn of(&self, key: &'static LimitKey, limits: &Limits) -> LimitSource {
        let value = (key.get)(limits);
        if let Some((set, source)) = self.set.get(key.name) {
            return if value == Some(*set) { source.clone() } else { LimitSource::Program };
        }
        let built_in = limits.fixed.class;
        match Limits::built_in(built_in) {
            Some(class) if (key.get)(&class) == value => LimitSource::Class(built_in.to_owned()),
            _ => LimitSource::Program,
        }
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.set.iter().map(|(key, (_, source))| (key, source.to_string()))).finish()
    }
}
