//! What is generated in Rust compiles, has the JSON of the contract, and describes itself as the contract does.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

#[path = "golden"]
#[expect(unreachable_pub, reason = "in a library it is public")]
mod generated {
    #[rustfmt::skip]
    pub(crate) mod odd_extension;
    #[rustfmt::skip]
    #[path = "odd_sidecar.rs.txt"]
    pub(crate) mod odd_sidecar;
    #[rustfmt::skip]
    pub(crate) mod plugins_extension;
    #[rustfmt::skip]
    pub(crate) mod settings_app;
    #[rustfmt::skip]
    pub(crate) mod settings_extension;
    #[rustfmt::skip]
    pub(crate) mod settings_sidecar;
}

use std::fmt::Debug;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use weir_names::{Contract, Role};
use weir_openrpc::{Severity, compare, needs};

use self::{
    common::{CONTRACTS, document, odd, provided},
    generated::{
        odd_extension::{self, Kind, Move, Node, Self2, Shape},
        plugins_extension, settings_extension,
    },
};

/// The contracts of an extension that was given the generated file.
const GENERATED: [Contract; 5] = [
    plugins_extension::device_info::CONTRACT,
    plugins_extension::echo::CONTRACT,
    plugins_extension::settings::CONTRACT,
    plugins_extension::local_storage::CONTRACT,
    plugins_extension::telemetry::CONTRACT,
];

#[test]
fn an_extension_with_a_generated_contract_needs_what_the_provider_describes() {
    for (original, generated) in CONTRACTS.into_iter().zip(GENERATED) {
        let (provider, caller) = (provided(original), document(generated, Role::Caller));
        assert_eq!(needs(&caller, &provider), [], "{original:?}");
        let changes = compare(&provider, &provided(generated));
        let breaking: Vec<_> =
            changes.iter().filter(|change| change.severity == Severity::Breaking).collect();
        assert!(breaking.is_empty(), "{breaking:?}");
    }
    assert_eq!(
        document(settings_extension::CONTRACT, Role::Caller),
        document(plugins_extension::settings::CONTRACT, Role::Caller)
    );
}

#[test]
fn what_is_hard_to_describe_is_needed_as_any_json_and_nothing_else() {
    let (provider, caller) = (odd(), document(odd_extension::CONTRACT, Role::Caller));
    assert_eq!(needs(&caller, &provider), []);
}

fn is_read_and_written_as<T: Serialize + DeserializeOwned + Debug>(values: impl IntoIterator<Item = Value>) {
    for value in values {
        let read: T =
            serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{value}: {error}"));
        assert_eq!(serde_json::to_value(&read).unwrap(), value, "{read:?}");
    }
}

#[test]
fn types_are_read_and_written_as_the_json_of_the_contract() {
    is_read_and_written_as::<Kind>(["self", "Self", "1st", "", "a b", "None", "größer"].map(Value::from));
    is_read_and_written_as::<Shape>([
        json!({ "kind": "circle", "radius": 1.5 }),
        json!({ "kind": "group-of", "content": [{ "kind": "none" }], "for": 7 }),
    ]);
    is_read_and_written_as::<Move>([
        json!("stay"),
        json!({ "by": [0.5, "x"] }),
        json!({ "to": { "x": 1, "y": -1 } }),
        json!({ "then": { "then": "leave" } }),
        json!({ "both": ["stay", true] }),
    ]);
    is_read_and_written_as::<Self2>([
        json!({ "type": "self", "class": ["a"] }),
        json!({ "type": "self", "class": [], "self": "x", "größe": 3, "_answer": {}, "$base64": [[], [[]]] }),
    ]);
    let node = json!({ "children": [], "value": 1 });
    is_read_and_written_as::<Node>([
        json!({ "left": node, "right": node, "parent": { "node": node }, "children": [node], "value": "auto" }),
        json!({ "children": [], "value": [1, [1, 2, 3], { "no name": 1 }] }),
        json!({ "children": [], "value": [true, null] }),
        json!({ "children": [], "value": null }),
    ]);
}

#[test]
fn what_a_later_version_adds_to_an_open_type_is_read() {
    assert_eq!(serde_json::from_value::<Kind>(json!("new")).unwrap(), Kind::Other);
    assert_eq!(serde_json::from_value::<Shape>(json!({ "kind": "new", "size": 1 })).unwrap(), Shape::Other);
    serde_json::from_value::<Move>(json!("new")).unwrap_err();
}
