//! Constants for contracts and operations, shared by provider and callers.

use std::{
    fmt,
    hash::{Hash, Hasher},
    marker::PhantomData,
};

use crate::{
    Description,
    codec::{Bytes, Json},
    rules::{is_contract_name, is_operation_name},
};

/// A versioned contract, such as `device.info@1`.
///
/// ```
/// use weir_names::{Contract, Operation};
///
/// const CONTRACT: Contract = Contract::new("clock@1");
/// const UNIX_SECONDS: Operation<(), u64> = CONTRACT.operation("unix-seconds");
/// assert_eq!(UNIX_SECONDS.to_string(), "clock@1 unix-seconds");
/// ```
///
/// `weir_sdk::contract!` makes contracts that describe themselves. Two contracts of one name are equal, described or
/// not.
#[derive(Clone, Copy)]
pub struct Contract {
    name: &'static str,
    description: Option<&'static Description>,
}

impl Contract {
    /// A contract of this name: dotted segments of `a-z`, `0-9` and `-`, then `@` and a version number from 0 to
    /// 65535; at most 128 bytes.
    ///
    /// # Panics
    /// If the name is invalid; in a `const`, that is a compile error.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        assert!(
            is_contract_name(name),
            "a contract is dotted segments of `a-z`, `0-9` and `-`, then `@` and a version number"
        );
        Self { name, description: None }
    }

    /// The contract with its description.
    #[must_use]
    pub const fn described(self, description: &'static Description) -> Self {
        Self { description: Some(description), ..self }
    }

    /// The contract without its description, which a program does not need at run time.
    #[must_use]
    pub const fn undescribed(self) -> Self {
        Self { description: None, ..self }
    }

    /// The description, if it has one.
    #[must_use]
    pub const fn description(self) -> Option<&'static Description> {
        self.description
    }

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// An operation with JSON arguments and result.
    ///
    /// # Panics
    /// If the name is not 1 to 128 printable ASCII characters without space or `/`.
    #[must_use]
    pub const fn operation<A, R>(self, name: &'static str) -> Operation<A, R> {
        Operation::new(self, name)
    }

    /// An operation with raw bytes as argument and result.
    ///
    /// # Panics
    /// If the name is not 1 to 128 printable ASCII characters without space or `/`.
    #[must_use]
    pub const fn bytes(self, name: &'static str) -> Operation<Vec<u8>, Vec<u8>, Bytes> {
        Operation::new(self, name)
    }
}

impl PartialEq for Contract {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Contract {}

impl Hash for Contract {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Contract({self})")
    }
}

impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// An operation of a contract with arguments `A` and result `R`, in the encoding `C`.
pub struct Operation<A, R, C = Json> {
    contract: Contract,
    name: &'static str,
    types: PhantomData<fn(A, C) -> R>,
}

impl<A, R, C> Operation<A, R, C> {
    const fn new(contract: Contract, name: &'static str) -> Self {
        assert!(
            is_operation_name(name),
            "an operation is 1 to 128 printable ASCII characters without space or `/`"
        );
        Self { contract: contract.undescribed(), name, types: PhantomData }
    }

    /// The contract of the operation.
    #[must_use]
    pub const fn contract(&self) -> Contract {
        self.contract
    }

    /// The name within the contract.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

impl<A, R, C> Clone for Operation<A, R, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A, R, C> Copy for Operation<A, R, C> {}

impl<A, R, C> fmt::Debug for Operation<A, R, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Operation({self})")
    }
}

impl<A, R, C> fmt::Display for Operation<A, R, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.contract, self.name)
    }
}
