//! Every key of a table of hooks, from the list that the reader makes.

#[path = "../../../config/src/tests/keys/every.rs"]
mod every;

use weir_config::{Shape, extend::KnownKey};

use self::every::split;
use super::*;

fn keys() -> Vec<KnownKey> {
    let keys = loader().keys();
    let keys: Vec<_> = keys.into_iter().filter(|key| key.path.starts_with("hooks")).collect();
    assert!(keys.len() > 20, "{keys:?}");
    keys
}

/// A value that is neither the default nor in [`document`]. `None` for tables.
fn valid(key: &KnownKey) -> Option<String> {
    let (_, name) = split(&key.path);
    let text = match &key.shape {
        Shape::Flag if name == "udp" => "true",
        // No hook may listen.
        Shape::Flag if name == "listen" => return None,
        Shape::Flag => "false",
        Shape::Count(range) if range.contains(&77_000_000) => "77_000_000",
        Shape::Count(_) | Shape::CountOr(..) => "7",
        Shape::Size(_) if name == "compile-memory" => "\"77 MiB\"",
        Shape::Size(_) => "\"1536 KiB\"",
        Shape::Time(_) => "\"77s\"",
        Shape::Share(_) => "\"7%\"",
        Shape::Values | Shape::ValuesAndTables => "{ a = \"b\" }",
        Shape::Text(_) | Shape::Choice(_) => match name {
            "class" => "\"max\"",
            "mode" if key.path.contains(".stores.") => "\"ro\"",
            "mode" => "\"rw\"",
            "guest" => "\"/guest\"",
            "address" => "\"127.0.0.1:7\"",
            "to" => "\"https://z.example\"",
            "ok" => "\"200\"",
            "error" => "\"1-7\"",
            "warning" => "\"77-99\"",
            _ => "\"z\"",
        },
        Shape::Texts(_) | Shape::TextsAndTables(_) => match name {
            "net" => "[\"example.com:443\"]",
            "methods" => "[\"PUT\"]",
            "addresses" => "[\"private\", \"192.0.2.0/24\"]",
            "stores" => "[\"z\"]",
            "features" => "[\"gc\"]",
            _ => "[\"c@1\"]",
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
        "hooks.NAME.grants.dirs" => {
            let written = name.starts_with("max-").then_some(("mode", "\"rw\""));
            [("host", "\"/host\""), ("guest", "\"/data\"")].into_iter().chain(written).collect()
        }
        "hooks.NAME.grants.http" => vec![("to", "\"https://a.example\"")],
        "hooks.NAME.grants.net" => vec![("address", "\"127.0.0.1:1\"")],
        "hooks.NAME.grants.stores" => vec![("name", "\"s\"")],
        "hooks.NAME" => vec![("dir", "\"hooks.d\"")],
        _ => Vec::new(),
    };
    set.retain(|(other, _)| *other != name);
    set.extend((!name.is_empty()).then_some((name, value)));
    let entries: String = set.iter().map(|(name, value)| format!("{name} = {value}\n")).collect();

    let header = match table.replace("NAME", "small") {
        table if table.is_empty() => String::new(),
        table if [".dirs", ".http", ".net", ".stores"].iter().any(|list| table.ends_with(list)) => {
            format!("[[{table}]]\n")
        }
        table => format!("[{table}]\n"),
    };
    let parent = if table.starts_with("hooks.NAME.") { "[hooks.small]\ndir = \"hooks.d\"\n" } else { "" };
    format!("{parent}{header}{entries}")
}
