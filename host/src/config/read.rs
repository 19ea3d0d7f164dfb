//! Reads one file as TOML, and its tables through [`Section`]s, and collects every error on the way.

use std::{collections::BTreeSet, ops::Range, sync::Arc};

use toml::de::DeTable;

use super::{
    error::{ConfigError, Place, Source, shorten},
    section::Section,
};

/// One file being read.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) source: Arc<Source>,
    /// What is wrong with what is there.
    pub(super) errors: Vec<ConfigError>,
    /// What should be there.
    pub(super) missing: Vec<ConfigError>,
    /// Notes down every key that is asked for, where that is wanted.
    #[cfg(test)]
    pub(super) keys: Option<Vec<super::section::Key>>,
}

impl Reader {
    pub(super) fn new(source: Arc<Source>) -> Self {
        Self {
            source,
            errors: Vec::new(),
            missing: Vec::new(),
            #[cfg(test)]
            keys: None,
        }
    }

    /// Reads the whole file with `read`; behind a syntax error as far as it can be made out.
    pub(super) fn read<R>(&mut self, read: impl FnOnce(&mut Section<'_, '_>) -> R) -> R {
        let source = Arc::clone(&self.source);
        let (table, syntax) = DeTable::parse_recoverable(&source.text);
        let result = Section::read(self, table.get_ref(), String::new(), 0..0, read);
        self.add_syntax_errors(syntax);
        result
    }

    /// All that is wrong with the file.
    pub(super) fn finish(mut self) -> Vec<ConfigError> {
        self.errors.append(&mut self.missing);
        self.errors
    }

    pub(super) fn place(&self, span: Range<usize>) -> Place {
        Place { source: Arc::clone(&self.source), span }
    }

    /// Adds the first syntax error of each line, and takes back what else was found there and what is
    /// missing: that is likely to follow from it.
    fn add_syntax_errors(&mut self, mut syntax: Vec<toml::de::Error>) {
        if syntax.is_empty() {
            return;
        }
        let source = Arc::clone(&self.source);
        let line = |start: usize| source.line(start);
        let start = |error: &toml::de::Error| error.span().map_or(0, |span| span.start);
        syntax.sort_by_key(start);
        syntax.dedup_by_key(|error| line(start(error)));

        let lines: BTreeSet<_> = syntax.iter().map(|error| line(start(error))).collect();
        let broken = |place: &Place| lines.contains(&line(place.span.start));
        self.missing.clear();
        self.errors.retain(|error| !error.place().is_some_and(broken));
        for error in syntax {
            // Where nothing else could stand, the parser expects "nothing".
            let message = error.message().trim_end_matches(", expected nothing");
            let place = self.place(error.span().unwrap_or_default());
            self.errors.push(ConfigError::new("", shorten(message, 200), Some(place)));
        }
    }
}
