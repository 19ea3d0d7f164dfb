//! Entries in the store, changed together where they can be.

use std::{collections::BTreeMap, rc::Rc};

use serde_json::value::RawValue;
use weir_sdk::Error;

use crate::keyvalue::{self, Bucket, delete_many, set_many};

/// How the store's message begins if it has no room.
const FULL: &str = "the store is full";

#[derive(Debug)]
pub(crate) struct Store {
    bucket: Bucket,
}

/// One change of one key.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Set(String, Box<RawValue>),
    Delete(String),
}

#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum CommitError {
    #[error("{0}")]
    Full(Rc<str>),
    #[error("{0}")]
    Io(Rc<str>),
}

impl Store {
    /// Opens a store.
    ///
    /// # Errors
    ///
    /// Fails if the operator has not granted it, or if there is no such store.
    pub(crate) fn open(name: &str) -> Result<Self, Error> {
        let bucket = keyvalue::open(name).map_err(|error| {
            let error = CommitError::from(error);
            Error::failed(format_args!(
                "cannot open the store `{name}`: {error}: grant it by `grants.stores`"
            ))
        })?;
        Ok(Self { bucket })
    }

    pub(crate) fn get(&self, key: &str) -> Result<Option<Box<RawValue>>, CommitError> {
        let Some(value) = self.bucket.get(key)? else { return Ok(None) };
        // Others may write there, too: `weir store put`.
        let not_json = |_| CommitError::Io(format!("the value of `{key}` is not JSON").into());
        let text = String::from_utf8(value).map_err(|_| CommitError::Io("a value that is no text".into()))?;
        RawValue::from_string(text).map(Some).map_err(not_json)
    }

    /// The keys that begin with a prefix, in the order of their bytes.
    pub(crate) fn keys(&self, prefix: &str) -> Result<Vec<String>, CommitError> {
        let (mut keys, mut cursor) = (Vec::new(), None);
        loop {
            let page = self.bucket.list_keys(cursor)?;
            keys.extend(page.keys.into_iter().filter(|key| key.starts_with(prefix)));
            cursor = page.cursor;
            if cursor.is_none() {
                // The interface promises no order.
                keys.sort_unstable();
                return Ok(keys);
            }
        }
    }

    /// Makes changes in order, in as few steps as it can. For each, returns whether its key had a value before.
    pub(crate) fn commit(&self, changes: Vec<Change>) -> Vec<Result<bool, CommitError>> {
        let mut last: BTreeMap<&str, &Change> = BTreeMap::new();
        let mut outcomes = Vec::with_capacity(changes.len());
        for change in &changes {
            let before = match last.insert(change.key(), change) {
                Some(before) => Ok(matches!(before, Change::Set(..))),
                None => self.bucket.exists(change.key()).map_err(CommitError::from),
            };
            outcomes.push(before);
        }
        if self.change(last.into_values()).is_ok() {
            return outcomes;
        }
        // `set_many` sets all or nothing. So each change is now tried alone, and those that fit are made.
        let alone = changes.iter().zip(outcomes);
        alone.map(|(change, outcome)| self.change([change].into_iter()).and(outcome)).collect()
    }

    /// Makes changes of different keys. If the sets fail, the deletions are made nevertheless.
    fn change<'c>(&self, changes: impl Iterator<Item = &'c Change>) -> Result<(), CommitError> {
        let (mut sets, mut deletes) = (Vec::new(), Vec::new());
        for change in changes {
            match change {
                Change::Set(key, value) => sets.push((key.clone(), value.get().as_bytes().to_vec())),
                Change::Delete(key) => deletes.push(key.clone()),
            }
        }
        // Deletions come first, since they make room.
        if !deletes.is_empty() {
            delete_many(&self.bucket, &deletes)?;
        }
        if !sets.is_empty() {
            set_many(&self.bucket, &sets)?;
        }
        Ok(())
    }
}

impl Change {
    pub(crate) fn key(&self) -> &str {
        match self {
            Self::Set(key, _) | Self::Delete(key) => key,
        }
    }

    /// Bytes of its key and value.
    pub(crate) fn bytes(&self) -> usize {
        let value = match self {
            Self::Set(_, value) => value.get().len(),
            Self::Delete(_) => 0,
        };
        self.key().len().saturating_add(value)
    }
}

impl From<keyvalue::Error> for CommitError {
    fn from(error: keyvalue::Error) -> Self {
        match error {
            keyvalue::Error::NoSuchStore => Self::Io("there is no such store".into()),
            keyvalue::Error::AccessDenied => Self::Io("access is denied".into()),
            keyvalue::Error::Other(text) if text.starts_with(FULL) => Self::Full(text.into()),
            keyvalue::Error::Other(text) => Self::Io(text.into()),
        }
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
