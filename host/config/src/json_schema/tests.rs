use std::{
    fs,
    path::{Path, PathBuf},
};

use super::*;
use crate::Loader;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The schema of a value that a file has at `path`.
fn at<'s>(schema: &'s Value, path: &str) -> &'s Value {
    path.split('.').fold(schema, |found, name| {
        let entries = [found, &found["items"], &found["additionalProperties"]];
        let tables = entries.into_iter().flat_map(|entry| [entry, &entry["anyOf"][1]]);
        let mut properties = tables.map(|table| &table["properties"][name]);
        properties.find(|property| property.is_object()).unwrap_or(&found["additionalProperties"])
    })
}

#[test]
fn every_key_that_is_read_is_in_the_schema_with_its_meaning() {
    let loader = Loader::new();
    let schema = loader.json_schema();
    for key in loader.keys() {
        let description =
            at(&schema, &key.path)["description"].as_str().unwrap_or_else(|| panic!("{}", key.path));
        let (meaning, must_be) = description.split_once("Must be ").unwrap();
        assert!(meaning.len() > 10, "{}: {description}", key.path);
        assert!(must_be.starts_with(&key.shape.to_string()), "{}: {description}", key.path);
        assert!(!description.contains("]("), "{}: {description}", key.path);
    }
}

#[test]
fn a_table_has_its_keys_and_no_others() {
    let schema = Loader::new().json_schema();
    assert_eq!(schema["additionalProperties"], false);
    let extension = at(&schema, "extension");
    assert_eq!(extension["items"]["additionalProperties"], false);
    assert_eq!(extension["items"]["required"], json!(["id", "path"]));
    let dirs = at(&schema, "extension.grants.dirs");
    assert_eq!(dirs["items"]["required"], json!(["host", "guest"]));
    assert_eq!(dirs["items"]["properties"]["mode"]["enum"], json!(["ro", "rw"]));
    let limits = at(&schema, "limits.small");
    assert_eq!(limits["additionalProperties"], false);
    assert_eq!(limits["properties"]["inbox"]["additionalProperties"], false);
    let subscribes = at(&schema, "peer.app:player.subscribes");
    assert_eq!(subscribes["items"]["anyOf"][1]["required"], json!(["topic"]));
    let config = at(&schema, "extension.config");
    let [value, secret] = [0, 1].map(|form| &config["additionalProperties"]["anyOf"][form]);
    assert_eq!(value["type"], json!(["string", "number", "boolean"]));
    assert_eq!(secret["additionalProperties"], false);
    assert!(secret["properties"]["from-credential"].is_object());
}

#[test]
fn a_number_has_its_range_and_a_choice_its_words() {
    let schema = Loader::new().json_schema();
    let memory = at(&schema, "extension.limits.memory");
    let size = &memory["anyOf"][0];
    assert_eq!((&size["minimum"], &size["maximum"]), (&json!(65536), &json!(4_u64 << 30)));
    assert_eq!(memory["anyOf"][1]["pattern"], SIZE);
    let threads = at(&schema, "main.blocking-threads");
    assert_eq!((&threads["minimum"], &threads["maximum"]), (&json!(1), &json!(64)));
    let policy = at(&schema, "extension.restart.policy");
    assert_eq!(policy["enum"], json!(["never", "on-failure", "always"]));
    assert!(at(&schema, "extension.class").get("enum").is_none());
}

#[test]
fn a_description_is_readable_without_the_page() {
    assert_eq!(plain("Main itself: [below](#main)."), "Main itself.");
    assert_eq!(plain("`[[a]]` for [peers](#peer) and [b]"), "`[[a]]` for peers and [b]");
    let schema = Loader::new().json_schema();
    let budget = at(&schema, "main.memory-budget")["description"].as_str().unwrap();
    assert!(budget.contains("add up to at most"), "{budget}");
    assert!(budget.ends_with("as in `\"16 MiB\"`. Default: no bound."), "{budget}");
}

#[test]
fn every_key_of_the_repositorys_own_files_is_in_the_schema() {
    let schema = Loader::new().json_schema();
    let golden = Path::new("host/config/tests/golden/config/valid");
    for file in [
        Path::new("examples/device.toml"),
        Path::new("examples/peers/weir.toml"),
        &golden.join("weir.toml"),
        &golden.join("conf.d/10-storage.toml"),
        &golden.join("conf.d/20-settings.toml"),
    ] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        let mut table: toml::Table = text.parse().unwrap();
        // Tables of other crates.
        table.retain(|key, _| !["gateway", "hooks", "store"].contains(&key));
        assert_eq!(unknown(&schema, &table.into()), [""; 0], "{}", file.display());
    }
    let misspelt: toml::Table =
        "[[extension]]\nlimits.inbox.mesages = 1\nsubscribes = [\"a\", {}]".parse().unwrap();
    assert_eq!(unknown(&schema, &misspelt.into()), ["mesages"]);
}

/// The keys of a file that the schema does not have.
fn unknown(schema: &Value, value: &toml::Value) -> Vec<String> {
    match value {
        toml::Value::Table(table) => {
            let schema = schema["anyOf"].get(1).unwrap_or(schema);
            let keys = table.iter().flat_map(|(key, value)| match &schema["properties"][key] {
                Value::Null if schema["additionalProperties"].is_object() => {
                    unknown(&schema["additionalProperties"], value)
                }
                Value::Null => vec![key.to_owned()],
                property => unknown(property, value),
            });
            keys.collect()
        }
        toml::Value::Array(items) => items.iter().flat_map(|item| unknown(&schema["items"], item)).collect(),
        _ => Vec::new(),
    }
}
