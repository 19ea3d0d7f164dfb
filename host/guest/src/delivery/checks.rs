//! Requests held against the extension's own description of its contracts.

use std::sync::Arc;

use weir_bus::{Error, Request};
use weir_config::{ExtensionConfig, Validate};
use weir_names::ContractName;
use weir_openrpc::{Arguments, Descriptions, Unknown};

use crate::program::Program;

/// Bytes of a request that can be checked. No extension runs meanwhile: small values of so many take 10 ms.
const MAX_CHECKED: usize = 64 * 1024;

/// What is checked of the messages for one instance.
#[derive(Debug)]
pub(crate) struct Checks {
    descriptions: Arc<Descriptions>,
}

impl Checks {
    /// What is configured. None: nothing is checked.
    pub(crate) fn of(config: &ExtensionConfig, program: &Program) -> Option<Box<Self>> {
        (config.validate != Validate::Nothing)
            .then(|| Box::new(Self { descriptions: program.descriptions.clone() }))
    }

    /// Whether it describes none of these contracts.
    pub(crate) fn has_none_of(&self, contracts: &[ContractName]) -> bool {
        contracts.iter().all(|contract| self.descriptions.of_provider(contract.as_str()).is_none())
    }

    /// The answer to a request that does not fit.
    pub(super) fn misfit(&self, request: &Request) -> Option<Error> {
        let operation = request.responder.operation();
        let document = self.descriptions.of_provider(operation.contract.as_str())?;
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
