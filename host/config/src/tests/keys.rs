//! Tests of every key, from the list that the reader makes.

mod every;
mod shapes;

use std::fs;

use bytesize::ByteSize;

use self::every::split;
use super::*;
use crate::{LIMIT_KEYS, Limits, section::KnownKey, shape::Shape};

#[test]
fn the_tables_of_the_manual_have_the_values_of_the_built_in_classes() {
    let classes = [Limits::min(), Limits::medium(), Limits::max()];
    for key in &LIMIT_KEYS {
        let values = classes.each_ref().map(|limits| match (key.get)(limits) {
            Some(value) => key.shape.text(value),
            None => "none".to_owned(),
        });
        assert_eq!(manual_row(key.name), values, "{}", key.name);
    }
    let transfers = classes.each_ref().map(|limits| written(limits.transfer()));
    assert_eq!(manual_row("transfer"), transfers);
    let fixed = classes.map(|limits| serde_json::to_value(limits.fixed()).unwrap());
    for bound in fixed[0].as_object().unwrap().keys().filter(|bound| *bound != "class") {
        let written = manual_row(bound).map(|cell| cell.parse::<ByteSize>().unwrap().0);
        assert_eq!(fixed.each_ref().map(|class| class[bound].as_u64().unwrap()), written, "{bound}");
    }
}

/// The cells of a limit for the built-in classes, without digit grouping.
fn manual_row(name: &str) -> [String; 3] {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let manual = fs::read_to_string(manual).unwrap();
    let mut rows = manual.lines().filter_map(|line| line.strip_prefix(&format!("| {name} | ")));
    let row = rows.next().unwrap_or_else(|| panic!("`{name}` has no row in docs/configuration.md"));
    let cells: Vec<String> = row.split(" |").take(3).map(|cell| cell.trim().replace(',', "")).collect();
    cells.try_into().unwrap()
}

fn keys() -> Vec<KnownKey> {
    let keys = Loader::new().keys();
    assert!(keys.len() > 40, "{keys:?}");
    keys
}

/// A value that is neither the default nor in [`document`]. `None` for tables.
fn valid(key: &KnownKey) -> Option<String> {
    let (_, name) = split(&key.path);
    let text = match &key.shape {
        Shape::Flag
            if ["access-log", "data-too", "listen", "open", "require-signature", "retain", "udp"]
                .contains(&name) =>
        {
            "true"
        }
        Shape::Flag => "false",
        Shape::Count(range) if range.contains(&77_000_000) => "77_000_000",
        Shape::Count(_) | Shape::CountOr(..) => "7",
        Shape::Size(_) if name == "message-size" => "\"128 KiB\"",
        Shape::Size(_) if name == "compile-memory" => "\"77 MiB\"",
        // At most the inbox.
        Shape::Size(_) if key.path.ends_with(".subscribes.bytes") => "\"77 KiB\"",
        Shape::Size(_) if name == "header-size" => "\"77 KiB\"",
        Shape::Size(_) => "\"1536 KiB\"",
        // At most the longest delay.
        Shape::Time(_) if name == "backoff" => "\"7s\"",
        Shape::Time(_) => "\"77s\"",
        Shape::Share(_) => "\"7%\"",
        Shape::Values if name == "imports" => "{ a = \"b@1\" }",
        Shape::Values | Shape::ValuesAndTables => "{ a = \"b\" }",
        Shape::Text(_) | Shape::Choice(_) => match name {
            "path" if key.path.contains(".serves-http.") => "\"/z\"",
            "inherits" | "class" => "\"max\"",
            "mode" if key.path.contains(".stores.") => "\"ro\"",
            "mode" => "\"rw\"",
            "contract" => "\"other@1\"",
            "export" => "\"*\"",
            "policy" if key.path.ends_with(".subscribes.policy") => "\"latest\"",
            "policy" => "\"always\"",
            "when-full" => "\"block\"",
            "reload" => "\"overlap\"",
            "ready" => "\"at-start\"",
            "traces" => "\"lines\"",
            "address-space" => "\"small\"",
            "validate" => "\"requests\"",
            "guest" => "\"/guest\"",
            "max-latency" | "max-memory" => "\"3x\"",
            "to" => "\"https://z.example\"",
            "store" => "\"kept@1\"",
            "address" => "\"127.0.0.1:7\"",
            "sha256" => "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"",
            _ => "\"z\"",
        },
        Shape::Texts(_) => match name {
            "include" => "[\"valid/conf.d/10-storage.toml\"]",
            "methods" => "[\"PUT\"]",
            "peers" => "[\"app:other\", \"app:given\"]",
            "addresses" => "[\"private\", \"192.0.2.0/24\"]",
            "requires" => "[\"given@1\"]",
            "publishes" => "[\"t\"]",
            "features" => "[\"gc\"]",
            "puts" | "takes" | "runs" => "[\"given\"]",
            "tokens" => "[\"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"]",
            "trusted-keys" => "[\"11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\"]",
            _ => "[\"c@1\"]",
        },
        Shape::TextsAndTables(_) => match name {
            "fulfills" => "[\"c@1\"]",
            "net" => "[\"example.com:443\"]",
            _ => "[\"t\"]",
        },
        Shape::NamedTexts(_) | Shape::NamedTextsAndTables(_) => return None,
        Shape::Table | Shape::Tables | Shape::Named => return None,
    };
    Some(text.to_owned())
}

/// A valid file that sets `name` in the key's table to `value`. Sets nothing if `name` is empty.
fn document(path: &str, name: &str, value: &str) -> String {
    let (table, _) = split(path);
    let mut set: Vec<(&str, &str)> = match table {
        "extension" if path.ends_with(".snake-case-imports") => {
            vec![("id", "\"a\""), ("path", "\"a.wasm\""), ("imports", "{ \"c@1\" = \"b@1\" }")]
        }
        "extension" => vec![("id", "\"a\""), ("path", "\"a.wasm\"")],
        "extension.grants.dirs" => {
            let written = name.starts_with("max-").then_some(("mode", "\"rw\""));
            [("host", "\"/host\""), ("guest", "\"/data\"")].into_iter().chain(written).collect()
        }
        // A secret has one source.
        "extension.config.NAME" if name.is_empty() => vec![("from-file", "\"given\"")],
        "extension.grants.http" => vec![("to", "\"https://a.example\"")],
        // Either of both says who may reach it.
        "extension.serves-http" if name == "open" => vec![("path", "\"/a\"")],
        "extension.serves-http" => vec![("path", "\"/a\""), ("peers", "[\"app:given\"]")],
        "extension.fulfills" => vec![("contract", "\"c@1\""), ("export", "\"a:b/c\"")],
        "extension.grants.net" => vec![("address", "\"127.0.0.1:1\"")],
        "extension.grants.stores" => vec![("name", "\"s\"")],
        "extension.subscribes" | "peer.NAME.subscribes" => vec![("topic", "\"a\"")],
        _ => Vec::new(),
    };
    set.retain(|(other, _)| *other != name);
    set.extend((!name.is_empty()).then_some((name, value)));
    let entries: String = set.iter().map(|(name, value)| format!("{name} = {value}\n")).collect();

    let parent = "[[extension]]\nid = \"a\"\npath = \"a.wasm\"\n";
    let header = |table: &str| {
        let table = table.replace("peer.NAME", "peer.\"app:small\"").replace("NAME", "small");
        let lists = [".dirs", ".fulfills", ".grants.http", ".net", ".stores", ".subscribes"];
        let is_list = lists.iter().any(|list| table.ends_with(list));
        if is_list { format!("[[{table}]]\n") } else { format!("[{table}]\n") }
    };
    let table = match table {
        "" => String::new(),
        "extension" => "[[extension]]\n".to_owned(),
        table if table.starts_with("extension.") => parent.to_owned() + &header(table),
        table => header(table),
    };
    let uses_class = "[[extension]]\nid = \"b\"\npath = \"b.wasm\"\nclass = \"small\"\n";
    let given = "[[extension]]\nid = \"given\"\npath = \"given.wasm\"\nfulfills = [\"given@1\"]\n\
                 [queue.given]\n";
    let peers = "[peer.\"app:given\"]\n[peer.\"app:other\"]\n";
    match path {
        _ if path.starts_with("extension.serves-http.") => format!("{table}{entries}\n{peers}"),
        _ if path.starts_with("limits.") => format!("{table}{entries}\n{uses_class}"),
        _ if path.starts_with("extension.") || path.starts_with("peer.NAME.") => {
            format!("{table}{entries}\n{given}")
        }
        "queue.NAME.store" => {
            format!("{table}{entries}\n[peer.\"app:keeper\"]\nfulfills = [\"kept@1\"]\nputs = [\"small\"]\n")
        }
        _ => format!("{table}{entries}"),
    }
}

#[test]
fn signatures_that_keep_no_older_version_from_running_are_a_warning() {
    let warnings = |main: &str, more: &str| {
        let text = format!("{main}\n[[extension]]\nid = 'a'\npath = 'a.wasm'\n{more}");
        parse(&text).unwrap().warnings()
    };
    let key = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";
    let required = format!("main.require-signature = true\nmain.trusted-keys = ['{key}']");
    let required = required.as_str();
    assert_eq!(
        warnings(required, "update = {}"),
        [
            "`main.require-signature` keeps no older version from running when Main starts: `a` has `update`, and there \
             is no `main.state-dir` to remember the proven version"
        ]
    );
    assert_eq!(warnings(required, ""), [""; 0]);
    assert_eq!(warnings("", "update = {}"), [""; 0]);
    assert_eq!(warnings(&format!("{required}\nmain.state-dir = 's'"), "update = {}"), [""; 0]);
}
