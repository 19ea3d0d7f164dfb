//! The operations that a peer's current instance serves, by number.

use std::{collections::HashSet, sync::Arc};

use weir_names::{ContractName, Error, OperationName};

use super::Peer;
use crate::{
    id::{InstanceId, OperationId, parsed},
    message::ValueTypes,
};

/// How many operations of one contract a peer may serve.
const MAX_OPERATIONS: usize = 256;

/// How many operations an error lists.
const MAX_LISTED: usize = 16;

/// An operation that a peer serves.
#[derive(Debug)]
pub(super) struct Served {
    id: Arc<OperationId>,
    /// The types of the values that the peer takes for it in place of payloads.
    values: Option<ValueTypes>,
}

impl Peer {
    /// Declares the operations of one contract that this peer serves. Returns the number of the first one.
    pub fn serve(&self, contract: &str, operations: &[String]) -> Result<u32, Error> {
        let mut contract: ContractName = parsed(contract)?;
        self.may_serve(&contract)?;
        self.grants.read(|access| {
            // Shares the memory of the name in the grant.
            let granted = access.and_then(|access| access.fulfills.iter().find(|own| **own == contract));
            contract = granted.unwrap_or(&contract).clone();
        });
        if operations.is_empty() || operations.len() > MAX_OPERATIONS {
            return Err(Error::Invalid(format!(
                "`{contract}` is served with {} operations; from 1 to {MAX_OPERATIONS} are possible",
                operations.len()
            )));
        }
        let names: Vec<OperationName> =
            operations.iter().map(|name| parsed(name)).collect::<Result<_, _>>()?;
        let mut distinct = HashSet::new();
        if let Some(twice) = names.iter().find(|name| !distinct.insert(*name)) {
            return Err(Error::Invalid(format!("operation `{twice}` is named twice")));
        }
        let mut served = self.served.lock();
        if served.iter().any(|operation| operation.id.contract == contract) {
            return Err(Error::Invalid(format!("`{contract}` is served already")));
        }
        let first = served.len();
        let id = |name| Arc::new(OperationId { contract: contract.clone(), name });
        let new = names.into_iter().map(|name| Served { id: id(name), values: None });
        served.extend(new);
        u32::try_from(first).map_err(|_| Error::Invalid("too many operations".into()))
    }

    /// Declares that the peer takes values in place of payloads: those of these types, for its operations in their order.
    pub fn take_values(&self, types: impl IntoIterator<Item = ValueTypes>) {
        for (served, types) in self.served.lock().iter_mut().zip(types) {
            served.values = Some(types);
        }
    }

    /// The types of the values that the peer's present instance takes for the operation with this number.
    pub(crate) fn value_types(&self, number: u32) -> Option<ValueTypes> {
        self.served.lock().get(usize::try_from(number).ok()?)?.values.clone()
    }

    /// Returns the contracts that the peer's present instance serves.
    pub fn serves(&self) -> Vec<ContractName> {
        let mut contracts: Vec<_> = self.served.lock().iter().map(|own| own.id.contract.clone()).collect();
        contracts.dedup();
        contracts
    }

    /// Returns the operations of this contract that the peer's present instance serves.
    pub(crate) fn operations_of(&self, contract: &ContractName) -> Vec<OperationName> {
        let served = self.served.lock();
        let own = served.iter().filter(|operation| operation.id.contract == *contract);
        own.map(|operation| operation.id.name.clone()).collect()
    }

    /// Returns the number of an operation and the instance for which the number holds, if that instance serves it.
    pub(crate) fn find(&self, operation: &OperationId) -> Option<(InstanceId, u32)> {
        let served = self.served.lock();
        let number = served.iter().position(|served| *served.id == *operation)?;
        Some((self.instance(), u32::try_from(number).ok()?))
    }

    /// Makes the error for an operation that the peer does not serve. It lists the operations of the contract that the
    /// peer does serve.
    pub(crate) fn no_operation(&self, operation: &OperationId) -> Error {
        let OperationId { contract, name } = operation;
        let served = self.served.lock();
        let mut known = served
            .iter()
            .filter(|served| served.id.contract == *contract)
            .map(|served| format!("`{}`", served.id.name));
        let mut listed = known.by_ref().take(MAX_LISTED).collect::<Vec<_>>().join(", ");
        let more = known.count();
        if more > 0 {
            listed.push_str(&format!(" and {more} more"));
        }
        let hint = if listed.is_empty() { listed } else { format!("; it has {listed}") };
        Error::Invalid(format!("`{contract}` has no operation `{name}` in `{}`{hint}", self.name))
    }
}
