//! Pairs of contracts in `compare.json`, of which the first word of each name says whether one may become the other.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::{collections::BTreeMap, fmt::Write};

use serde_json::Value;
use weir_openrpc::{Document, Finding, Severity, compare, needs};

fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let severity = match finding.severity {
            Severity::Breaking => "breaking",
            Severity::Compatible => "compatible",
        };
        writeln!(text, "{severity}: {finding}").unwrap();
    }
    if text.is_empty() { "nothing\n".into() } else { text }
}

#[test]
fn each_pair_is_judged_as_its_name_says() {
    let pairs: BTreeMap<String, BTreeMap<String, Value>> =
        serde_json::from_str(include_str!("compare.json")).unwrap();
    assert_eq!(pairs.len(), 57, "a name is there twice");
    let mut judged = String::new();
    for (name, pair) in pairs {
        let [old, new] = ["old", "new"].map(|side| Document::parse(&pair[side].to_string()).unwrap());
        let findings = compare(&old, &new);
        let breaks = findings.iter().any(|finding| finding.severity == Severity::Breaking);
        assert_eq!(breaks, name.starts_with("breaking-"), "{name}: {}", text(&findings));
        write!(judged, "# {name}\n{}\n", text(&findings)).unwrap();
    }
    insta::assert_snapshot!(judged);
}

#[test]
fn a_contract_is_compatible_with_itself() {
    let library = include_str!("documents/library.json");
    let library = Document::parse(library).unwrap();
    assert_eq!(compare(&library, &library), []);
    assert_eq!(needs(&library, &library), []);
}

fn sides(caller: &str, provider: &str) -> String {
    let document = |methods: &str| {
        let head = r#"{"openrpc":"1.3.2","info":{"title":"x@1"},"#;
        Document::parse(&format!("{head}{methods}}}")).unwrap()
    };
    text(&needs(&document(caller), &document(provider)))
}

fn method(name: &str, params: &str, result: &str) -> String {
    format!(
        r#""methods":[{{"name":"x@1/{name}","params":[{params}],"result":{{"name":"","schema":{result}}}}}]"#
    )
}

#[test]
fn what_a_caller_needs_and_the_provider_does_not_describe_is_found() {
    let key = r#"{"name":"key","required":true,"schema":{"type":"string"}}"#;
    let optional = r#"{"name":"key","schema":{"type":["string","null"]}}"#;
    let wrong = r#"{"name":"kye","required":true,"schema":{"type":"string"}}"#;
    let object = |fields: &str, required: &str| {
        format!(r#"{{"type":"object","properties":{{{fields}}},"required":[{required}]}}"#)
    };
    let value = object(r#""value":{"type":"string"}"#, r#""value""#);
    let more = object(r#""value":{"type":"string"},"age":{"type":"integer"}"#, r#""value""#);
    let topics = |topics: &str| {
        format!(r#""x-topics":[{topics}],"x-queues":[{{"name":"jobs","job":{{"type":"string"}}}}]"#)
    };
    let mut found = String::new();
    for (name, caller, provider) in [
        ("the same", method("get", key, &value), method("get", key, &value)),
        ("a result with more", method("get", key, &value), method("get", key, &more)),
        ("another operation", method("gte", key, "true"), method("get", key, "true")),
        ("no operation", method("get", key, "true"), r#""methods":[]"#.into()),
        ("a misspelt argument", method("get", wrong, "true"), method("get", key, "true")),
        ("an optional argument", method("get", optional, "true"), method("get", key, "true")),
        ("a field of the result", method("get", key, &more), method("get", key, &value)),
        (
            "another word",
            method("get", key, r#"{"enum":["on"]}"#),
            method("get", key, r#"{"enum":["on","off"]}"#),
        ),
        (
            "another type",
            method("get", key, r#"{"type":"string"}"#),
            method("get", key, r#"{"type":"integer"}"#),
        ),
        ("topics", topics(r#"{"name":"x.one","payload":true}"#), topics(r#"{"name":"x.>","payload":true}"#)),
        (
            "no topic and no queue",
            topics(r#"{"name":"y.one","payload":true}"#),
            r#""x-topics":[{"name":"x.one","payload":true}]"#.into(),
        ),
    ] {
        write!(found, "{name}\n{}\n", sides(&caller, &provider)).unwrap();
    }
    insta::assert_snapshot!(found);
}
