//! The stored entries in memory, and their size.

use std::{collections::BTreeMap, ops::Bound};

use serde_json::value::RawValue;

use crate::change::Change;

/// Bytes counted for an entry beside its key and value, so that many small ones are bounded, too.
const OVERHEAD: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Entries {
    values: BTreeMap<String, Box<RawValue>>,
    bytes: usize,
}

#[derive(Debug)]
pub(crate) struct Undo(Change);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{used} bytes of {allowed} would be used, each key taking {OVERHEAD} beside itself and its value")]
pub(crate) struct Full {
    used: usize,
    allowed: usize,
}

impl Entries {
    pub(crate) fn get(&self, key: &str) -> Option<Box<RawValue>> {
        self.values.get(key).cloned()
    }

    /// The keys that begin with a prefix, in the order of their bytes.
    pub(crate) fn keys(&self, prefix: &str) -> Vec<String> {
        self.values
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
            .map(|(key, _)| key)
            .take_while(|key| key.starts_with(prefix))
            .cloned()
            .collect()
    }

    pub(crate) fn contains(&self, change: &Change) -> bool {
        self.values.contains_key(change.key())
    }

    pub(crate) fn is_changed_by(&self, change: &Change) -> bool {
        match (self.values.get(change.key()), change) {
            (Some(old), Change::Set(_, new)) => old.get() != new.get(),
            (old, Change::Delete(_)) => old.is_some(),
            (None, Change::Set(..)) => true,
        }
    }

    /// The approximate size of all entries, in memory and on disk.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Each entry, as the change that makes it.
    pub(crate) fn as_changes(&self) -> impl Iterator<Item = Change<&String, &Box<RawValue>>> {
        self.values.iter().map(|(key, value)| Change::Set(key, value))
    }

    /// Whether a change leaves at most `allowed` bytes, or frees some.
    pub(crate) fn check(&self, change: &Change, allowed: usize) -> Result<(), Full> {
        let Change::Set(key, value) = change else { return Ok(()) };
        let (before, after) = (self.cost(key), cost(key, value));
        let used = self.bytes.saturating_sub(before).saturating_add(after);
        if used <= allowed || after <= before { Ok(()) } else { Err(Full { used, allowed }) }
    }

    pub(crate) fn apply(&mut self, change: Change) -> Undo {
        self.bytes = self.bytes.saturating_sub(self.cost(change.key()));
        let (key, old) = match change {
            Change::Set(key, value) => {
                self.bytes = self.bytes.saturating_add(cost(&key, &value));
                (key.clone(), self.values.insert(key, value))
            }
            Change::Delete(key) => {
                let old = self.values.remove(&key);
                (key, old)
            }
        };
        Undo(match old {
            Some(value) => Change::Set(key, value),
            None => Change::Delete(key),
        })
    }

    pub(crate) fn undo(&mut self, Undo(change): Undo) {
        self.apply(change);
    }

    fn cost(&self, key: &str) -> usize {
        self.values.get(key).map_or(0, |value| cost(key, value))
    }
}

fn cost(key: &str, value: &RawValue) -> usize {
    key.len().saturating_add(value.get().len()).saturating_add(OVERHEAD)
}
