//! What a peer may call: a contract, or one of its operations.

use std::{fmt, str::FromStr};

use crate::{ContractName, NameError, OperationName};

/// What a peer may call: a contract such as `settings@1`, or one operation of it, such as `settings@1/get`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallGrant {
    /// The contract.
    pub contract: ContractName,
    /// The only operation. `None`: all of them.
    pub operation: Option<OperationName>,
}

impl CallGrant {
    /// Whether it lets a peer call this operation.
    #[must_use]
    pub fn allows(&self, contract: &ContractName, operation: &OperationName) -> bool {
        self.contract == *contract && self.operation.as_ref().is_none_or(|only| only == operation)
    }
}

impl From<ContractName> for CallGrant {
    fn from(contract: ContractName) -> Self {
        Self { contract, operation: None }
    }
}

impl FromStr for CallGrant {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let (contract, operation) = match text.split_once('/') {
            Some((contract, operation)) => (contract, Some(operation)),
            None => (text, None),
        };
        Ok(Self { contract: contract.parse()?, operation: operation.map(str::parse).transpose()? })
    }
}

impl fmt::Display for CallGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.operation {
            Some(operation) => write!(f, "{}/{operation}", self.contract),
            None => self.contract.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_for_a_contract_or_for_one_operation_of_it() {
        let (settings, get, set) =
            ("settings@1".parse().unwrap(), "get".parse().unwrap(), "set".parse().unwrap());
        let all: CallGrant = "settings@1".parse().unwrap();
        let one: CallGrant = "settings@1/get".parse().unwrap();
        assert!(all.allows(&settings, &get) && all.allows(&settings, &set));
        assert!(one.allows(&settings, &get) && !one.allows(&settings, &set));
        assert!(!all.allows(&"settings@2".parse().unwrap(), &get));
        assert_eq!([all.to_string(), one.to_string()], ["settings@1", "settings@1/get"]);
        for bad in ["", "settings", "settings@1/", "settings@1/a/b", "/get"] {
            assert!(bad.parse::<CallGrant>().is_err(), "{bad}");
        }
    }
}
