//! Payloads judged by the description of their type.
//!
//! A payload is read once and never copied, so judging costs time in proportion to its length: a value that may be
//! one of several types is judged by all of them at once.

mod containers;
mod fault;
mod judge;
mod scalar;
mod union;

use std::fmt;

pub use self::containers::nearest;
use self::judge::Judge;
pub(crate) use self::{
    scalar::{integer_range, kind_of, number_range, range_of},
    union::{Union, View},
};
use crate::{Arguments, Document, Payload};

/// Why a payload does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The place that does not fit, such as `$.value.key`.
    pub path: String,
    /// What is wrong there, such as ``must be a string, and is a number``.
    pub message: String,
}

impl std::error::Error for Misfit {}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.path, self.message)
    }
}

/// What happens to fields without a description, in objects that are not strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Such fields are ignored, as the provider ignores them.
    Ignored,
    /// Such fields are refused: in what a person writes, they are most likely misspelt.
    Refused,
}

impl Document {
    /// Whether `arguments` fit the operation. An operation that takes bytes, or is not described, takes any.
    ///
    /// # Errors
    /// A place that does not fit, or that `arguments` are no JSON or take too many steps to judge.
    pub fn check_arguments(&self, operation: &str, arguments: &[u8], unknown: Unknown) -> Result<(), Misfit> {
        match self.method(operation).map(|method| &method.arguments) {
            None | Some(Arguments::Bytes) => Ok(()),
            Some(Arguments::Fields { strict, fields, .. }) => {
                let payload = if is_empty(arguments) { b"{}" } else { arguments };
                Judge::new(self, unknown).payload(payload, View::Record { fields, strict: *strict })
            }
            Some(Arguments::Value(schema)) => self.check(arguments, View::Schema(schema), unknown),
        }
    }

    /// Whether `result` fits the operation. An operation that answers bytes, or is not described, may answer any.
    ///
    /// # Errors
    /// A place that does not fit, or that `result` is no JSON or takes too many steps to judge.
    pub fn check_result(&self, operation: &str, result: &[u8]) -> Result<(), Misfit> {
        match self.method(operation) {
            None => Ok(()),
            Some(method) => self.check_payload(&method.result, result),
        }
    }

    /// Whether `bytes` fit `payload`, which is described in this document. If it is raw bytes, any fit.
    ///
    /// # Errors
    /// A place that does not fit, or that `bytes` are no JSON or take too many steps to judge.
    pub fn check_payload(&self, payload: &Payload, bytes: &[u8]) -> Result<(), Misfit> {
        match payload {
            Payload::Bytes => Ok(()),
            Payload::Json { schema, .. } => self.check(bytes, View::Schema(schema), Unknown::Ignored),
        }
    }

    /// Judges the payload as [`weir_names::codec::Json`] reads it: an empty one, or `null`, stands for `null` or `{}`.
    fn check(&self, payload: &[u8], view: View<'_>, unknown: Unknown) -> Result<(), Misfit> {
        let judge = |payload| Judge::new(self, unknown).payload(payload, view);
        if is_empty(payload) {
            judge(b"null").or_else(|misfit| judge(b"{}").map_err(|_| misfit))
        } else {
            judge(payload)
        }
    }
}

/// Whether a payload says nothing: there is none, or it is `null`.
fn is_empty(payload: &[u8]) -> bool {
    matches!(payload, b"" | b"null")
}
