//! The operator's own names of methods.

use std::fmt;

use weir_host::{
    config::extend::quote,
    names::{ContractName, OperationName, Topic},
};

use crate::rpc;

/// Completes the messages "… is not …" and "… each …".
pub(super) const CALL: &str = "a contract, a `/` and an operation, as in `device.info@1/name`";

/// Notifications that the gateway sends to apps. An alias of such a name could not be told from them.
const TO_APPS: [&str; 3] = ["events.ended", "events.event", "events.lost"];

/// Most bytes of an alias.
const LENGTH_MAX: usize = 128;

/// The meaning of an alias.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alias {
    /// A call, as in `device.info@1/name`.
    Call {
        /// The contract.
        contract: ContractName,
        /// The operation.
        operation: OperationName,
    },
    /// A subscription to a topic.
    Topic(Topic),
}

/// Displays the meaning as the operator's file has it.
impl fmt::Display for Alias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call { contract, operation } => write!(f, "\"{contract}/{operation}\""),
            Self::Topic(topic) => write!(f, "{{ topic = \"{topic}\" }}"),
        }
    }
}

/// Parses the meaning of an alias that is a call.
pub(super) fn call(text: &str) -> Result<Alias, String> {
    let (contract, operation) =
        text.split_once('/').ok_or_else(|| format!("{} is not {CALL}", quote(text)))?;
    let contract = contract.parse().map_err(|error| format!("{error}"))?;
    let operation = operation.parse().map_err(|error| format!("{error}"))?;
    Ok(Alias::Call { contract, operation })
}

/// What is wrong with the name of an alias. `None` if nothing is.
pub(super) fn name_fault(name: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'/';
    if !(1..=LENGTH_MAX).contains(&name.len()) || !name.bytes().all(is_plain) {
        let name = quote(name);
        return Some(format!(
            "{name} is not an alias: 1 to {LENGTH_MAX} printable ASCII characters without space or `/`"
        ));
    }
    if name.starts_with("rpc.") {
        return Some(format!("{} begins with `rpc.`, and those names belong to JSON-RPC", quote(name)));
    }
    let is_built_in = rpc::BUILT_IN.contains(&name) || TO_APPS.contains(&name);
    is_built_in.then(|| format!("{} is built in, and an alias would hide it", quote(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_hides_nothing_that_has_a_meaning_already() {
        for name in ["device.name", "rpc", "rpcs.a", "events.mine", "Events.publish", "a", &"a".repeat(128)] {
            assert_eq!(name_fault(name), None, "{name}");
        }
        let others = ["", "a/b", "a b", "ä", "\n", "rpc.", "rpc.discover", &"a".repeat(129)];
        for name in others.into_iter().chain(rpc::BUILT_IN).chain(TO_APPS) {
            assert!(name_fault(name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_call_is_a_contract_and_an_operation() {
        let (contract, operation) = ("device.info@1".parse().unwrap(), "name".parse().unwrap());
        assert_eq!(call("device.info@1/name"), Ok(Alias::Call { contract, operation }));
        for text in ["", "/", "device.info@1", "device.info@1/", "device.info/name", "a@1/b/c", "a@1/b c"] {
            assert!(call(text).is_err(), "{text}");
        }
    }
}
