//! What is generated of Weir's own contracts, and of one with everything that is hard, is in `golden`.
//!
//! With `INSTA_UPDATE=always` in the environment a test writes what it should be.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use std::{env, fs, path::Path};

use weir_generate::{Kind, Language, generate};
use weir_openrpc::Document;

use self::common::{CONTRACTS, odd, provided};

/// Each file, and what it should be.
fn golden() -> Vec<(&'static str, String)> {
    let (settings, plugins) = ([provided(weir_contracts::settings::CONTRACT)], CONTRACTS.map(provided));
    let odd = [odd()];
    let of = |documents: &[Document], language, kind| generate(documents, language, kind).unwrap();
    vec![
        ("settings_extension.rs", of(&settings, Language::Rust, Kind::Extension)),
        ("settings_app.rs", of(&settings, Language::Rust, Kind::App)),
        ("settings_sidecar.rs", of(&settings, Language::Rust, Kind::Sidecar)),
        ("settings.ts", of(&settings, Language::TypeScript, Kind::App)),
        ("settings_app.py", of(&settings, Language::Python, Kind::App)),
        ("settings_sidecar.py", of(&settings, Language::Python, Kind::Sidecar)),
        ("plugins_extension.rs", of(&plugins, Language::Rust, Kind::Extension)),
        ("plugins.ts", of(&plugins, Language::TypeScript, Kind::App)),
        ("plugins_sidecar.py", of(&plugins, Language::Python, Kind::Sidecar)),
        ("odd_extension.rs", of(&odd, Language::Rust, Kind::Extension)),
        ("odd_sidecar.rs.txt", of(&odd, Language::Rust, Kind::Sidecar)),
        ("odd.ts", of(&odd, Language::TypeScript, Kind::App)),
        ("odd_app.py", of(&odd, Language::Python, Kind::App)),
        ("plugins.wit", of(&plugins, Language::Wit, Kind::Extension)),
        ("odd.wit", of(&odd, Language::Wit, Kind::Extension)),
    ]
}

#[test]
fn what_is_generated_is_as_before() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let update = env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always");
    let mut files: Vec<_> = fs::read_dir(&directory)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    for (name, text) in golden() {
        let path = directory.join(name);
        if update {
            fs::write(&path, &text).unwrap();
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        let line = kept.lines().zip(text.lines()).position(|(kept, new)| kept != new);
        assert!(kept == text, "{name}, line {line:?}: see with `git diff` and INSTA_UPDATE=always");
        files.retain(|file| file != name);
    }
    assert!(update || files.is_empty(), "nothing makes {files:?}");
}

#[test]
fn interfaces_are_wit() {
    for (name, text) in golden().into_iter().filter(|(name, _)| name.ends_with(".wit")) {
        let mut resolve = wit_parser::Resolve::default();
        let package = resolve.push_str(name, &text).unwrap();
        resolve.select_world(&[package], Some("caller")).unwrap();
    }
}

/// What a hostile or an unlucky document gives: always WIT, and operations that are left out.
#[test]
fn whatever_a_document_has_the_interfaces_are_wit() {
    let document = |title: &str, more: &str, methods: &str, schemas: &str| {
        Document::parse(&format!(
            r#"{{"openrpc":"1.3.2","info":{{"title":"{title}","version":"1"{more}}},"methods":[{methods}],"components":{{"schemas":{{{schemas}}}}}}}"#
        ))
        .unwrap()
    };
    let method = |contract: &str, name: &str, result: &str| {
        format!(r#"{{"name":"{contract}/{name}","params":[],"result":{{"name":"R","schema":{result}}}}}"#)
    };
    let written = |documents: &[Document]| {
        let text = generate(documents, Language::Wit, Kind::Extension).unwrap();
        let mut resolve = wit_parser::Resolve::default();
        let package = resolve.push_str("it.wit", &text);
        let package = package.unwrap_or_else(|error| panic!("{}\n{text}", resolve.render_error(&error)));
        resolve.select_world(&[package], Some("caller")).unwrap();
        text
    };
    let one =
        |result: &str, schemas: &str| written(&[document("a@1", "", &method("a@1", "get", result), schemas)]);

    for title in ["list@1", "flags@1", "a-1b@1", "x.2y@3"] {
        written(&[document(title, "", &method(title, "get", r#"{"type":"string"}"#), "")]);
    }
    let twins = ["a.b@1", "a-b@1"]
        .map(|title| document(title, "", &method(title, "get", r#"{"type":"string"}"#), ""));
    assert!(written(&twins).contains("contracts:a-b2/operations@1.0.0"));
    let evil = r#","x-export":"acme:x/y;\n export wasi:cli/run@0.2.0;\n} world evil {""#;
    let evil = written(&[document("a@1", evil, &method("a@1", "get", r#"{"type":"string"}"#), "")]);
    assert!(!evil.contains("evil"), "{evil}");
    let stand_in = r#","x-export":"contracts:foo/operations@1.0.0""#;
    let method_of = |contract: &str| method(contract, "get", r#"{"type":"string"}"#);
    written(&[
        document("fake@1", stand_in, &method_of("fake@1"), ""),
        document("foo@1", "", &method_of("foo@1"), ""),
    ]);
    for export in
        ["generated:a-1/b", "wasi:cli/run@0.2.0", "Acme:x/y", "acme:x/y@1.0.0-", "acme:x/y@1.0.0-01"]
    {
        let text = written(&[document("a@1", &format!(r#","x-export":"{export}""#), &method_of("a@1"), "")]);
        assert!(text.contains("import contracts:a/operations@1.0.0;"), "{export}\n{text}");
    }
    for (result, schemas, expected) in [
        (
            r##"{"type":"array","items":{"$ref":"#/components/schemas/L"}}"##,
            r#""L":{"type":"integer","format":"uint8"}"#,
            "list<u16>",
        ),
        (r#"{"enum":["a","A"]}"#, "", "`get` is left out: another name is the same as `A` in WIT"),
        (
            r#"{"type":"object","required":["a-b","ab"],"properties":{"a-b":{"type":"string"},"ab":{"type":"string"}}}"#,
            "",
            "another name is the same as `ab`",
        ),
        (r#"{"type":"object","properties":{"tags":{"type":"string"}}}"#, "", "its answer may lack `tags`"),
        (
            r#"{"type":"object","required":["per_1m"],"properties":{"per_1m":{"type":"string"}}}"#,
            "",
            "per-1m: string",
        ),
        (
            r##"{"oneOf":[{"$ref":"#/components/schemas/Rate"},{"const":"none"}]}"##,
            r#""Rate":{"type":"object","required":["per_second"],"properties":{"per_second":{"type":"string"}}}"#,
            "`per_second` is no name in WIT",
        ),
        (
            r#"{"type":"array","uniqueItems":true,"items":{"enum":["a0","a1","a2","a3","a4","a5","a6","a7","a8","a9","b0","b1","b2","b3","b4","b5","b6","b7","b8","b9","c0","c1","c2","c3","c4","c5","c6","c7","c8","c9","d0","d1","d2"]}}"#,
            "",
            "a set of more than 32 words",
        ),
        (
            r#"{"type":"object","required":["\u0149"],"properties":{"\u0149":{"type":"string"}}}"#,
            "",
            "is no name in WIT",
        ),
        (r#"{"type":"string","description":"a\u0149b"}"#, "", "get: func() -> result<string, string>;"),
    ] {
        let text = one(result, schemas);
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    // Each type is the next one in ten lists.
    let deep = |number: u32, inner: &str| {
        let lists = r#"{"type":"array","items":"#.repeat(10);
        format!(r#""T{number}":{lists}{inner}{}"#, "}".repeat(10))
    };
    let types: Vec<_> = (0..400)
        .map(|number| deep(number, &format!(r##"{{"$ref":"#/components/schemas/T{}"}}"##, number + 1)))
        .chain([deep(400, r#"{"type":"boolean"}"#)])
        .collect();
    let text = one(r##"{"$ref":"#/components/schemas/T0"}"##, &types.join(","));
    assert!(text.contains("its types have more than 32 levels"), "{text}");
}
