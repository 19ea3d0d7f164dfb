//! What is asked of a store, and what comes of it.

use std::{ops::RangeInclusive, sync::Arc};

use bytes::Bytes;

use crate::StoreError;

/// The owner of entries: an extension's id, `hooks/` and a directory of hooks, or the empty text in a shared store.
pub(crate) type Owner = Arc<str>;

/// The SHA-256 of a value.
pub(crate) type Hash = [u8; 32];

/// One key and its new value. `None` deletes the key.
pub(crate) type Change = (String, Option<Bytes>);

/// A page of keys, in the order of their bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// The keys.
    pub keys: Vec<String>,
    /// The key after which the next page begins. `None` if there are no more keys.
    pub next: Option<String>,
}

/// An entry of any owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its owner: an extension's id, `hooks/` and the name of a directory of hooks, or the empty text in a shared
    /// store.
    pub owner: String,
    /// Its key.
    pub key: String,
    /// Bytes of its value.
    pub bytes: u64,
    /// Its value, if it was asked for.
    pub value: Option<Bytes>,
}

/// A page of entries, in the order of owners and keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rows {
    /// The entries.
    pub rows: Vec<Row>,
    /// The owner and the key after which the next page begins. `None` if there are no more entries.
    pub next: Option<(String, String)>,
}

/// What a store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreUsage {
    /// Its keys.
    pub keys: u64,
    /// Bytes of its entries, as [`StoreConfig::bytes`](crate::StoreConfig::bytes) counts them.
    pub bytes: u64,
    /// Bytes of its file.
    pub file: u64,
}

/// Work for the thread that writes a store.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    /// Sets values, and deletes keys whose value is `None`: all of them, or none.
    Change(Vec<(Owner, String, Option<Bytes>)>),
    /// Adds to a number. Fails if the sum is out of the range.
    Increment { key: String, delta: i128, range: RangeInclusive<i128> },
    /// Replaces a key's value if it is still `expected`. `None` stands for no value.
    Swap { key: String, expected: Option<Bytes>, value: Option<Bytes> },
    /// Replaces a key's value if its hash is still `seen`. `None` stands for no value.
    SwapSeen { key: String, seen: Option<Hash>, value: Option<Bytes> },
    /// Answered once all that was answered before is on disk.
    Flush,
    /// Makes the file as small as its entries.
    Compact,
    /// Closes the file, after all other work.
    Close,
}

impl Write {
    /// Bytes that it holds while it waits.
    pub(crate) fn bytes(&self) -> usize {
        let of = |value: &Option<Bytes>| value.as_ref().map_or(0, Bytes::len);
        match self {
            Self::Change(changes) => {
                changes.iter().map(|(_, key, value)| key.len().saturating_add(of(value))).sum()
            }
            Self::Increment { key, .. } => key.len(),
            Self::Swap { key, expected, value } => {
                key.len().saturating_add(of(expected)).saturating_add(of(value))
            }
            Self::SwapSeen { key, value, .. } => key.len().saturating_add(of(value)),
            Self::Flush | Self::Compact | Self::Close => 0,
        }
    }

    /// Keys that it may change.
    pub(crate) fn keys(&self) -> usize {
        match self {
            Self::Change(changes) => changes.len(),
            Self::Increment { .. } | Self::Swap { .. } | Self::SwapSeen { .. } => 1,
            Self::Flush | Self::Compact | Self::Close => 0,
        }
    }

    /// Whether it only deletes.
    pub(crate) fn is_delete(&self) -> bool {
        match self {
            Self::Change(changes) => {
                !changes.is_empty() && changes.iter().all(|(_, _, value)| value.is_none())
            }
            Self::Swap { value, .. } | Self::SwapSeen { value, .. } => value.is_none(),
            Self::Increment { .. } | Self::Flush | Self::Compact | Self::Close => false,
        }
    }

    /// Whether it must be done, however much waits.
    pub(crate) fn is_due(&self) -> bool {
        matches!(self, Self::Flush | Self::Close)
    }

    /// Bytes of its largest value.
    pub(crate) fn largest(&self) -> u64 {
        let values: &mut dyn Iterator<Item = &Bytes> = match self {
            Self::Change(changes) => &mut changes.iter().filter_map(|(_, _, value)| value.as_ref()),
            Self::Swap { value, .. } | Self::SwapSeen { value, .. } => &mut value.iter(),
            Self::Increment { .. } | Self::Flush | Self::Compact | Self::Close => &mut std::iter::empty(),
        };
        values.map(|value| value.len() as u64).max().unwrap_or_default()
    }
}

/// What became of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// How many of the keys had a value before.
    Changed(usize),
    /// The sum.
    Number(i128),
    /// `Ok` if the value was replaced, otherwise the value that is there.
    Swapped(Result<(), Option<Bytes>>),
    /// `Ok` if the value was replaced, otherwise the hash of the value that is there.
    SwappedSeen(Result<(), Option<Hash>>),
    /// The answer to [`Write::Flush`], [`Write::Compact`] and [`Write::Close`].
    Done,
}

pub(crate) type WriteOutcome = Result<Written, StoreError>;
