//! Entries and their log, changed together.

use std::{io, path::Path, rc::Rc};

use weir_sdk::{Error, log};

use crate::{
    change::Change,
    entries::{Entries, Full},
    log_file::{Damage, LogFile},
};

/// The entries and the log that brings them back.
#[derive(Debug)]
pub(crate) struct Store {
    entries: Entries,
    log: LogFile,
    max_bytes: usize,
}

/// A change was not made.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum CommitError {
    /// There is no room for it.
    #[error(transparent)]
    Full(#[from] Full),
    /// It could not be written.
    #[error("cannot write the log: {0}")]
    Io(Rc<io::Error>),
}

impl Store {
    /// Opens the store of a directory and repairs its log.
    pub(crate) fn open(directory: &Path, max_bytes: usize) -> io::Result<(Self, Damage)> {
        let mut entries = Entries::default();
        let (log, damage) = LogFile::open(directory, &mut entries)?;
        Ok((Self { entries, log, max_bytes }, damage))
    }

    pub(crate) fn entries(&self) -> &Entries {
        &self.entries
    }

    /// Makes changes, in order, and writes all of them to disk at once; says of each whether its key
    /// had a value before.
    pub(crate) fn commit(&mut self, changes: Vec<Change>) -> Vec<Result<bool, CommitError>> {
        let mut lines = Vec::new();
        let mut undo = Vec::new();
        let outcomes = changes
            .into_iter()
            .map(|change| {
                let existed = self.entries.contains(&change);
                if self.entries.is_changed_by(&change) {
                    self.entries.check(&change, self.max_bytes)?;
                    change.append_to(&mut lines).map_err(|error| CommitError::Io(Rc::new(error.into())))?;
                    undo.push(self.entries.apply(change));
                }
                Ok(existed)
            })
            .collect();
        if undo.is_empty() {
            return outcomes;
        }
        if let Err(error) = self.log.append(&lines, &self.entries) {
            while let Some(undo) = undo.pop() {
                self.entries.undo(undo);
            }
            let error = CommitError::Io(Rc::new(error));
            return outcomes.into_iter().map(|outcome| outcome.and(Err(error.clone()))).collect();
        }
        if self.log.is_wasteful()
            && let Err(error) = self.log.rewrite(&self.entries)
        {
            log::warn("the log could not be made shorter", &[("error", &error)]);
        }
        outcomes
    }
}

/// The codes are `full` and `io`.
impl From<CommitError> for Error {
    fn from(error: CommitError) -> Self {
        let code = match error {
            CommitError::Full(_) => "full",
            CommitError::Io(_) => "io",
        };
        Self::handler(code, error)
    }
}
