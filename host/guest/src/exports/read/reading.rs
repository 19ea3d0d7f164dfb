//! What the values that are read together share: their room, and why the first that does not fit is refused.

use std::{
    cell::{Cell, RefCell},
    fmt,
};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, Visitor},
};
use weir_openrpc::{Misfit, shown};

use crate::exports::types::Names;

/// Why JSON is refused.
#[derive(Debug)]
pub(in crate::exports) enum Refused {
    Misfit(Misfit),
    /// The values would take more than their room.
    TooLarge,
}

pub(super) fn misfit(message: impl Into<String>) -> Refused {
    Refused::Misfit(Misfit { path: "$".to_owned(), message: message.into() })
}

/// What the values that are read together share.
pub(super) struct Reading {
    /// Bytes that they may still take.
    pub(super) room: Cell<usize>,
    /// Why the first of them that does not fit is refused.
    pub(super) refused: RefCell<Option<Refused>>,
    /// Whether unknown fields are left out, and not refused.
    pub(super) takes_more: bool,
}

impl Reading {
    pub(super) fn refuse<E: Error>(&self, refused: Refused) -> E {
        self.refused.borrow_mut().get_or_insert(refused);
        E::custom("refused")
    }

    pub(super) fn take<E: Error>(&self, bytes: usize) -> Result<(), E> {
        match self.room.get().checked_sub(bytes) {
            Some(left) => {
                self.room.set(left);
                Ok(())
            }
            None => Err(self.refuse(Refused::TooLarge)),
        }
    }

    /// Adds a step to the path of what is refused below.
    pub(super) fn within<T, E>(&self, step: impl FnOnce() -> String, result: Result<T, E>) -> Result<T, E> {
        if result.is_err()
            && let Some(Refused::Misfit(misfit)) = &mut *self.refused.borrow_mut()
        {
            misfit.path.insert_str(1, &step());
        }
        result
    }
}

/// Reads a name, as its place among these, or as it is if it is none of them.
pub(super) struct Key<'n>(pub(super) &'n Names);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Result<usize, String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Result<usize, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.place(name).ok_or_else(|| shown(name)))
    }
}
