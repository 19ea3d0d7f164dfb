//! The host reads what the SDK writes of the contracts.

use weir_contracts::{courier, device_info, echo, settings, storage, telemetry};
use weir_openrpc::{Document, Role};
use weir_sdk::{Contract, Manifest};

/// The section of an extension that fulfils and requires contracts.
fn section(fulfills: &'static [Contract], requires: &'static [Contract]) -> Vec<u8> {
    let manifest = Manifest { fulfills, requires, ..Manifest::new("test", "0.1.0") };
    let section = manifest.descriptions::<{ 64 * 1024 }>();
    let (section, _) = section.split_at(manifest.descriptions_length());
    section.to_vec()
}

const ALL: &[Contract] = &[
    courier::CONTRACT,
    device_info::CONTRACT,
    echo::CONTRACT,
    settings::CONTRACT,
    storage::CONTRACT,
    telemetry::CONTRACT,
];

#[test]
fn the_contracts_of_all_extensions_are_described() {
    let documents = Document::parse_section(&section(ALL, &[])).unwrap();
    assert_eq!(documents.len(), ALL.len());
    for (document, contract) in documents.iter().zip(ALL) {
        assert_eq!(document.contract.to_string(), contract.name());
        assert_eq!(document.role, Role::Provider);
        let methods = document.methods.iter().map(|method| method.name.as_str());
        assert!(methods.eq(contract.description().unwrap().operations()));
        let described = document.methods.iter().all(|method| !method.description.is_empty());
        assert!(described && !document.description.is_empty(), "{contract}");
    }
}

#[test]
fn a_caller_says_what_it_expects_and_nothing_for_people() {
    let documents = Document::parse_section(&section(&[echo::CONTRACT], ALL)).unwrap();
    let callers: Vec<_> = documents.iter().filter(|document| document.role == Role::Caller).collect();
    assert_eq!(callers.len(), ALL.len());
    for caller in callers {
        let json = caller.line();
        assert!(!json.contains("\"description\"") && !json.contains("\"errors\""), "{json}");
        assert!(!caller.methods.is_empty());
    }
}
