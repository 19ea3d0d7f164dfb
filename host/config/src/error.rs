//! Faults in a configuration with their places: messages for people, with file, line and column.
//!
//! Knows nothing of the keys.

use std::{
    fmt,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::limits::LimitSource;

/// The most errors that are kept: the first ones in the order of the files.
pub const ERRORS_MAX: usize = 20;

/// The most names that an error lists, and the most notes below its message.
const LISTED_MAX: usize = 64;

/// The most characters of a source line that are shown on either side of an error.
const LINE_CONTEXT: usize = 80;

/// The faults in a configuration, at most 20: those without a place, then the others in the order of the files.
///
/// Displays a fault with a place as a line that starts with `file:line:column:`, followed by the source line and a mark
/// below it. Displays how many faults were left out.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", self.report())]
pub struct ConfigErrors {
    errors: Vec<ConfigError>,
    /// How many errors were left out.
    more: usize,
}

impl ConfigErrors {
    /// Sorts the errors by place, those without a place first, and keeps [`ERRORS_MAX`]. `more` errors were left out
    /// already.
    pub(super) fn new(mut errors: Vec<ConfigError>, more: usize) -> Self {
        errors.sort_by_key(ConfigError::order);
        let more = errors.len().saturating_sub(ERRORS_MAX).saturating_add(more);
        errors.truncate(ERRORS_MAX);
        Self { errors, more }
    }

    /// `Ok` if there are no errors.
    ///
    /// # Errors
    ///
    /// The first [`ERRORS_MAX`] errors of the list, by place.
    pub fn none_of(errors: Vec<ConfigError>) -> Result<(), Self> {
        if errors.is_empty() { Ok(()) } else { Err(Self::new(errors, 0)) }
    }

    /// The errors with their places.
    pub fn iter(&self) -> impl Iterator<Item = &ConfigError> {
        self.errors.iter()
    }

    fn report(&self) -> String {
        let mut lines: Vec<_> = self.errors.iter().map(ToString::to_string).collect();
        if self.more > 0 {
            lines.push(format!("and {} more", self.more));
        }
        lines.join("\n")
    }
}

/// A fault in a configuration.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", self.report())]
pub struct ConfigError {
    key: String,
    message: String,
    location: Option<Location>,
    notes: Vec<(Option<Location>, String)>,
    /// How many notes were left out.
    more: usize,
}

impl ConfigError {
    /// A fault at the key with this full path.
    #[must_use]
    pub fn new(key: impl Into<String>, message: impl Into<String>, location: Option<Location>) -> Self {
        Self { key: key.into(), message: message.into(), location, notes: Vec::new(), more: 0 }
    }

    /// Points at a related place, if it is known.
    #[must_use]
    pub fn note(self, location: Option<Location>, text: impl Into<String>) -> Self {
        if location.is_some() { self.detail(location, text) } else { self }
    }

    /// Adds a line that is useful even without a place.
    #[must_use]
    pub fn detail(mut self, location: Option<Location>, text: impl Into<String>) -> Self {
        if self.notes.len() < LISTED_MAX {
            self.notes.push((location, text.into()));
        } else {
            self.more += 1;
        }
        self
    }

    /// The full path of the key, such as `extension[telemetry].limits.memory`, or the name of the variable. Empty if
    /// neither is at fault. An extension without a valid id appears by its position, from 1.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The fault and its remedy, without the place.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The lines below the message: related places and details.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let notes = self.notes.iter().map(|(location, text)| match location {
            Some(location) => format!("{location}: {text}"),
            None => text.clone(),
        });
        notes.chain((self.more > 0).then(|| format!("and {} more", self.more)))
    }

    /// The name of the file. `None` if the fault has no place in one: for a variable, an unreadable main file, or a
    /// configuration made in Rust.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        self.location.as_ref().map(|location| location.source.name.as_str())
    }

    /// Line and column, both from 1. The column is in characters. `None` if the fault has no place in a file.
    #[must_use]
    pub fn line_and_column(&self) -> Option<(usize, usize)> {
        self.location.as_ref().map(Location::line_and_column)
    }

    pub(super) fn order(&self) -> Option<(usize, usize)> {
        self.location.as_ref().map(Location::order)
    }

    pub(super) fn location(&self) -> Option<&Location> {
        self.location.as_ref()
    }

    fn report(&self) -> String {
        let mut report = match &self.location {
            Some(location) => format!("{location}: {}\n{}", self.message, location.excerpt()),
            None => self.message.clone(),
        };
        for note in self.notes() {
            report.push_str(&format!("\n  {note}"));
        }
        report
    }
}

/// A text that is read: a file, or what the program passes in place of one.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) name: String,
    pub(super) text: String,
    /// The base of relative paths in the text.
    pub(super) dir: PathBuf,
    /// The file's position among the files, from 0.
    pub(super) order: usize,
    /// Offsets of line ends. Counting lines for every limit would be quadratic.
    line_ends: Vec<usize>,
}

impl Source {
    pub(super) fn new(name: &str, text: String, dir: &Path, order: usize) -> Self {
        let line_ends = text.match_indices('\n').map(|(end, _)| end).collect();
        Self { name: shorten(name, 1024), text, dir: dir.to_owned(), order, line_ends }
    }

    /// The line of a byte offset, from 1.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.line_ends.partition_point(|end| *end < offset) + 1
    }
}

/// A span in a file.
#[derive(Clone)]
pub struct Location {
    pub(super) source: Arc<Source>,
    /// The span, in bytes of the file.
    pub(super) span: Range<usize>,
}

impl Location {
    pub(super) fn order(&self) -> (usize, usize) {
        (self.source.order, self.span.start)
    }

    pub(super) fn line(&self) -> usize {
        self.source.line(self.span.start)
    }

    pub(super) fn source(&self) -> LimitSource {
        LimitSource::File { file: self.source.name.clone(), line: self.line() }
    }

    fn line_and_column(&self) -> (usize, usize) {
        (self.line(), self.start_of_line().chars().count() + 1)
    }

    fn before(&self) -> &str {
        self.source.text.get(..self.span.start).unwrap_or(&self.source.text)
    }

    /// The part of the line before the span.
    fn start_of_line(&self) -> &str {
        self.before().rsplit('\n').next().unwrap_or_default()
    }

    /// The source line around the span, escaped and shortened, with a mark below.
    fn excerpt(&self) -> String {
        let rest = self.source.text.get(self.before().len()..).unwrap_or_default();
        let rest = rest.lines().next().unwrap_or_default();
        let marked = rest.get(..self.span.len().min(rest.len())).unwrap_or(rest);
        let after = rest.get(marked.len()..).unwrap_or_default();

        let start = self.start_of_line();
        let skipped = start.chars().count().saturating_sub(LINE_CONTEXT);
        let start: String = start.chars().skip(skipped).flat_map(printable).collect();
        let marked = shorten(marked, LINE_CONTEXT);
        let after = shorten(after, LINE_CONTEXT);

        let number = self.line().to_string();
        let gutter = " ".repeat(number.len());
        let indent = " ".repeat(start.chars().count());
        let mark = "^".repeat(marked.chars().count().max(1));
        format!(" {number} | {start}{marked}{after}\n {gutter} | {indent}{mark}")
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.line_and_column();
        write!(f, "{}:{line}:{column}", self.source.name)
    }
}

// Leaves out the text of the file.
impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Escapes control and invisible characters of a text for a terminal, and cuts it after `max` characters.
#[must_use]
pub fn shorten(text: &str, max: usize) -> String {
    if text.len() <= max && text.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(max).flat_map(printable).collect();
    if text.chars().nth(max).is_some() {
        short.push('…');
    }
    short
}

/// Quotes a value for a message, escaped and cut after 100 characters.
#[must_use]
pub fn quote(text: &str) -> String {
    format!("`{}`", shorten(text, 100))
}

/// The first 64 names for a message, quoted, and how many more there are.
pub fn listed(names: impl IntoIterator<Item = impl AsRef<str>>, separator: &str) -> String {
    let mut names = names.into_iter();
    let mut shown: Vec<String> = names.by_ref().take(LISTED_MAX).map(|name| quote(name.as_ref())).collect();
    let more = names.count();
    shown.extend((more > 0).then(|| format!("and {more} more")));
    shown.join(separator)
}

fn printable(c: char) -> impl Iterator<Item = char> {
    let escaped = weir_names::is_harmful(c).then(|| c.escape_default());
    let kept = escaped.is_none().then_some(c);
    escaped.into_iter().flatten().chain(kept)
}
