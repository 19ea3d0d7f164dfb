//! One change of one key.

use serde_json::value::RawValue;

#[derive(Clone, Debug)]
pub(crate) enum Change {
    Set(String, Box<RawValue>),
    Delete(String),
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
