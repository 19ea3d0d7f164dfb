//! The manual of the operator's file against the keys that `weir` reads, and the configurations of all pages.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use weir_gateway::GatewayConfig;
use weir_host::config::{Loader, Shape};

fn loader() -> Loader {
    weir_host::loader().section::<GatewayConfig>()
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/configuration.md")
}

fn manual() -> String {
    fs::read_to_string(page()).unwrap()
}

#[test]
fn the_manual_has_each_key_as_its_entry_says() {
    let mut lines: Vec<String> = manual().lines().map(ToOwned::to_owned).collect();
    let mut known = BTreeSet::new();
    let mut last = 0;
    for key in loader().keys() {
        // Limits are described once, with the classes; grants and subscriptions with extensions.
        let elsewhere =
            ["extension.limits.", "hooks.NAME.limits.", "hooks.NAME.grants.", "peer.NAME.subscribes."];
        if elsewhere.iter().any(|table| key.path.starts_with(table)) {
            continue;
        }
        let start = format!("| `{}` |", key.path);
        let default = if key.default.is_empty() { String::new() } else { format!("{} ", key.default) };
        let row = format!("{start} {} | {default}| {} |", key.shape, key.meaning);
        // A new key comes after the one before it.
        match lines.iter().position(|line| line.starts_with(&start)) {
            Some(index) => (lines[index], last) = (row, index),
            None => {
                last += 1;
                lines.insert(last, row);
            }
        }
        assert!(known.insert(key.path.clone()), "`{}` has two entries", key.path);
    }
    assert!(known.contains("hooks.NAME.dir") && known.contains("main.memory-budget"), "{known:?}");
    lines.retain(|line| {
        let path = line.strip_prefix("| `").and_then(|row| row.split('`').next());
        path.is_none_or(|path| known.contains(path))
    });
    let made = lines.join("\n") + "\n";
    if env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
        fs::write(page(), &made).unwrap();
    }
    let written = manual();
    let differing = made.lines().zip(written.lines()).find(|(made, written)| made != written);
    assert!(made == written, "{differing:#?}; INSTA_UPDATE=always writes the page");
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
            Shape::Count(_) | Shape::CountOr(..) => "7",
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
fn the_schema_that_the_command_prints_has_every_key() {
    let output = Command::new(env!("CARGO_BIN_EXE_weir")).arg("schema").output().unwrap();
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(schema, loader().json_schema());
    for key in loader().keys() {
        let description = at(&schema, &key.path)["description"].as_str();
        let words = key.meaning.trim_start_matches('[').split(['[', ']', '.', ':', '`']).next().unwrap();
        let is_described = description.is_some_and(|text| text.starts_with(words));
        assert!(words.len() > 3 && is_described, "`{}`: {description:?}", key.path);
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
    let others = ["[package]", "[dependencies]", "[profile.", "[target.", "[nats]", "[export", "[import"];
    let is_others = headers.any(|header| others.iter().any(|other| header.starts_with(other)));
    (!is_others).then(|| block.to_owned())
}
