//! Entries and their log, changed together.

use std::{io, path::Path, rc::Rc};

use weir_sdk::{Error, log};

use crate::{
    change::Change,
    entries::{Entries, Full},
    log_file::{Damage, LogFile},
};

#[derive(Debug)]
pub(crate) struct Store {
    entries: Entries,
    log: LogFile,
    max_bytes: usize,
}

#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum CommitError {
    #[error(transparent)]
    Full(#[from] Full),
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

    /// Makes changes in order and writes all of them to disk in one step. For each, returns whether its key
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
        // Some lines of a failed write may be on disk. Until a rewrite, the log then differs from the
        // entries.
        if undo.is_empty() && self.log.is_sound() {
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

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::*;

    fn set(key: &str, value: u32) -> Change {
        Change::set(key.into(), to_raw_value(&value).unwrap()).unwrap()
    }

    fn entries(store: &Store) -> Vec<(String, String)> {
        let value = |key: &String| store.entries.get(key).unwrap().get().to_owned();
        store.entries.keys("").into_iter().map(|key| (key.clone(), value(&key))).collect()
    }

    fn all(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
    }

    #[test]
    fn changes_that_cannot_be_written_are_not_seen_and_the_next_ones_can_be() {
        let directory = tempfile::tempdir().unwrap();
        let (mut store, _) = Store::open(directory.path(), 1000).unwrap();
        store.commit(vec![set("a", 1), set("b", 2)]);
        store.log.break_file();

        let outcomes = store.commit(vec![set("a", 3), Change::Delete("b".into()), set("c", 4), set("c", 5)]);
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(CommitError::Io(_)))), "{outcomes:?}");
        assert_eq!(entries(&store), all(&[("a", "1"), ("b", "2")]));

        assert!(matches!(*store.commit(vec![set("d", 6)]), [Ok(false)]));
        store.commit(vec![set("e", 7)]);
        let expected = all(&[("a", "1"), ("b", "2"), ("d", "6"), ("e", "7")]);
        assert_eq!(entries(&store), expected);
        let (store, damage) = Store::open(directory.path(), 1000).unwrap();
        assert_eq!(entries(&store), expected);
        assert_eq!(damage, Damage::default());
    }

    #[test]
    fn a_value_that_is_there_already_is_not_acknowledged_while_the_log_may_say_another() {
        let directory = tempfile::tempdir().unwrap();
        let (mut store, _) = Store::open(directory.path(), 1000).unwrap();
        store.commit(vec![set("a", 1)]);
        store.log.break_file();
        assert!(matches!(*store.commit(vec![set("a", 3)]), [Err(CommitError::Io(_))]));
        assert!(!store.log.is_sound());

        assert!(matches!(*store.commit(vec![set("a", 1)]), [Ok(true)]));
        assert!(store.log.is_sound());
        let (store, _) = Store::open(directory.path(), 1000).unwrap();
        assert_eq!(entries(&store), all(&[("a", "1")]));
    }

    #[test]
    fn each_change_of_a_group_has_an_outcome_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let (mut store, _) = Store::open(directory.path(), 140).unwrap();
        let outcomes = store.commit(vec![
            set("a", 1),
            Change::Delete("a".into()),
            Change::Delete("a".into()),
            set("b", 1),
            set("b", 1),
            set("c", 1),
            set("d", 1),
        ]);
        let [Ok(false), Ok(true), Ok(false), Ok(false), Ok(true), Ok(false), Err(CommitError::Full(_))] =
            *outcomes
        else {
            panic!("{outcomes:?}")
        };
    }
}
