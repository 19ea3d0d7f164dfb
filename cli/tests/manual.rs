//! The manual of the operator's file against the keys that `weir` reads, and the configurations of all pages.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use weir_gateway::GatewayConfig;
use weir_host::config::{Loader, Shape};

fn loader() -> Loader {
    weir_host::loader().section::<GatewayConfig>()
}

fn manual() -> String {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md");
    fs::read_to_string(manual).unwrap()
}

#[test]
fn every_key_stands_in_the_manual_with_what_it_must_be() {
    let manual = manual();
    for key in loader().keys() {
        // Limits are described once, with the classes; grants and subscriptions with extensions.
        let path = key.path.replace("extension.limits.", "limits.NAME.");
        let path = path
            .replace("hooks.NAME.limits.", "limits.NAME.")
            .replace("hooks.NAME.grants.", "extension.grants.")
            .replace("peer.NAME.subscribes.", "extension.subscribes.");
        let row = manual.lines().find(|line| line.starts_with(&format!("| `{path}` |")));
        let row = row.unwrap_or_else(|| panic!("`{path}` has no row in docs/configuration.md"));
        assert!(row.contains(&key.shape.to_string()), "`{path}` must be {}: {row}", key.shape);
    }
}

#[test]
fn the_manual_has_no_key_that_is_not_one() {
    let known: BTreeSet<_> = loader().keys().into_iter().map(|key| key.path).collect();
    assert!(known.contains("hooks.NAME.dir") && known.contains("main.memory-budget"), "{known:?}");
    for row in manual().lines().filter_map(|line| line.strip_prefix("| `")) {
        let path = row.split('`').next().unwrap();
        assert!(known.contains(path), "`{path}`");
    }
}

#[test]
fn every_key_of_http_and_of_stores_that_a_reload_finds_changed_is_named() {
    let mut seen = 0;
    for key in loader().keys() {
        let (table, name) = key.path.rsplit_once('.').unwrap_or_default();
        let header = match table {
            "http" => "[http]",
            "store.NAME" => "[store.kept]",
            _ => continue,
        };
        let value = match key.shape {
            Shape::Flag => "true",
            Shape::Count(_) => "7",
            Shape::Size(_) => "'1536 KiB'",
            Shape::Time(_) => "'77s'",
            Shape::Text(_) => "'z'",
            other => panic!("{other}"),
        };
        let parse = |entry: &str| {
            let text = format!("[main]\ndata-dir = 'data'\n{header}\n{entry}");
            loader().parse(&text, "weir.toml", "/etc/weir".as_ref()).unwrap()
        };
        let differences = parse("").differences(&parse(&format!("{name} = {value}")));
        let [difference] = &differences[..] else { panic!("{}: {differences:?}", key.path) };
        assert_eq!(difference.table, header.trim_matches(['[', ']']));
        assert!(difference.keys.iter().any(|key| key.key == name), "{}: {differences:?}", key.path);
        seen += 1;
    }
    assert!(seen >= 10, "{seen}");
}

#[test]
fn the_schema_has_every_key_of_the_manual_in_the_manuals_words() {
    let output = Command::new(env!("CARGO_BIN_EXE_weir")).arg("schema").output().unwrap();
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    let manual = manual();
    assert_eq!(schema, loader().json_schema(&manual));
    for row in manual.lines().filter_map(|line| line.strip_prefix("| `")) {
        let (path, cells) = row.split_once('`').unwrap();
        let description = at(&schema, path)["description"].as_str().unwrap_or_else(|| panic!("`{path}`"));
        let meaning = cells.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap();
        let words = meaning.split(['[', '.', ':']).next().unwrap();
        assert!(description.starts_with(words), "`{path}`: {description}");
    }
}

/// The schema of a value that a file has at `path`.
fn at<'s>(schema: &'s Value, path: &str) -> &'s Value {
    path.split('.').fold(schema, |found, name| {
        let entries = [found, &found["items"], &found["additionalProperties"]];
        let tables = entries.into_iter().flat_map(|entry| [Some(entry), entry["anyOf"].get(1)]);
        let property = tables.flatten().find_map(|table| table["properties"].get(name));
        property.unwrap_or(&found["additionalProperties"])
    })
}

#[test]
fn every_configuration_that_a_page_shows_can_be_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut read = 0;
    for page in pages() {
        let blocks = toml_blocks(&fs::read_to_string(&page).unwrap());
        for text in blocks.iter().filter_map(|block| configuration(block)) {
            if let Err(errors) = loader().parse(&text, "weir.toml", &root) {
                panic!("{}:\n{errors}\n{text}", page.display());
            }
            read += 1;
        }
    }
    assert!(read > 10, "only {read} blocks are configurations");
}

#[test]
fn every_verb_and_table_that_a_page_names_is_in_this_build() {
    let weir = |args: &[&str]| Command::new(env!("CARGO_BIN_EXE_weir")).args(args).output().unwrap();
    let mut verbs = BTreeSet::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for start in ["`weir ", "$ weir "] {
            let named = text.split(start).skip(1).map(|rest| {
                rest.chars().take_while(|it| it.is_ascii_lowercase() || *it == '-').collect::<String>()
            });
            verbs.extend(named.filter(|verb| !verb.is_empty() && !verb.starts_with('-')));
        }
    }
    assert!(verbs.len() > 30 && verbs.contains("otlp"), "{verbs:?}");
    for verb in verbs {
        let output = weir(&["help", &verb]);
        assert!(output.status.success() || verb == "help", "{verb}: {output:?}");
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("weir.toml");
    let tables = "[main]\ndata-dir = 'data'\n[store.kept]\n[http]\n[gateway]\nlisten = ['0.0.0.0:7410']\n\
                  tls = { certificate = 'a.pem', key = 'b.pem' }\n";
    fs::write(&file, tables).unwrap();
    let checked = weir(&["check", file.to_str().unwrap()]);
    assert!(checked.status.success(), "{checked:?}");
}

/// The pages for users.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages = vec![root.join("README.md")];
    for folder in ["docs", "docs/decisions"] {
        pages.extend(fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path()));
    }
    pages.retain(|page| page.extension().is_some_and(|end| end == "md"));
    pages
}

/// The fenced TOML of a page, without the indentation of a list.
fn toml_blocks(page: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(indentation) = line.strip_suffix("```toml") else { continue };
        let block = lines.by_ref().map(|line| line.strip_prefix(indentation).unwrap_or(line));
        let block: Vec<_> = block.take_while(|line| *line != "```").collect();
        blocks.push(block.join("\n"));
    }
    blocks
}

/// The block as a whole file, or `None` if it is for Cargo or for the bridge. A block without a header has keys of an extension.
fn configuration(block: &str) -> Option<String> {
    let mut headers = block.lines().filter(|line| line.starts_with('[')).peekable();
    if headers.peek().is_none() {
        return Some(format!("[[extension]]\nid = \"x\"\npath = \"x.wasm\"\n{block}"));
    }
    let others =
        ["[package]", "[dependencies]", "[profile.release]", "[target.", "[nats]", "[export", "[import"];
    let is_others = headers.any(|header| others.iter().any(|other| header.starts_with(other)));
    (!is_others).then(|| block.to_owned())
}
