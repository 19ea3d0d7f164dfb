//! Reads one table of a file, key by key.
//!
//! There is no other list of the keys: a key exists because `sections.rs` asks a [`Section`] for it,
//! and what was not asked for is unknown. That, ranges that go with the keys and all errors at once
//! are why the configuration is not a serde structure.

mod lists;
mod tables;

use std::{
    fmt,
    ops::{Range, RangeInclusive},
    path::Path,
    time::Duration,
};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    error::{ConfigError, Location, listed, quote, shorten},
    read::Reader,
    shape::{self, Found, Shape},
};

/// Keys longer than this are not compared with known ones.
const COMPARED_MAX: usize = 64;

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub location: Location,
}

impl<T> Located<T> {
    /// The value alone.
    pub fn into_value(self) -> T {
        self.value
    }
}

/// One key that a file may hold.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownKey {
    /// With the tables that it is in, as in `main.memory-budget`.
    pub path: String,
    /// What its value must be.
    pub shape: Shape,
}

/// One table of a file, read key by key: what is asked for is known, and what is left is reported.
#[derive(Debug)]
pub struct Section<'r, 't> {
    reader: &'r mut Reader,
    table: &'t DeTable<'t>,
    /// Empty for the file itself.
    path: String,
    start: Range<usize>,
    asked: Vec<&'static str>,
    /// What to do about an unknown table, where that is likely to be the rest of this one's name.
    unquoted: Option<&'static str>,
}

impl Section<'_, '_> {
    /// Reads `table` with `read`, and reports the keys that it has not asked for.
    pub(super) fn read<R>(
        reader: &mut Reader,
        table: &DeTable<'_>,
        path: String,
        start: Range<usize>,
        read: impl FnOnce(&mut Section<'_, '_>) -> R,
    ) -> R {
        let mut section = Section { reader, table, path, start, asked: Vec::new(), unquoted: None };
        let result = read(&mut section);
        section.report_unknown();
        result
    }

    /// The full path of a key of this table.
    fn path_of(&self, key: &str) -> String {
        child(&self.path, key)
    }

    /// What relative paths in this file are relative to.
    pub fn dir(&self) -> &Path {
        &self.reader.source.dir
    }

    /// How many errors there are so far.
    pub fn error_count(&self) -> usize {
        self.reader.error_count()
    }

    /// Reports what is wrong at a place of this file.
    pub fn error(&mut self, path: impl Into<String>, message: String, location: Location) {
        self.reader.add(ConfigError::new(path, message, Some(location)));
    }

    /// Reports two keys that cannot hold together, at the first of them that is set.
    pub fn contradiction(&mut self, keys: [(&str, Option<Location>); 2], message: &str) {
        let [(first, first_at), (second, second_at)] = keys;
        let (key, location, other, other_at) = match first_at {
            Some(_) => (first, first_at, second, second_at),
            None => (second, second_at, first, None),
        };
        let default = match other_at {
            Some(_) => String::new(),
            None => format!("; `{other}` has its default: set it, too"),
        };
        let message = format!("in `{}`: {message}{default}", self.path);
        let error = ConfigError::new(self.path_of(key), message, location);
        self.reader.add(error.note(other_at, "the other is here"));
    }

    /// Where the table starts.
    fn location(&self) -> Location {
        self.reader.location(self.start.clone())
    }

    /// A boolean.
    pub fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.value(key, &Shape::Flag, shape::flag).map(Located::into_value)
    }

    /// A whole number.
    pub fn count<T>(&mut self, key: &'static str, range: RangeInclusive<T>) -> Option<Located<T>>
    where
        T: Copy + Into<u64> + TryFrom<u64>,
    {
        let Located { value, location } = self.number(key, &Shape::counts(range))?;
        T::try_from(value).ok().map(|value| Located { value, location })
    }

    /// A length of time.
    pub fn time(&mut self, key: &'static str, range: RangeInclusive<Duration>) -> Option<Located<Duration>> {
        let Located { value, location } = self.number(key, &Shape::Time(range))?;
        Some(Located { value: Duration::from_nanos(value), location })
    }

    /// A number, in nanoseconds where it is a time.
    pub fn number(&mut self, key: &'static str, shape: &Shape) -> Option<Located<u64>> {
        self.value(key, shape, |value| shape.number(value))
    }

    /// A string that `parse` makes something of.
    pub fn text<T, E: fmt::Display>(
        &mut self,
        key: &'static str,
        what: &'static str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<Located<T>> {
        let shape = Shape::Text(what);
        let value = self.find(key, &shape)?;
        self.parsed(key, &shape, value, parse)
    }

    /// Has an unknown table in this one explained by `help`: its name has dots, and no quotes.
    pub fn explain_tables(&mut self, help: &'static str) {
        self.unquoted = Some(help);
    }

    /// Reports that `key` is not there, if it is not.
    pub fn require(&mut self, key: &'static str, what: &str) {
        if !self.table.contains_key(key) {
            let path = self.path_of(key);
            let message = format!("`{path}` is missing: it must be {what}");
            let location = self.location();
            self.reader.add_missing(ConfigError::new(path, message, Some(location)));
        }
    }

    /// Reports `key`, if it is there, as known but out of place.
    pub fn refuse(&mut self, key: &'static str, why: &str) {
        self.asked.push(key);
        if let Some((name, _)) = self.table.get_key_value(key) {
            let path = self.path_of(key);
            let message = format!("`{path}` {why}");
            self.error(path, message, self.reader.location(name.span()));
        }
    }
}

impl<'t> Section<'_, 't> {
    /// Takes note of the key, and looks it up.
    fn find(&mut self, key: &'static str, shape: &Shape) -> Option<&'t Spanned<DeValue<'t>>> {
        self.asked.push(key);
        if self.reader.keys.is_some() {
            let key = KnownKey { path: self.path_of(key), shape: shape.clone() };
            self.reader.keys.iter_mut().for_each(|keys| keys.push(key.clone()));
        }
        self.table.get(key)
    }

    fn value<T>(
        &mut self,
        key: &'static str,
        shape: &Shape,
        convert: impl FnOnce(&DeValue<'_>) -> Result<T, Found>,
    ) -> Option<Located<T>> {
        let value = self.find(key, shape)?;
        match convert(value.get_ref()) {
            Ok(converted) => Some(Located { value: converted, location: self.reader.location(value.span()) }),
            Err(found) => {
                self.wrong(key, shape, value, &found);
                None
            }
        }
    }

    fn parsed<T, E: fmt::Display>(
        &mut self,
        key: &'static str,
        shape: &Shape,
        value: &Spanned<DeValue<'_>>,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<Located<T>> {
        let Some(text) = value.get_ref().as_str() else {
            self.wrong(key, shape, value, &Found::kind(value.get_ref()));
            return None;
        };
        match parse(text) {
            Ok(parsed) => Some(Located { value: parsed, location: self.reader.location(value.span()) }),
            Err(error) => {
                let path = self.path_of(key);
                let message = format!("in `{path}`: {error}");
                self.error(path, message, self.reader.location(value.span()));
                None
            }
        }
    }

    fn wrong(&mut self, key: &'static str, shape: &Shape, value: &Spanned<DeValue<'_>>, found: &Found) {
        let path = self.path_of(key);
        let message = format!("`{path}` must be {}, not {found}", shape.with_example());
        self.error(path, message, self.reader.location(value.span()));
    }

    fn report_unknown(&mut self) {
        for (key, value) in self.table {
            let name: &str = key.get_ref();
            if self.asked.contains(&name) {
                continue;
            }
            let path = self.path_of(name);
            let scope = if self.path.is_empty() {
                "at the top level".to_owned()
            } else {
                format!("in `{}`", self.path)
            };
            let help = match (nearest(name, self.asked.iter().copied()), self.unquoted) {
                (Some(near), _) => format!("did you mean `{near}`?"),
                (None, Some(help)) if value.get_ref().is_table() => help.to_owned(),
                (None, _) => format!("the keys there are {}", listed(&self.asked, ", ")),
            };
            self.error(
                path,
                format!("unknown key {} {scope}: {help}", quote(name)),
                self.reader.location(key.span()),
            );
        }
    }
}

/// The path of `key` in the table that `path` names.
pub(super) fn child(path: &str, key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    let key = if bare { shorten(key, 64) } else { format!("\"{}\"", shorten(key, 64)) };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// The candidate that `name` is most likely meant to be. For a message: to compare each name of a file with each
/// takes long.
#[must_use]
pub fn nearest<'c>(name: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    if name.len() > COMPARED_MAX {
        return None;
    }
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().max(3) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
