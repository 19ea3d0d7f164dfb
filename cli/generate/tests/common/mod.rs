//! Contracts to generate clients of.

use weir_names::{Contract, Role, json::Writer};
use weir_openrpc::Document;

/// The contracts of Weir's own extensions.
pub(crate) const CONTRACTS: [Contract; 5] = [
    weir_contracts::device_info::CONTRACT,
    weir_contracts::echo::CONTRACT,
    weir_contracts::settings::CONTRACT,
    weir_contracts::storage::CONTRACT,
    weir_contracts::telemetry::CONTRACT,
];

/// What an extension says of a contract.
pub(crate) fn document(contract: Contract, role: Role) -> Document {
    let mut counter = Writer::new(&mut []);
    contract.write_document(role, &mut counter);
    let mut buffer = vec![0; counter.length()];
    contract.write_document(role, &mut Writer::new(&mut buffer));
    Document::parse(std::str::from_utf8(&buffer).unwrap()).unwrap()
}

/// What its provider says of a contract.
pub(crate) fn provided(contract: Contract) -> Document {
    document(contract, Role::Provider)
}

/// A contract with everything that is hard.
pub(crate) fn odd() -> Document {
    Document::parse(include_str!("../odd.json")).unwrap()
}
