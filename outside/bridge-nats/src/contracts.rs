//! Contracts: calls of this Main to other nodes, and of other nodes to this Main.

mod export;
mod import;
mod services;
mod serving;

use weir_names::Error;

pub(crate) use self::{export::export, import::import};

/// Whether the error says that a call was delivered to nobody, because nobody serves the contract.
fn is_for_nobody(error: &Error) -> bool {
    matches!(error, Error::NoProvider(_) | Error::UnknownContract(_) | Error::NotReady(_))
}
