//! Why a store did not do something.

use std::path::PathBuf;

#[cfg(doc)]
use crate::FILE_TIMES;
use crate::{MAX_KEY, MAX_KEYS_AT_ONCE};

/// Why a call of a store failed. The call has changed nothing, except as said at [`StoreError::Io`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A key of no or too many bytes.
    #[error("a key has 1 to {MAX_KEY} bytes, and this one has {0}")]
    Key(usize),
    /// A value larger than the store's `value-size`.
    #[error("the value has {bytes} bytes, and the store's `value-size` is {allowed}")]
    ValueTooLarge {
        /// The bytes of the value.
        bytes: u64,
        /// The bytes that a value may have.
        allowed: u64,
    },
    /// The entries would count more bytes than the store's `bytes`.
    #[error("the store is full: its entries would count {used} bytes, and its `bytes` is {allowed}")]
    Bytes {
        /// The bytes that there would be.
        used: u64,
        /// The bytes that there may be.
        allowed: u64,
    },
    /// There would be more keys than the store's `keys`.
    #[error("the store is full: it would have {used} keys, and its `keys` is {allowed}")]
    Keys {
        /// The keys that there would be.
        used: u64,
        /// The keys that there may be.
        allowed: u64,
    },
    /// The file would be larger than [`FILE_TIMES`] times the store's `bytes`.
    #[error(
        "the store is full: the call needs more room than its file may have, {allowed} bytes: delete entries, change \
         fewer at once, or raise its `bytes`"
    )]
    File {
        /// The bytes that the file may have.
        allowed: u64,
    },
    /// One call with too many keys.
    #[error("a call has at most {MAX_KEYS_AT_ONCE} keys, and this one has {0}")]
    KeysAtOnce(usize),
    /// The values asked for have too many bytes for one answer.
    #[error("the values have more than the {allowed} bytes that fit into one answer: ask for fewer keys")]
    AnswerTooLarge {
        /// The bytes that fit.
        allowed: u64,
    },
    /// An increment of a value that is not a whole number as decimal text.
    #[error("the value is not a whole number as decimal text, so it cannot be incremented")]
    NotANumber,
    /// An increment past the range of the numbers.
    #[error("the sum is out of the range of the numbers")]
    OutOfRange,
    /// The grant is read-only.
    #[error("the store is granted for reading only")]
    ReadOnly,
    /// Too many calls wait.
    #[error("too many calls of the store wait: try again later")]
    Busy,
    /// The store was removed from the configuration, or Main ends.
    #[error("the store is closed")]
    Closed,
    /// The file could not be read or written. A write that was under way is either whole or not there.
    #[error("the store's file failed: {0}")]
    Io(String),
}

impl StoreError {
    /// The error in one word, as callers of `store@1` get it.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Key(_) | Self::KeysAtOnce(_) => "invalid",
            Self::ValueTooLarge { .. } | Self::AnswerTooLarge { .. } => "too-large",
            Self::Bytes { .. } | Self::Keys { .. } | Self::File { .. } => "full",
            Self::NotANumber | Self::OutOfRange => "not-a-number",
            Self::ReadOnly => "permission-denied",
            Self::Busy => "busy",
            Self::Closed => "unknown",
            Self::Io(_) => "failed",
        }
    }
}

/// Why a store's file could not be opened. The entries in the file are unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process has the file open.
    #[error("{} is in use by another process: only one can have it", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file is of another version.
    #[error("{} is of another version of Weir ({found}): export it there with `weir store export`", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        found: String,
    },
    /// The file is damaged, and its last good state cannot be restored.
    #[error(
        "{} is damaged ({reason}): move it away, and import an export with `weir store import`", path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
    /// The file could not be made, read or written, or the path is that of something else than a file.
    #[error("{} cannot be opened: {reason}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        reason: String,
    },
}

impl From<OpenError> for StoreError {
    fn from(error: OpenError) -> Self {
        Self::Io(error.to_string())
    }
}
