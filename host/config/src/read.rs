//! Reads a TOML file through [`Section`]s and collects all errors.

use std::{collections::BTreeSet, ops::Range, sync::Arc};

use toml::de::{DeTable, DeValue};

use super::{
    error::{ConfigError, ERRORS_MAX, Location, Source, quote, shorten},
    section::{KnownKey, Section},
};

/// When reading has found this many errors, only the first [`ERRORS_MAX`] are kept. A file of one mebibyte could have
/// half a million.
const ERRORS_KEPT: usize = 1000;

/// The most levels of brackets, and names of a dotted key before its last. This is a bound of the parser.
const LEVELS_MAX: usize = 80;
const DUPLICATE: &str = "duplicate key";

/// The most searches for the first of duplicate keys, and candidates in each. A search reads the whole file again.
const SEARCHES_MAX: usize = 4;
const FIRSTS_MAX: usize = 16;

const NESTED: &str = "this nests too deep: at most 80 levels are allowed";

#[derive(Debug)]
pub(super) struct FileReader {
    pub(super) source: Arc<Source>,
    errors: Vec<ConfigError>,
    /// Errors about keys that are missing. A syntax error drops them.
    missing: Vec<ConfigError>,
    /// How many errors were left out.
    more: usize,
    /// Collects every key that is asked for, if wanted.
    pub(super) keys: Option<Vec<KnownKey>>,
}

impl FileReader {
    pub(super) fn new(source: Arc<Source>) -> Self {
        Self { source, errors: Vec::new(), missing: Vec::new(), more: 0, keys: None }
    }

    /// Reads the file with `read`. After a syntax error, reads what the parser recovers.
    pub(super) fn read<R>(&mut self, read: impl FnOnce(&mut Section<'_, '_>) -> R) -> R {
        let source = Arc::clone(&self.source);
        let (table, syntax) = DeTable::parse_recoverable(&source.text);
        let result = Section::read(self, table.get_ref(), String::new(), 0..0, read);
        self.add_syntax_errors(syntax, table.get_ref());
        result
    }

    /// The errors, and how many were left out.
    pub(super) fn finish(mut self) -> (Vec<ConfigError>, usize) {
        self.errors.append(&mut self.missing);
        (self.errors, self.more)
    }

    pub(super) fn add(&mut self, error: ConfigError) {
        self.errors.push(error);
        self.more += cut(&mut self.errors);
    }

    pub(super) fn add_missing(&mut self, error: ConfigError) {
        self.missing.push(error);
        self.more += cut(&mut self.missing);
    }

    pub(super) fn error_count(&self) -> usize {
        self.errors.len().saturating_add(self.missing.len()).saturating_add(self.more)
    }

    pub(super) fn location(&self, span: Range<usize>) -> Location {
        Location { source: Arc::clone(&self.source), span }
    }

    /// Adds the first syntax error of each line. Drops all errors about missing keys, and other errors on those lines:
    /// they probably follow from the syntax.
    fn add_syntax_errors(&mut self, mut syntax: Vec<toml::de::Error>, table: &DeTable<'_>) {
        if syntax.is_empty() {
            return;
        }
        let source = Arc::clone(&self.source);
        let line = |start: usize| source.line(start);
        // The parser omits the place of one error.
        let long_key = long_key(&source.text).unwrap_or_default();
        let span = |error: &toml::de::Error| error.span().unwrap_or_else(|| long_key.clone());
        let start = |error: &toml::de::Error| span(error).start;
        syntax.sort_by_key(start);
        syntax.dedup_by_key(|error| line(start(error)));

        let lines: BTreeSet<_> = syntax.iter().map(|error| line(start(error))).collect();
        let broken = |location: &Location| lines.contains(&line(location.span.start));
        self.missing.clear();
        self.errors.retain(|error| !error.location().is_some_and(broken));
        let mut searches = 0..SEARCHES_MAX;
        for error in syntax {
            let message = match error.message() {
                message if message.contains("recurs") => NESTED,
                // The parser adds that it expects "nothing" if nothing else is possible.
                message => message.trim_end_matches(", expected nothing"),
            };
            let location = self.location(span(&error));
            let key = source.text.get(location.span.clone()).filter(|_| message == DUPLICATE);
            let error = match key {
                Some(key) => {
                    let first = searches.next().and_then(|_| first_of(&source.text, table, &location.span));
                    let first = first.map(|span| self.location(span));
                    ConfigError::new("", format!("duplicate key {}", quote(key)), Some(location))
                        .note(first, "the first is here")
                }
                None => ConfigError::new("", shorten(message, 200), Some(location)),
            };
            self.add(error);
        }
    }
}

/// If there are [`ERRORS_KEPT`] errors, keeps the first ones and returns how many others there were.
fn cut(errors: &mut Vec<ConfigError>) -> usize {
    if errors.len() < ERRORS_KEPT {
        return 0;
    }
    errors.sort_by_key(ConfigError::order);
    errors.drain(ERRORS_MAX..).count()
}

/// The earlier key that makes this one a duplicate. Tries the last keys of that name before it.
fn first_of(text: &str, table: &DeTable<'_>, duplicate: &Range<usize>) -> Option<Range<usize>> {
    let is_duplicate = |text: &str| {
        let (_, errors) = DeTable::parse_recoverable(text);
        errors.iter().any(|error| error.message() == DUPLICATE && error.span().as_ref() == Some(duplicate))
    };
    let name = text.get(duplicate.clone())?.trim_matches(['"', '\'']);
    let mut spans = Vec::new();
    keys_of(table, name, &mut spans);
    spans.retain(|span| span.start < duplicate.start);
    spans.sort_by_key(|span| span.start);
    spans.into_iter().rev().take(FIRSTS_MAX).find(|span| {
        let other = "_".repeat(span.len());
        let Some((before, after)) = text.get(..span.start).zip(text.get(span.end..)) else { return false };
        !is_duplicate(&[before, &other, after].concat())
    })
}

/// Adds the places of all keys with this name, in the table and below it.
fn keys_of(table: &DeTable<'_>, name: &str, spans: &mut Vec<Range<usize>>) {
    for (key, value) in table {
        if key.get_ref() == name {
            spans.push(key.span());
        }
        values_of(value.get_ref(), name, spans);
    }
}

fn values_of(value: &DeValue<'_>, name: &str, spans: &mut Vec<Range<usize>>) {
    match value {
        DeValue::Table(table) => keys_of(table, name, spans),
        DeValue::Array(values) => values.iter().for_each(|value| values_of(value.get_ref(), name, spans)),
        _ => {}
    }
}

/// The place of the first key with more names than the parser reads.
fn long_key(text: &str) -> Option<Range<usize>> {
    let ends_key = |c: char| !c.is_alphanumeric() && !"-_.\"' \t".contains(c);
    let mut end = 0;
    text.split_inclusive(ends_key).find_map(|piece| {
        let start = end + piece.len() - piece.trim_start().len();
        end += piece.len();
        let key = piece.trim_end_matches(ends_key).trim();
        let names = key.split('.').filter(|name| !name.trim().is_empty());
        (names.count() > LEVELS_MAX).then_some(start..start + key.len())
    })
}
