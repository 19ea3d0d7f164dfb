//! What is wrong with a configuration, and where: messages for people, with file, line and column.
//!
//! Knows nothing of which keys there are.

use std::{
    fmt,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::limits::LimitSource;

/// As many errors as are kept, the first ones of the files.
pub const ERRORS_MAX: usize = 20;

/// As many names as one error lists, and as many lines below its message.
const LISTED_MAX: usize = 64;

/// As many characters of a source line as are shown on either side of an error.
const LINE_CONTEXT: usize = 80;

/// All that is wrong with a configuration, in the order of the files, at most 20 of it.
///
/// Displayed, every error is one line that starts with `file:line:column:`, followed by the source
/// line and a mark below the key or value at fault.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", self.report())]
pub struct ConfigErrors {
    errors: Vec<ConfigError>,
    more: usize,
}

impl ConfigErrors {
    /// Sorts by position, which leaves those without one in their order at the front, and keeps
    /// [`ERRORS_MAX`] of them. There are as many `more`.
    pub(super) fn new(mut errors: Vec<ConfigError>, more: usize) -> Self {
        errors.sort_by_key(ConfigError::order);
        let more = errors.len().saturating_sub(ERRORS_MAX).saturating_add(more);
        errors.truncate(ERRORS_MAX);
        Self { errors, more }
    }

    /// Nothing, if nothing is wrong.
    ///
    /// # Errors
    ///
    /// Those that there are.
    pub fn none_of(errors: Vec<ConfigError>) -> Result<(), Self> {
        if errors.is_empty() { Ok(()) } else { Err(Self::new(errors, 0)) }
    }

    /// The errors, each with its place.
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

/// One thing that is wrong with a configuration.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", self.report())]
pub struct ConfigError {
    key: String,
    message: String,
    location: Option<Location>,
    notes: Vec<(Option<Location>, String)>,
    /// Notes that were left out.
    more: usize,
}

impl ConfigError {
    /// Something wrong with the key of this full path.
    #[must_use]
    pub fn new(key: impl Into<String>, message: impl Into<String>, location: Option<Location>) -> Self {
        Self { key: key.into(), message: message.into(), location, notes: Vec::new(), more: 0 }
    }

    /// Points at another party to the error, if its place is known.
    #[must_use]
    pub fn note(self, location: Option<Location>, text: impl Into<String>) -> Self {
        if location.is_some() { self.detail(location, text) } else { self }
    }

    /// Adds a line, which says enough without a place, too.
    #[must_use]
    pub fn detail(mut self, location: Option<Location>, text: impl Into<String>) -> Self {
        if self.notes.len() < LISTED_MAX {
            self.notes.push((location, text.into()));
        } else {
            self.more += 1;
        }
        self
    }

    /// The full path of the key at fault, such as `extension[telemetry].limits.memory`, or the name of
    /// the variable; empty where neither is at fault. An extension without a valid id stands there by
    /// its place, from 1.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What is wrong and what to do, without the place.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The lines below the message: other parties to the error and details, each with its place if it
    /// has one.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let notes = self.notes.iter().map(|(location, text)| match location {
            Some(location) => format!("{location}: {text}"),
            None => text.clone(),
        });
        notes.chain((self.more > 0).then(|| format!("and {} more", self.more)))
    }

    /// The file, as it was named; none for a variable, and for a configuration that was made in Rust.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        self.location.as_ref().map(|location| location.source.name.as_str())
    }

    /// Line and column, both from 1, the column in characters.
    #[must_use]
    pub fn line_and_column(&self) -> Option<(usize, usize)> {
        self.location.as_ref().map(Location::line_and_column)
    }

    /// Its position in the files.
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

/// One file of a configuration.
#[derive(Debug)]
pub(super) struct Source {
    /// As it is shown.
    pub(super) name: String,
    pub(super) text: String,
    /// What its relative paths are relative to.
    pub(super) dir: PathBuf,
    /// Its place among the files, from 0.
    pub(super) order: usize,
    /// Where its lines end: every limit notes down its line, and counting for each would be quadratic.
    line_ends: Vec<usize>,
}

impl Source {
    pub(super) fn new(name: &str, text: String, dir: &Path, order: usize) -> Self {
        let line_ends = text.match_indices('\n').map(|(end, _)| end).collect();
        Self { name: shorten(name, 1024), text, dir: dir.to_owned(), order, line_ends }
    }

    /// The number of the line, from 1, that the byte at this offset is part of.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.line_ends.partition_point(|end| *end < offset) + 1
    }
}

/// A piece of one file.
#[derive(Clone)]
pub struct Location {
    pub(super) source: Arc<Source>,
    /// In bytes of the text.
    pub(super) span: Range<usize>,
}

impl Location {
    fn order(&self) -> (usize, usize) {
        (self.source.order, self.span.start)
    }

    /// The number of the line, from 1.
    pub(super) fn line(&self) -> usize {
        self.source.line(self.span.start)
    }

    /// As the source of what stands there.
    pub(super) fn source(&self) -> LimitSource {
        LimitSource::File { file: self.source.name.clone(), line: self.line() }
    }

    fn line_and_column(&self) -> (usize, usize) {
        (self.line(), self.start_of_line().chars().count() + 1)
    }

    fn before(&self) -> &str {
        self.source.text.get(..self.span.start).unwrap_or(&self.source.text)
    }

    /// What stands before the piece on its line.
    fn start_of_line(&self) -> &str {
        self.before().rsplit('\n').next().unwrap_or_default()
    }

    /// The source line, escaped and cut to what surrounds the piece, and a mark below it.
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

// The text of a whole file in every debug line helps nobody.
impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Text of a file or a name, fit for a terminal: control and invisible characters escaped, and cut
/// after `max` characters.
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

/// `text` as a value in a message.
#[must_use]
pub fn quote(text: &str) -> String {
    format!("`{}`", shorten(text, 100))
}

/// Names in a message, the first 64.
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
