//! What the component says about itself.

use serde_json::json;
use weir_host::{
    component::inspect,
    openrpc::{Arguments, Document, Payload, Role, Schema, Shape},
};

use crate::language::Language;

/// Operations of bytes. `add` is the other.
const OPERATIONS: [&str; 25] = [
    "echo",
    "large",
    "relay",
    "fail",
    "break",
    "spin",
    "recurse",
    "call",
    "send",
    "cancel",
    "publish",
    "publish-to",
    "subscribe",
    "unsubscribe",
    "put",
    "take",
    "sleep",
    "context",
    "interrupt",
    "log",
    "config",
    "env",
    "read",
    "write",
    "add",
];

pub(super) async fn manifest(language: &Language) {
    let inspection = inspect(&language.component).unwrap();
    let mut manifest = serde_json::to_value(inspection.manifest.expect("it has no manifest")).unwrap();
    let version = manifest.as_object_mut().unwrap().remove("version");
    assert!(version.is_some_and(|version| !version.as_str().unwrap().is_empty()));
    let specified = json!({
        "id": "conformance",
        "fulfills": ["conformance@1"],
        "requires": ["tester@1"],
        "wants": ["other@1", "nobody@1"],
        "publishes": ["conformance.out.>"],
        "subscribes": ["conformance.in.>", "conformance.numbers", "conformance.more.>"],
        "puts": ["conformance-out"],
        "takes": ["conformance-jobs", "conformance-more"],
        "grants": { "dirs": [{ "guest": "/data", "mode": "rw" }], "env": ["CONFORMANCE"], "net": [] },
    });
    assert_eq!(manifest, specified);
}

pub(super) async fn description(language: &Language) {
    let documents = inspect(&language.component).unwrap().contracts;
    let own: Vec<_> = documents
        .iter()
        .filter(|document| document.contract.as_str() == "conformance@1" && document.role == Role::Provider)
        .collect();
    let [document] = own[..] else { panic!("{} descriptions of `conformance@1`", own.len()) };
    for name in OPERATIONS {
        let method = document.method(name).unwrap_or_else(|| panic!("`{name}` is not described"));
        if name == "add" {
            let Arguments::Fields { fields, .. } = &method.arguments else {
                panic!("{:?}", method.arguments)
            };
            integers(
                fields.iter().map(|field| (&*field.name, field.required, &field.schema)),
                &["left", "right"],
            );
            is_json(document, &method.result, &["sum"]);
        } else {
            assert_eq!((&method.arguments, &method.result), (&Arguments::Bytes, &Payload::Bytes), "{name}");
        }
    }
    assert_eq!(document.methods.len(), OPERATIONS.len());
    for (pattern, fields) in
        [("conformance.numbers", &["left", "right"][..]), ("conformance.out.sum", &["sum"])]
    {
        let topic = document.topics.iter().find(|topic| topic.pattern == pattern);
        is_json(document, &topic.unwrap_or_else(|| panic!("`{pattern}` is not described")).payload, fields);
    }
}

fn is_json(document: &Document, payload: &Payload, names: &[&str]) {
    let Payload::Json { schema, .. } = payload else { panic!("{payload:?} is no JSON") };
    let Shape::Record { fields, .. } = &document.resolve(schema).shape else {
        panic!("{schema:?} is no object")
    };
    integers(fields.iter().map(|field| (&*field.name, field.required, &field.schema)), names);
}

fn integers<'a>(fields: impl Iterator<Item = (&'a str, bool, &'a Schema)>, names: &[&str]) {
    let fields: Vec<_> = fields.collect();
    assert_eq!(fields.iter().map(|(name, ..)| *name).collect::<Vec<_>>(), names);
    for (name, required, schema) in fields {
        assert!(required && matches!(schema.shape, Shape::Integer { .. }), "{name}: {schema:?}");
    }
}
