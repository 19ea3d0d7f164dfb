//! Checks requests against the extension's own description of its contracts.

use std::sync::Arc;

use weir_bus::{Error, Request};
use weir_config::{ExtensionConfig, Validate};
use weir_names::ContractName;
use weir_openrpc::{Arguments, Descriptions, Unknown};

use crate::program::Program;

/// The most bytes of a request that is to be checked; a longer one is refused. No extension runs during a check, and
/// many small values of this size take 10 ms.
const MAX_CHECKED: usize = 64 * 1024;

/// What the requests to one instance are checked against.
#[derive(Debug)]
pub(crate) struct Checks {
    descriptions: Arc<Descriptions>,
}

impl Checks {
    /// Returns the checks that are configured, or none if nothing is to be checked.
    pub(crate) fn of(config: &ExtensionConfig, program: &Program) -> Option<Box<Self>> {
        (config.validate != Validate::Nothing)
            .then(|| Box::new(Self { descriptions: program.descriptions.clone() }))
    }

    /// Whether the component describes none of these contracts.
    pub(crate) fn has_none_of(&self, contracts: &[ContractName]) -> bool {
        contracts.iter().all(|contract| self.descriptions.of_provider(contract.as_str()).is_none())
    }

    /// Returns the error for a request that does not fit or is too long to be checked. Returns none for a request that
    /// fits, has no description, or takes bytes in any form.
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
