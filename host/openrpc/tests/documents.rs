//! Documents are read, written and shown, and what is no document says why and where.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fmt::Write;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use weir_openrpc::{Document, MAX_SECTION, Shape, Unknown, combined, compare};

const LIBRARY: &str = include_str!("documents/library.json");

fn library() -> Document {
    Document::parse(LIBRARY).unwrap()
}

/// A document with this method and these types.
fn document(method: &str, types: &str) -> String {
    format!(
        r#"{{"openrpc":"1.3.2","info":{{"title":"x@1","version":"1"}},"methods":[{method}],
        "components":{{"schemas":{{{types}}}}}}}"#
    )
}

fn with_schema(schema: &str) -> String {
    document(
        &format!(
            r#"{{"name":"x@1/y","params":[{{"name":"a","schema":{schema}}}],"result":{{"name":"","schema":true}}}}"#
        ),
        "",
    )
}

/// A document with each list and table on one line that has room there.
fn short(document: &impl serde::Serialize) -> String {
    let text = serde_json::to_string_pretty(document).unwrap();
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        lines.push(line.to_owned());
        let end = line.trim_start();
        if !end.starts_with(['}', ']']) {
            continue;
        }
        let indent = line.len() - end.len();
        let is_start = |line: &String| line.len() - line.trim_start().len() == indent;
        let inside = lines.iter().rev().skip(1).position(is_start).unwrap();
        let parts = lines.split_off(lines.len() - inside - 2);
        let joined: Vec<_> = parts.iter().map(|part| part.trim()).collect();
        let joined = format!("{:indent$}{}", "", joined.join(" "));
        if joined.len() <= 120 { lines.push(joined) } else { lines.extend(parts) }
    }
    lines.join("\n")
}

#[test]
fn what_is_written_reads_as_the_same_document() {
    let line = library().line();
    assert!(!line.contains('\n'));
    assert_eq!(Document::parse(&line).unwrap(), library());
    assert_eq!(Document::parse(&line).unwrap().line(), line);
    insta::assert_snapshot!(short(&library()));
}

#[test]
fn a_document_is_shown_as_text() {
    insta::assert_snapshot!(library().text());
}

#[test]
fn a_document_is_shown_as_markdown() {
    insta::assert_snapshot!(library().markdown());
}

#[test]
fn nothing_in_a_document_plays_with_the_terminal() {
    let hostile = LIBRARY
        .replace("The newest first.", "\\u001b[31mred\\u202e")
        .replace("\"title\"", "\"ti\\u0007tle\"")
        .replace("too-many", "too\\r\\nmany");
    let hostile = hostile.replacen("\"ti\\u0007tle\": \"library@1\"", "\"title\": \"library@1\"", 1);
    let document = Document::parse(&hostile).unwrap();
    for text in [document.text(), document.markdown()] {
        assert!(text.contains("red") && text.contains("ti\\u{7}tle"), "{text}");
        let harmful = text.chars().find(|character| *character != '\n' && weir_names::is_harmful(*character));
        assert_eq!(harmful, None);
    }
}

#[test]
fn several_contracts_make_one_document_in_which_no_type_is_mistaken_for_another() {
    let other = LIBRARY.replace("library@1", "archive@2").replace("A book.", "A box of papers.");
    let combined = combined(&[library(), Document::parse(&other).unwrap()]);
    insta::assert_snapshot!(short(&combined));
}

#[test]
fn what_is_no_document_says_why_and_where() {
    let method = |method: &str| document(method, "");
    let result = r#""result":{"name":"","schema":true}"#;
    let cases = [
        String::new(),
        "[]".into(),
        "{}".into(),
        r#"{"openrpc":1}"#.into(),
        r#"{"openrpc":"2.0"}"#.into(),
        r#"{"openrpc":"1.3.2"}"#.into(),
        r#"{"openrpc":"1.3.2","info":[]}"#.into(),
        r#"{"openrpc":"1.3.2","info":{"title":"Settings"}}"#.into(),
        r#"{"openrpc":"1.3.2","info":{"title":"x@1"},"x-role":"friend"}"#.into(),
        r#"{"openrpc":"1.3.2","info":{"title":"x@1"},"info":{}}"#.into(),
        r#"{"openrpc":"1.3.2","info":{"title":"x@1"},"methods":{}}"#.into(),
        method(r#"{"name":"get"}"#),
        method(r#"{"name":"x@1/a b"}"#),
        method(r#"{"name":"x@1/\u001b[31m"}"#),
        method(r#"{"name":"x@1/y"}"#),
        method(r#"{"name":"x@1/y","result":{"schema":true}}"#),
        method(&format!(r#"{{"name":"x@1/y","params":[{{"name":"a"}}],{result}}}"#)),
        method(&format!(
            r#"{{"name":"x@1/y","params":[{{"name":"a","required":1,"schema":true}}],{result}}}"#
        )),
        method(&format!(
            r#"{{"name":"x@1/y","params":[{{"name":"a","schema":true}},{{"name":"a","schema":true}}],{result}}}"#
        )),
        method(&format!(
            r#"{{"name":"x@1/y","params":[{{"name":"a","schema":true}}],"x-argument":true,{result}}}"#
        )),
        method(&format!(r#"{{"name":"x@1/y",{result}}},{{"name":"x@1/y",{result}}}"#)),
        method(&format!(r#"{{"name":"x@1/y",{result},"errors":[{{"code":-32602,"message":"no"}}]}}"#)),
        r#"{"openrpc":"1.3.2","info":{"title":"x@1"},"x-topics":[{"name":"a..b","payload":true}]}"#.into(),
        r#"{"openrpc":"1.3.2","info":{"title":"x@1"},"x-topics":[{"name":"a"}]}"#.into(),
        r#"{"openrpc":"1.3.2","info":{"title":"x@1"},"x-queues":[{"name":"A","job":true}]}"#.into(),
        r#"{"openrpc":"1.3.2","info":{"title":"x@1"},"components":{"schemas":[]}}"#.into(),
        with_schema("1"),
        with_schema(r#"{"type":"text"}"#),
        with_schema(r#"{"type":["string","integer"]}"#),
        with_schema(r#"{"pattern":"a*"}"#),
        with_schema(r#"{"type":"string","pattern":"a*"}"#),
        with_schema(r#"{"type":"string","minimum":1}"#),
        with_schema(r#"{"type":"string","minLength":-1}"#),
        with_schema(r#"{"type":"integer","minimum":0.5}"#),
        with_schema(r#"{"properties":{}}"#),
        with_schema(r##"{"$ref":"#/components/schemas/Missing"}"##),
        with_schema(r#"{"$ref":"http://example.com/schema"}"#),
        with_schema(r##"{"$ref":"#/components/schemas/Missing","properties":{}}"##),
        with_schema(r#"{"enum":[]}"#),
        with_schema(r#"{"enum":["a","a"]}"#),
        with_schema(r#"{"const":{}}"#),
        with_schema(r#"{"allOf":[]}"#),
        with_schema(r#"{"oneOf":[{"type":"string"},{"not":{}}]}"#),
        with_schema(r#"{"type":"object","required":["a"]}"#),
        with_schema(r#"{"type":"object","properties":{"odd \"key\"":{"type":"odd\nkind"}}}"#),
        with_schema(r#"{"type":"object","properties":{"a":true},"required":["b"]}"#),
        with_schema(r#"{"type":"array","prefixItems":[true,true],"minItems":1}"#),
        with_schema(&format!("{}true{}", r#"{"type":"array","items":"#.repeat(40), "}".repeat(40))),
        with_schema(&format!("{}true{}", r#"{"type":"array","items":"#.repeat(1000), "}".repeat(1000))),
        document("", r##""A":{"$ref":"#/components/schemas/A"}"##),
        document(
            "",
            r##""A":{"anyOf":[{"$ref":"#/components/schemas/B"},{"type":"null"}]},"B":{"oneOf":[{"type":"string"},{"$ref":"#/components/schemas/A"}]}"##,
        ),
    ];
    let mut errors = String::new();
    for case in cases {
        let error = Document::parse(&case).expect_err(&case);
        writeln!(errors, "{error}").unwrap();
    }
    insta::assert_snapshot!(errors);
}

#[test]
fn a_section_that_is_out_of_bounds_says_which() {
    let line = |number: usize| document("", "").replace("x@1", &format!("x@{number}")).replace('\n', "");
    let many = |count: usize| (0..count).map(|number| line(number) + "\n").collect::<String>();
    let method = |number: usize| format!(r#"{{"name":"x@1/{number}","x-bytes":true}}"#);
    let methods: Vec<String> = (0..1001).map(method).collect();
    let two = format!("{}\n{}", line(1), line(1).replace("\"version\":\"1\"", "\"description\":\"other\""));
    let cases = [
        vec![b' '; MAX_SECTION + 1],
        b"\xff".to_vec(),
        b"\n".to_vec(),
        b"{}\n".to_vec(),
        many(65).into_bytes(),
        document(&methods.join(","), "").replace('\n', "").into_bytes(),
        two.into_bytes(),
    ];
    let mut errors = String::new();
    for case in cases {
        writeln!(errors, "{}", Document::parse_section(&case).unwrap_err()).unwrap();
    }
    insta::assert_snapshot!(errors);
    assert_eq!(Document::parse_section(many(64).as_bytes()).unwrap().len(), 64);
    assert_eq!(Document::parse_section(b"").unwrap(), []);
}

#[test]
fn a_document_that_is_there_twice_counts_once() {
    let line = library().line();
    let caller = line.replace("provider", "caller");
    let section = format!("{line}\n{caller}\n{line}\n");
    assert_eq!(Document::parse_section(section.as_bytes()).unwrap().len(), 2);
}

#[test]
fn fields_keep_the_order_of_the_document() {
    let document =
        Document::parse(&with_schema(r#"{"type":"object","properties":{"z":true,"a":true,"m":true}}"#))
            .unwrap();
    assert!(document.line().contains(r#""properties":{"z":true,"a":true,"m":true}"#));
}

#[test]
fn a_type_of_a_document_resolves_to_what_it_is() {
    let library = library();
    let place = Shape::Named("Place".into()).into();
    assert!(matches!(&library.resolve(&place).shape, Shape::OneOf { options, .. } if options.len() == 4));
}

/// A schema, as JSON.
fn schemas() -> impl Strategy<Value = Value> {
    let words = || proptest::collection::hash_set("[ab]{1,2}", 1..4);
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!(false)),
        Just(json!({ "description": "any" })),
        Just(json!({ "type": "null" })),
        Just(json!({ "$ref": "#/components/schemas/A" })),
        Just(json!({ "const": 1.5 })),
        Just(json!({ "type": "number", "minimum": 0, "format": "float" })),
        any::<(i64, bool)>().prop_map(|(bound, null)| {
            let kind = if null { json!(["integer", "null"]) } else { json!("integer") };
            json!({ "type": kind, "minimum": bound, "format": "uint" })
        }),
        (words(), any::<(bool, bool)>()).prop_map(|(words, (null, open))| {
            let null = null.then_some(Value::Null);
            let words: Vec<Value> = words.into_iter().map(Value::from).chain(null).collect();
            json!({ "enum": words, "x-open": open })
        }),
        words().prop_map(|words| {
            let words = words.into_iter().map(|word| json!({ "const": word, "description": word }));
            json!({ "oneOf": words.collect::<Vec<_>>() })
        }),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let several = proptest::collection::vec(inner.clone(), 0..3);
        prop_oneof![
            inner.clone().prop_map(|items| json!({ "type": ["array", "null"], "items": items, "maxItems": 3 })),
            inner.clone().prop_map(|values| json!({ "type": "object", "additionalProperties": values })),
            inner.prop_map(|option| json!({ "anyOf": [option, { "type": "null" }], "description": "maybe" })),
            several.clone().prop_map(|places| {
                json!({ "type": "array", "prefixItems": places, "minItems": places.len(), "items": false })
            }),
            (several.clone(), any::<bool>())
                .prop_map(|(options, open)| json!({ "oneOf": options, "x-open": open })),
            (several, any::<bool>()).prop_map(|(fields, strict)| {
                let names = ["a", "b~/", "\""].into_iter().map(str::to_owned);
                let fields: Map<String, Value> = names.zip(fields).collect();
                let required: Vec<&String> = fields.keys().take(1).collect();
                json!({ "type": "object", "properties": fields, "required": required, "additionalProperties": !strict })
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_schema_is_written_as_one_that_reads_the_same(schema in schemas(), payload in schemas()) {
        let text = document(
            &format!(r#"{{"name":"x@1/y","params":[],"x-argument":{schema},"result":{{"name":"","schema":{payload}}}}}"#),
            r##""A":{"type":"object","properties":{"a":{"anyOf":[{"type":"null"},{"$ref":"#/components/schemas/A"}]}}}"##,
        );
        let parsed = match Document::parse(&text) {
            Ok(parsed) => parsed,
            Err(error) => {
                // Two types of a union that have a word in common.
                prop_assert!(error.to_string().ends_with("is there twice"), "{}", error);
                return Ok(());
            }
        };
        let line = parsed.line();
        let again = Document::parse(&line);
        prop_assert_eq!(again.as_ref(), Ok(&parsed), "{}", line);
        prop_assert_eq!(compare(&parsed, &parsed), []);
        // Schemas are payloads of some shape, too.
        let payload = payload.to_string();
        let refused = parsed.check_arguments("y", payload.as_bytes(), Unknown::Refused);
        prop_assert!(refused.is_err() || parsed.check_arguments("y", payload.as_bytes(), Unknown::Ignored).is_ok());
    }
}
