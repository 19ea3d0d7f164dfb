//! `weir store`: what an extension keeps, as its operator sees it.

use std::fs;

use serde_json::json;

use super::support::{Running, configured, done, weir, with_own_component};

const CONFIG: &str = r#"
[main]
data-dir = "data"

[store.kept]
bytes = "256 KiB"

[store.other]
shared = true
durable-within = "1s"

[[extension]]
id = "storage"
path = "storage.wasm"
fulfills = ["local.storage@1"]
grants.stores = ["kept"]
config.store = "kept"
"#;

fn running() -> Running {
    let dir = with_own_component(CONFIG);
    fs::copy(test_guests::path("storage"), dir.path().join("storage.wasm")).unwrap();
    Running::start(dir)
}

#[test]
fn an_operator_lists_reads_changes_and_moves_what_extensions_keep() {
    let main = running();
    for key in ["a", "b"] {
        let entry = json!({"key": key, "value": [key]}).to_string();
        main.weir(&["call", "local.storage@1", "set", &entry]).good();
    }
    let listed = main.json(&["store", "ls", "kept", "--json"]);
    let entry = |key: &str| json!({"owner": "storage", "key": key, "bytes": 5});
    assert_eq!(listed, json!({"entries": [entry("a"), entry("b")], "next": null}));
    let page = main.weir(&["store", "ls", "kept", "--max", "1"]);
    assert!(page.stderr.contains("go on with `--owner 'storage' --after 'a'`"), "{}", page.stderr);
    let rest = main.json(&["store", "ls", "kept", "--owner", "storage", "--after", "a", "--json"]);
    assert_eq!(rest["entries"], json!([entry("b")]));
    assert_eq!(main.weir(&["store", "get", "kept", "a", "--owner", "storage"]).good(), "[\"a\"]");

    // What the operator changes, the extension finds.
    let set = ["store", "put", "kept", "a", "7", "--owner", "storage"];
    assert_eq!(main.weir(&set).good(), "replaced\n");
    assert_eq!(
        main.weir(&["call", "local.storage@1", "get", "{\"key\":\"a\"}"]).good().trim(),
        "{\"value\":7}"
    );
    let removed = main.weir(&["store", "rm", "kept", "a", "none", "--owner", "storage"]).good();
    assert_eq!(removed, "removed `a`\nthere was no `none`\n");

    // Bytes that are no text go out and in again.
    fs::write(main.path().join("bytes"), [0, 255, 1]).unwrap();
    main.weir(&["store", "put", "other", "bytes", "@bytes"]).good();
    let exported = main.weir(&["store", "export", "other"]).good();
    assert_eq!(exported, "{\"owner\":\"\",\"key\":\"bytes\",\"base64\":\"AP8B\"}\n");
    let all = exported + &main.weir(&["store", "export", "kept"]).good();
    let imported = main.weir_with_stdin(&["store", "import", "other"], all.as_bytes());
    assert_eq!(imported.good(), "imported 2 entries\n");
    let stores = main.json(&["store", "ls", "--json"]);
    assert_eq!((&stores["stores"][0]["keys"], &stores["stores"][1]["keys"]), (&json!(1), &json!(2)));
    assert!(main.weir(&["store", "compact", "kept"]).good().starts_with("`kept` has "));
}

#[test]
fn what_cannot_be_done_has_a_reason_and_an_exit_code() {
    let main = running();
    let refused = |args: &[&str]| {
        let done = main.weir(args);
        assert_ne!(done.code, 0, "{args:?}: {}", done.stderr);
        done.stderr
    };
    assert!(refused(&["store", "ls", "none"]).contains("there is no store `none`"));
    assert!(refused(&["store", "get", "kept", "none"]).contains("`kept` has no key `none`"));
    for none in
        [&["ls", "none"][..], &["get", "kept", "none"], &["put", "kept", "a", "1", "--owner", "storag"]]
    {
        assert_eq!(main.weir(&[&["store"], none].concat()).code, 4, "{none:?}");
    }
    let typo = ["store", "put", "kept", "a", "1", "--owner", "storag"];
    assert!(refused(&typo).contains("no extension or peer is `storag`: did you mean `storage`?"));
    assert_eq!(main.weir(&[&typo[..], &["--force"]].concat()).good(), "set\n");
    // An owner that has entries is known.
    assert_eq!(main.weir(&typo).good(), "replaced\n");
    assert!(refused(&["store", "put", "kept", "", "1"]).contains("a key has 1 to 1024 bytes"));
    fs::write(main.path().join("large"), vec![b'x'; 300_000]).unwrap();
    assert!(refused(&["store", "put", "kept", "large", "@large"]).contains("the store is full"));
    let done =
        main.weir_with_stdin(&["store", "import", "kept"], b"{\"key\":\"a\",\"value\":\"1\"}\nnonsense\n");
    assert_ne!(done.code, 0);
    assert!(done.stderr.contains("line 2 is no entry of an export"), "{}", done.stderr);
}

#[test]
fn a_store_that_is_full_of_small_entries_has_a_file_of_at_most_four_times_its_bytes() {
    let main = running();
    let import = |round: u32| {
        let row = |number: u32| format!("{{\"key\":\"{round}-{number}\",\"value\":\"1\"}}\n");
        let rows: String = (0..500).map(row).collect();
        main.weir_with_stdin(&["store", "import", "kept"], rows.as_bytes())
    };
    // By their keys and values alone it would not be full in all of these rounds.
    let full = (0..60).map(import).find(|imported| imported.code != 0).unwrap();
    assert!(full.stderr.contains("the store is full"), "{}", full.stderr);
    let bytes = fs::metadata(main.path().join("data/kept.redb")).unwrap().len();
    assert!(bytes <= 4 * (256 << 10), "{bytes}");
}

#[test]
fn inspect_prints_the_grant_that_a_component_with_stores_needs_and_filled_in_it_is_a_configuration() {
    let dir = configured("data-dir = \"data\"\n[store.named]\n");
    fs::create_dir(dir.path().join("data")).unwrap();
    let inspected = |guest: &str| done(weir(dir.path()).arg("inspect").arg(test_guests::path(guest))).good();
    assert!(!inspected("echo").contains("grants.stores"));
    let printed = inspected("storage");
    assert!(printed.ends_with("\ngrants.stores = [\"FILL-IN\"]\n"), "{printed}");

    let file = dir.path().join("weir.toml");
    let filled_in = printed.replace("FILL-IN", "named");
    fs::write(&file, fs::read_to_string(&file).unwrap() + &filled_in).unwrap();
    let checked = done(weir(dir.path()).args(["check", "weir.toml"]));
    assert_eq!((checked.code, checked.stdout.as_str()), (0, "`storage` is ok\n"), "{checked:?}");
}
