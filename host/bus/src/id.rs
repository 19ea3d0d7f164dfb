//! The numbers and names of messages, peers, instances and operations.
//!
//! Knows nothing of how any of them is carried, served or stored.

use std::str::FromStr;

use serde::Serialize;
use weir_names::{ContractName, Error, NameError, OperationName};
pub use weir_reports::MessageId;

/// The number of a peer: Main is 0, and extensions follow in the order in which they were added. Names of programs
/// outside Main and the programs under them have ranges of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct PeerId(pub u32);

impl PeerId {
    /// Main itself.
    pub const MAIN: Self = Self(0);

    /// The lowest number of a name under which programs outside Main run.
    pub(crate) const FIRST_NAME: Self = Self(1 << 30);

    /// The lowest number of a program outside Main.
    pub(crate) const FIRST_SESSION: Self = Self(1 << 31);
}

/// The number of an instance that reads an inbox. Later instances at the same inbox have greater numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct InstanceId(pub(super) u64);

impl InstanceId {
    /// No instance at all.
    pub const NOBODY: Self = Self(0);

    /// The instance that every inbox begins with.
    pub const FIRST: Self = Self(1);
}

/// An operation by its full name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationId {
    /// Its contract.
    pub contract: ContractName,
    /// Its name in that contract.
    pub name: OperationName,
}

/// Parses a name that a peer or the embedding program gave, or fails with [`Error::Invalid`].
pub(crate) fn parsed<T: FromStr<Err = NameError>>(text: &str) -> Result<T, Error> {
    text.parse().map_err(|error: NameError| Error::Invalid(error.to_string()))
}
