//! Requests held against the extension's own description of its contracts.

use weir_bus::{Error, Request};
use weir_config::{ExtensionConfig, Validate};
use weir_openrpc::{Arguments, Document, Role, Unknown};

use crate::program::Program;

/// Bytes of a request that can be checked. No extension runs meanwhile: small values of so many take 10 ms.
const MAX_CHECKED: usize = 64 * 1024;

/// What is checked of the messages for one instance.
#[derive(Debug)]
pub(crate) struct Checks {
    /// What it serves.
    contracts: Vec<Document>,
}

impl Checks {
    /// What is configured. None: nothing is checked.
    pub(crate) fn of(config: &ExtensionConfig, program: &Program) -> Option<Box<Self>> {
        if config.validate == Validate::Nothing {
            return None;
        }
        let mut contracts = program.contracts();
        contracts.retain(|document| {
            document.role == Role::Provider && config.fulfills.contains(&document.contract)
        });
        Some(Box::new(Self { contracts }))
    }

    /// Whether it describes nothing that could be checked.
    pub(crate) fn is_empty(&self) -> bool {
        self.contracts.is_empty()
    }

    /// The answer to a request that does not fit.
    pub(super) fn misfit(&self, request: &Request) -> Option<Error> {
        let operation = request.responder.operation();
        let document = self.contracts.iter().find(|document| document.contract == operation.contract)?;
        let (name, payload) = (operation.name.as_str(), &request.payload);
        if matches!(document.method(name)?.arguments, Arguments::Bytes) {
            return None;
        }
        if payload.len() > MAX_CHECKED {
            return Some(Error::TooLarge { bytes: payload.len() as u64, allowed: MAX_CHECKED as u64 });
        }
        document.check_arguments(name, payload, Unknown::Ignored).err().map(Error::invalid_argument)
    }
}
