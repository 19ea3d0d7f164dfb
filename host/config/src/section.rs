//! Reads one table of a file, key by key.
//!
//! A key exists because code asks a [`Section`] for it, mostly for its [entry](super::key). A serde structure could
//! not keep ranges with their keys, nor report all errors at once.

mod tables;

use std::{fmt, ops::Range, path::Path};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

pub(super) use self::tables::NAME;
use super::{
    error::{ConfigError, ERRORS_MAX, Location, listed, quote, shorten},
    read::FileReader,
    shape::{self, Shape, kind},
};

/// Longer names, in bytes, are not compared with known ones.
const COMPARED_MAX: usize = 64;

/// A value and its place.
#[derive(Clone, Debug)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Its place.
    pub location: Location,
}

/// A key of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownKey {
    /// The key with its tables, such as `main.memory-budget`.
    pub path: String,
    /// The type and range of its value.
    pub shape: Shape,
    /// Whether its table must have it.
    pub required: bool,
    /// The default in Markdown, as in `` `"5s"` ``, or `must be set`. Empty for a table whose entry names no default.
    pub default: String,
    /// What it means, in Markdown.
    pub meaning: &'static str,
}

/// A table of a file, read key by key. Keys that are not asked for are reported as unknown.
#[derive(Debug)]
pub struct Section<'r, 't> {
    reader: &'r mut FileReader,
    table: &'t DeTable<'t>,
    /// The path of the table. Empty for the file itself.
    path: String,
    /// The place of the table in the text, in bytes.
    start: Range<usize>,
    asked: Vec<&'static str>,
    required: Vec<&'static str>,
    /// The meaning and the default of the next key that is asked for.
    about: Option<(&'static str, String)>,
    /// Help for an unknown table in this one: probably the name of this table has dots and no quotes.
    unquoted: Option<&'static str>,
    /// Help for any other unknown key.
    unknown: Option<&'static str>,
}

impl Section<'_, '_> {
    /// Reads `table` with `read`, and reports unknown keys.
    pub(super) fn read<R>(
        reader: &mut FileReader,
        table: &DeTable<'_>,
        path: String,
        start: Range<usize>,
        read: impl FnOnce(&mut Section<'_, '_>) -> R,
    ) -> R {
        let mut section = Section {
            reader,
            table,
            path,
            start,
            asked: Vec::new(),
            required: Vec::new(),
            about: None,
            unquoted: None,
            unknown: None,
        };
        let result = read(&mut section);
        section.report_unknown();
        result
    }

    /// The full path of a key of this table.
    pub(super) fn path_of(&self, key: &str) -> String {
        child(&self.path, key)
    }

    /// The table itself.
    pub(super) fn raw(&self) -> &DeTable<'_> {
        self.table
    }

    /// The base of relative paths in this file.
    pub fn dir(&self) -> &Path {
        &self.reader.source.dir
    }

    /// The number of errors so far.
    pub fn error_count(&self) -> usize {
        self.reader.error_count()
    }

    /// Reports a fault at a place in this file.
    pub fn error(&mut self, path: impl Into<String>, message: String, location: Location) {
        self.reader.add(ConfigError::new(path, message, Some(location)));
    }

    /// Reports contradicting keys at the first one that is set.
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

    /// The place of this table.
    #[must_use]
    pub fn location(&self) -> Location {
        self.reader.location(self.start.clone())
    }

    /// Whether the table has no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Says what the next key means and what its default is, for the manual and the schema.
    pub fn about<D: Into<String>>(&mut self, meaning: &'static str, default: impl FnOnce() -> D) {
        self.about = self.reader.keys.is_some().then(|| (meaning, default().into()));
    }

    /// Whether the table has a key, right or wrong. `inbox.bytes` is the key `bytes` in its table `inbox`.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        match key.split_once('.') {
            None => self.table.contains_key(key),
            Some((group, key)) => {
                let table = self.table.get(group).and_then(|value| value.get_ref().as_table());
                table.is_some_and(|table| table.contains_key(key))
            }
        }
    }

    /// Reads a boolean. `None` if the key is missing, or wrong, which is reported.
    pub fn flag(&mut self, key: &'static str) -> Option<Located<bool>> {
        self.value(key, &Shape::Flag, shape::flag)
    }

    /// Reads a number; times in nanoseconds. `None` if the key is missing, or wrong, which is reported.
    pub fn number(&mut self, key: &'static str, shape: &Shape) -> Option<Located<u64>> {
        self.value(key, shape, |value| shape.number(value))
    }

    /// Reads a string with `parse`; `what` describes it. `None` if the key is missing, or wrong, which is reported.
    pub fn text<T, E: fmt::Display>(
        &mut self,
        key: &'static str,
        what: &'static str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<Located<T>> {
        self.text_of(key, &Shape::Text(what), parse)
    }

    /// Reads a string of this shape with `parse`. `None` if the key is missing, or wrong, which is reported.
    pub(super) fn text_of<T, E: fmt::Display>(
        &mut self,
        key: &'static str,
        shape: &Shape,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<Located<T>> {
        let value = self.find(key, shape)?;
        self.parsed(&self.path_of(key), shape, value, parse)
    }

    /// Sets the help for an unknown table: its name has dots but no quotes.
    pub fn explain_tables(&mut self, help: &'static str) {
        self.unquoted = Some(help);
    }

    /// Sets the help for an unknown key, instead of a list of the known ones.
    pub fn explain_unknown(&mut self, help: &'static str) {
        self.unknown = Some(help);
    }

    /// Reports `key` if it is missing. Must be called before the key is read, so that lists of keys show it as
    /// required.
    pub fn require(&mut self, key: &'static str, what: &str) {
        self.required.push(key);
        if !self.table.contains_key(key) {
            let path = self.path_of(key);
            let message = format!("`{path}` is missing: it must be {what}");
            let location = self.location();
            self.reader.add_missing(ConfigError::new(path, message, Some(location)));
        }
    }

    /// Reports `key` if it is present: the key is known, but must not be in this table.
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
    /// Marks the key as known and looks it up.
    fn find(&mut self, key: &'static str, shape: &Shape) -> Option<&'t Spanned<DeValue<'t>>> {
        self.asked.push(key);
        let about = self.about.take();
        if self.reader.keys.is_some() {
            let (path, (meaning, default)) = (self.path_of(key), about.unwrap_or_default());
            let required = self.required.contains(&key);
            let default = if required { "must be set".to_owned() } else { default };
            let key = KnownKey { path, shape: shape.clone(), required, default, meaning };
            self.reader.keys.iter_mut().for_each(|keys| keys.push(key.clone()));
        }
        self.table.get(key)
    }

    fn value<T>(
        &mut self,
        key: &'static str,
        shape: &Shape,
        convert: impl FnOnce(&DeValue<'_>) -> Result<T, String>,
    ) -> Option<Located<T>> {
        let value = self.find(key, shape)?;
        match convert(value.get_ref()) {
            Ok(converted) => Some(Located { value: converted, location: self.reader.location(value.span()) }),
            Err(found) => {
                self.wrong(&self.path_of(key), shape, value, &found);
                None
            }
        }
    }

    fn parsed<T, E: fmt::Display>(
        &mut self,
        path: &str,
        shape: &Shape,
        value: &Spanned<DeValue<'_>>,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<Located<T>> {
        let Some(text) = value.get_ref().as_str() else {
            self.wrong(path, shape, value, &kind(value.get_ref()));
            return None;
        };
        match parse(text) {
            Ok(parsed) => Some(Located { value: parsed, location: self.reader.location(value.span()) }),
            Err(error) => {
                let message = format!("in `{path}`: {error}");
                self.error(path, message, self.reader.location(value.span()));
                None
            }
        }
    }

    fn wrong(&mut self, path: &str, shape: &Shape, value: &Spanned<DeValue<'_>>, found: &str) {
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
                (None, _) => self.unknown.map_or_else(
                    || format!("the keys there are {}", listed(&self.asked, ", ")),
                    ToOwned::to_owned,
                ),
            };
            self.error(
                path,
                format!("unknown key {} {scope}: {help}", quote(name)),
                self.reader.location(key.span()),
            );
        }
    }
}

/// The path of a key in the table at `path`. A long name is shortened, and a name that TOML quotes is quoted.
pub(crate) fn child(path: &str, key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    let key = if bare { shorten(key, 64) } else { format!("\"{}\"", shorten(key, 64)) };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// Help for an unknown name: the known name that was probably meant, or `otherwise`. Names are compared only while more
/// errors can be shown: in a hostile file, comparing all pairs would take minutes.
pub fn suggestion<'c>(
    name: &str,
    known: impl Iterator<Item = &'c str>,
    errors: &[ConfigError],
    otherwise: impl Into<String>,
) -> String {
    let near = (errors.len() < ERRORS_MAX).then(|| nearest(name, known)).flatten();
    near.map_or_else(|| otherwise.into(), |near| format!("did you mean `{near}`?"))
}

/// The most likely candidate for `name`. `None` if none is near, or the name is long. Only for messages: comparing all
/// names of a file takes long.
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
