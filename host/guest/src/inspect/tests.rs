//! Handmade files, honest and not.

use weir_config::Loader;
use weir_openrpc::Role;

use semver::Version;
use weir_names::rules::is_semantic_version;

use super::*;

const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";
const MODULE: &[u8] = b"\0asm\x01\0\0\0";

fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [vec![id], length(content.len()), content.to_vec()].concat()
}

fn length(mut length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(length & 0x7f).unwrap();
        length >>= 7;
        bytes.push(if length > 0 { low | 0x80 } else { low });
        if length == 0 {
            return bytes;
        }
    }
}

fn text(text: &str) -> Vec<u8> {
    [length(text.len()), text.as_bytes().to_vec()].concat()
}

fn manifest(json: &str) -> Vec<u8> {
    section(0, &[text(MANIFEST_SECTION), json.as_bytes().to_vec()].concat())
}

fn contracts(lines: &str) -> Vec<u8> {
    section(0, &[text("weir:contracts"), lines.as_bytes().to_vec()].concat())
}

/// A component around a module with these sections, as built with the SDK.
fn around_module(sections: &[u8]) -> Vec<u8> {
    [COMPONENT, &section(1, &[MODULE, sections].concat())].concat()
}

/// A component that imports functions with these names.
fn with_imports(names: &[&str]) -> Vec<u8> {
    // One type: a function without parameters and results.
    let types = section(7, &[1, 0x40, 0, 1, 0]);
    let imports = names.iter().flat_map(|name| [vec![0], text(name), vec![1, 0]].concat());
    let imports = [length(names.len()), imports.collect()].concat();
    [COMPONENT, &types, &section(10, &imports)].concat()
}

fn inspected(bytes: &[u8]) -> Result<Inspection, InspectError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("some.wasm");
    std::fs::write(&path, bytes).unwrap();
    inspect(&path)
}

/// The error, without the directory.
fn refused(bytes: &[u8]) -> String {
    let message = inspected(bytes).unwrap_err().to_string();
    let (before, rest) = message.split_once("`/").unwrap();
    format!("{before}`{}", rest.split_once("some.wasm").map(|(_, rest)| format!("some.wasm{rest}")).unwrap())
}

const FULL: &str = r#"{
    "schema": 1, "id": "settings", "version": "1.2.3",
    "fulfills": ["settings@1"], "requires": ["local.storage@1"], "wants": [],
    "publishes": ["settings.changed.>"], "subscribes": ["a.*"],
    "puts": ["uploads"], "takes": ["reports", "uploads"],
    "grants": {
        "dirs": [{"guest": "/data", "mode": "rw"}, {"guest": "/etc", "mode": "ro"}],
        "env": ["LANG"], "net": ["example.com:443"]
    }
}"#;

#[test]
fn a_manifest_inside_a_nested_module_becomes_a_stanza_that_the_operators_file_accepts() {
    let found = inspected(&around_module(&manifest(FULL))).unwrap();
    let hash = found.sha256.to_string();
    insta::assert_snapshot!(found.stanza().replace(&hash, "HASH"), @r#"
    [[extension]]
    id = "settings"
    path = "some.wasm"
    # sha256 = "HASH"  # pins exactly this file
    fulfills = ["settings@1"]
    requires = ["local.storage@1"]
    publishes = ["settings.changed.>"]
    subscribes = ["a.*"]
    puts = ["uploads"]
    takes = ["reports", "uploads"]
    grants.dirs = [
        { host = "FILL-IN", guest = "/data", mode = "rw" },
        { host = "FILL-IN", guest = "/etc", mode = "ro" },
    ]
    grants.env = { "LANG" = "FILL-IN" }
    grants.net = ["example.com:443"]
    "#);
    let around = "[main]\nserves = [\"local.storage@1\"]\n[queue.uploads]\n[queue.reports]\n";
    let file = format!("{around}{}", found.stanza());
    let mut config = Loader::new().parse(&file, "weir.toml", "/plugins".as_ref()).unwrap();
    assert_eq!(config.extensions[0].grants.dirs.len(), 2);
    assert_eq!(config.extensions[0].sha256, None);
    config =
        Loader::new().parse(&file.replace("# sha256", "sha256"), "weir.toml", "/plugins".as_ref()).unwrap();
    assert_eq!(config.extensions[0].sha256, Some(found.sha256));
}

#[test]
fn without_a_manifest_the_stanza_names_the_file_and_a_note_says_so() {
    let found = inspected(&around_module(&[])).unwrap();
    assert!(found.stanza().starts_with("[[extension]]\nid = \"some\"\npath = \"some.wasm\"\n# sha256 = \""));
    assert!(found.notes().iter().any(|note| note.contains("no manifest")), "{:?}", found.notes());
}

#[test]
fn any_release_of_wasi_0_2_is_offered_and_others_are_not() {
    let imports = [
        "weir:iec/channel@0.1.0",
        "wasi:cli/environment@0.2.0",
        "wasi:io/poll@0.2.12",
        "wasi:config/store@0.2.0-rc.1",
        "wasi:logging/logging@0.1.0-draft",
        "wasi:logging/logging",
        "wasi:logging/logging@0.2.0",
        "wasi:http/incoming-handler@0.2.3",
        "wasi:http/types@0.3.0",
        "wasi:clocks/system-clock@0.3.0",
        "other",
    ];
    let found = inspected(&with_imports(&imports)).unwrap();
    assert_eq!(found.imports, imports);
    let notes = found.notes().join("\n");
    for import in &imports[..6] {
        assert!(!notes.contains(&format!("`{import}`")), "{notes}");
    }
    for import in &imports[6..] {
        let why = if import.contains("@0.3.") { "is of WASI 0.3" } else { "Weir does not offer" };
        assert!(notes.contains(&format!("it imports `{import}`, which {why}")), "{notes}");
    }
    assert!(notes.starts_with(fit::OF_WASI_0_3), "{notes}");
}

#[test]
fn a_component_of_another_version_of_the_interface_says_which_one_it_needs() {
    let note = |import: &str| inspected(&with_imports(&[import])).unwrap().notes().join("\n");
    let newer = "`weir:iec/channel@0.2.0`, which needs a newer Weir: one that offers `weir:iec` 0.2.0, and this one \
                 offers 0.1.0";
    assert!(note("weir:iec/channel@0.2.0").contains(newer), "{}", note("weir:iec/channel@0.2.0"));
    let older = "`weir:iec/channel@0.0.9`, which this Weir offers no more: it has `weir:iec` 0.1.0, so build";
    assert!(note("weir:iec/channel@0.0.9").contains(older), "{}", note("weir:iec/channel@0.0.9"));
}

#[test]
fn a_component_that_sends_http_is_told_which_grant_it_needs() {
    let found =
        inspected(&with_imports(&["wasi:http/types@0.2.3", "wasi:http/outgoing-handler@0.2.3"])).unwrap();
    let notes = found.notes().join("\n");
    assert_eq!(notes.contains("with the feature `http`"), cfg!(not(feature = "http")), "{notes}");
    let stanza = found.stanza();
    assert!(
        stanza.ends_with("grants.http = [{ to = \"https://FILL-IN\", methods = [\"GET\"] }]\n"),
        "{stanza}"
    );
    let config = Loader::new().parse(&stanza, "weir.toml", "/plugins".as_ref()).unwrap();
    assert_eq!(config.extensions[0].grants.http.len(), 1);
}

#[test]
fn a_component_that_imports_stores_is_told_which_grant_it_needs() {
    for import in ["wasi:keyvalue/store@0.2.0-draft", "wasi:keyvalue/atomics@0.2.0-draft2"] {
        let stanza = inspected(&with_imports(&[import])).unwrap().stanza();
        assert!(stanza.ends_with("\ngrants.stores = [\"FILL-IN\"]\n"), "{stanza}");
    }
    let stanza = inspected(&with_imports(&["wasi:io/poll@0.2.3"])).unwrap().stanza();
    assert!(!stanza.contains("grants.stores"), "{stanza}");
}

#[test]
fn names_are_escaped_and_cut() {
    let found = inspected(&with_imports(&["a\x1b[2Jb\n\u{202e}", &"x".repeat(5000)])).unwrap();
    assert_eq!(found.imports[0], "a\\u{1b}[2Jb\\n\\u{202e}");
    assert!(found.imports[1].len() < 300);
}

#[test]
fn files_that_are_no_components_are_refused_by_what_they_are() {
    assert!(refused(MODULE).contains("is a core module, not a component"), "{}", refused(MODULE));
    assert!(refused(b"").contains("is not a WebAssembly component"));
    assert!(refused(b"#!/bin/sh\necho hello").contains("is not a WebAssembly component"));
    let cut = around_module(&manifest(FULL));
    assert!(refused(&cut[..cut.len() - 5]).contains("is damaged"));
}

#[test]
fn more_than_any_real_component_holds_is_refused() {
    let names: Vec<String> = (0..=MAX_NAMES).map(|number| format!("n{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(refused(&with_imports(&names)), "`some.wasm` has more than 1000 imports");

    let mut nested = COMPONENT.to_vec();
    for _ in 0..=MAX_DEPTH {
        nested = [COMPONENT, &section(4, &nested)].concat();
    }
    assert_eq!(refused(&nested), "`some.wasm` has more than 16 modules within each other");
}

#[test]
fn a_manifest_that_the_sdk_would_not_write_is_refused() {
    let refused = |json: &str| refused(&around_module(&manifest(json)));
    for (json, said) in [
        ("{}", "missing field `schema`"),
        (r#"{"schema":2}"#, "it has schema 2, and this version of Weir knows schema 1"),
        (r#"{"schema":1,"id":"main","version":"1"}"#, "`main` is not an extension id"),
        (r#"{"schema":1,"id":"a","version":"1","fulfills":["a\u001b@1"]}"#, r"is not a contract"),
        (r#"{"schema":1,"id":"a","version":"1","grants":{"net":["nowhere"]}}"#, "is not an address"),
        (
            r#"{"schema":1,"id":"a","version":"1","grants":{"dirs":[{"guest":"../x","mode":"rw"}]}}"#,
            "is not an absolute path",
        ),
        (
            r#"{"schema":1,"id":"a","version":"1","grants":{"dirs":[{"guest":"/x","mode":"w"}]}}"#,
            "is not a mode",
        ),
    ] {
        let message = refused(json);
        assert!(message.starts_with("the manifest in `some.wasm` is not valid: "), "{message}");
        assert!(message.contains(said), "{message}");
        assert!(!message.contains('\x1b'), "{message}");
    }
    assert!(refused(&" ".repeat(MAX_MANIFEST + 1)).contains("it has 65537 bytes, of at most 65536"));
    let twice = around_module(&[manifest(FULL), manifest(FULL)].concat());
    assert!(self::refused(&twice).contains("there is a second one"));
}

#[test]
fn what_a_manifest_says_of_data_is_read_from_any_that_is_json_and_otherwise_an_error() {
    let states = |sections: &[u8]| DataStatement::of(&around_module(sections));
    let stated = |json: &str| states(&manifest(json));
    assert_eq!(states(&[]), Ok(DataStatement::default()));
    assert_eq!(stated(r#"{"schema":9,"id":7}"#), Ok(DataStatement::default()));
    let new = stated(r#"{"version":"1.2.0","data-since":"1.2.0"}"#).unwrap();
    assert_eq!((new.version.as_deref(), new.data_since.as_deref()), (Some("1.2.0"), Some("1.2.0")));
    for json in [
        r#"{"data-since":null}"#,
        r#"{"data-since":1.2}"#,
        r#"{"version":2,"data-since":"1.2.0"}"#,
        r#"{"data-since":"1.2.0","data-since":"1.2.0"}"#,
        r#"{"data-since":"1.2.0""#,
        &" ".repeat(MAX_MANIFEST + 1),
    ] {
        assert!(stated(json).is_err(), "{json:.40}");
    }
    let twice = [manifest("{}"), manifest(r#"{"data-since":"1.2.0"}"#)].concat();
    assert!(states(&twice).unwrap_err().contains("second"));
}

/// A contract with one operation.
fn document(contract: &str, role: &str) -> String {
    let (openrpc, info) = ("1.3.2", format!(r#"{{"title":"{contract}","version":"1"}}"#));
    let method =
        format!(r#"{{"name":"{contract}/do","params":[],"result":{{"name":"done","schema":{{}}}}}}"#);
    format!(r#"{{"openrpc":"{openrpc}","info":{info},"x-role":"{role}","methods":[{method}]}}"#)
}

#[test]
fn contracts_come_from_all_sections_of_a_component_and_of_the_modules_in_it() {
    // As a linker leaves them: several in one section, several sections, and the last line without an end.
    let inner = [
        contracts(&format!("{}\n{}\n", document("a@1", "provider"), document("b@2", "caller"))),
        contracts(&document("c@1", "provider")),
    ]
    .concat();
    let bytes = [around_module(&inner), contracts(&document("d@1", "caller"))].concat();
    let found = inspected(&bytes).unwrap();
    let found: Vec<_> = found.contracts.iter().map(|it| (it.contract.as_str(), it.role)).collect();
    assert_eq!(
        found,
        [("a@1", Role::Provider), ("b@2", Role::Caller), ("c@1", Role::Provider), ("d@1", Role::Caller)]
    );
    assert!(inspected(&around_module(&[])).unwrap().contracts.is_empty());
}

#[test]
fn contracts_out_of_bounds_are_refused_with_what_and_how_much_it_is() {
    let refused = |sections: &[u8]| refused(&around_module(sections));
    let deep = |depth: usize| {
        let schema =
            (0..depth).fold("{}".to_owned(), |inner, _| format!(r#"{{"type":"array","items":{inner}}}"#));
        document("a@1", "provider").replace("\"schema\":{}", &format!("\"schema\":{schema}"))
    };
    let many: String = (0..65).map(|number| document(&format!("c{number}@1"), "provider") + "\n").collect();
    let halves = [contracts(&" ".repeat(40_000)), contracts(&" ".repeat(40_000))].concat();
    let messages = [
        refused(&contracts(&"x".repeat(10 << 20))),
        refused(&halves),
        refused(&contracts(&deep(1000))),
        refused(&contracts(&many)),
        refused(&contracts("{\"openrpc\":\n")),
        refused(&contracts("\u{1b}[2J")),
        refused(&contracts(&document("not a contract", "provider"))),
    ];
    insta::assert_snapshot!(messages.join("\n"), @r"
    the contracts that `some.wasm` describes are not valid: they take 10485760 bytes, of at most 65536
    the contracts that `some.wasm` describes are not valid: they take 80000 bytes, of at most 65536
    the contracts that `some.wasm` describes are not valid: document 1: not JSON: it is more than 64 levels deep at line 1 column 1590
    the contracts that `some.wasm` describes are not valid: it has 65 documents, of at most 64
    the contracts that `some.wasm` describes are not valid: document 1: not JSON: EOF while parsing a value at line 1 column 11
    the contracts that `some.wasm` describes are not valid: document 1: not JSON: expected value at line 1 column 1
    the contracts that `some.wasm` describes are not valid: document 1: `$.info.title`: `not a contract` is not a contract: dotted segments of `a-z`, `0-9` and `-`, then `@` and a version number, as in `device.info@1`
    ");
}

#[test]
fn what_the_sdk_takes_for_a_version_is_one_for_main() {
    // All texts of these bytes, up to a length.
    let mut texts = vec![String::new()];
    let mut last = texts.clone();
    for _ in 0..5 {
        last = last
            .iter()
            .flat_map(|text| ["0", "1", "a", "-", ".", "+"].map(|byte| format!("{text}{byte}")))
            .collect();
        texts.extend(last.clone());
    }
    for text in texts {
        for text in [text.clone(), format!("1.0.{text}"), format!("1.0.0-{text}"), format!("1.0.0{text}")] {
            assert_eq!(is_semantic_version(&text), Version::parse(&text).is_ok(), "{text}");
        }
    }
}
