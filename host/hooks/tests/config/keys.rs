//! Every key of a table of hooks, from the list that the reader makes.

use weir_config::{Shape, extend::KnownKey};

use super::*;

#[test]
fn a_misspelt_key_is_refused_and_the_right_one_suggested() {
    let mut report = String::new();
    for key in keys() {
        let (_, name) = split(&key.path);
        let mut misspelt = name.to_owned();
        misspelt.remove(name.len() / 2);
        let error = parse_error(&document(&key.path, &misspelt, valid(&key).as_deref().unwrap_or("{}")));
        assert!(error.contains(&format!("did you mean `{name}`?")), "{error}");
        report.push_str(&format!("# {}\n{error}\n\n", key.path));
    }
    assert_golden("keys-misspelt", &report);
}

#[test]
fn a_value_of_the_wrong_type_is_refused() {
    let report = report(|key| {
        let wrong: &[&str] = match &key.shape {
            Shape::Flag => &["1", "\"yes\""],
            Shape::Count(_) => &["\"5\"", "1.5", "nan"],
            Shape::Size(_) => &["true", "1.5", "nan"],
            Shape::Time(_) => &["5", "[]"],
            Shape::Share(_) => &["5", "0.05", "nan"],
            Shape::Text(_) => &["5"],
            Shape::Texts(_) => &["\"a\"", "[5]"],
            Shape::TextsAndTables(_) => &["\"a\"", "{}", "[5]", "[[]]"],
            Shape::Values | Shape::ValuesAndTables => &["\"a\"", "{ a = [] }"],
            Shape::Table => &["5", "[]"],
            Shape::Tables => &["5", "{}", "[5]"],
            Shape::Named | Shape::NamedTexts(_) | Shape::NamedTextsAndTables(_) => &["5", "[]", "{ a = 5 }"],
        };
        wrong.iter().map(ToString::to_string).collect()
    });
    assert_golden("keys-wrong-type", &report);
}

#[test]
fn a_value_out_of_range_is_refused() {
    let report = report(|key| match &key.shape {
        Shape::Count(range) => vec![
            "-1".to_owned(),
            (range.start() - 1).to_string(),
            (range.end() + 1).to_string(),
            "99999999999999999999".to_owned(),
        ],
        Shape::Size(range) => vec![
            "0".to_owned(),
            "-1".to_owned(),
            (range.start() - 1).to_string(),
            (range.end() + 1).to_string(),
            format!("\"{}\"", Shape::Size(0..=u64::MAX).text(range.start() - 1)),
            format!("\"{}\"", Shape::Size(0..=u64::MAX).text(range.end() + 1)),
            "\"99999999999999999999 GiB\"".to_owned(),
            "\"much\"".to_owned(),
        ],
        Shape::Time(range) => vec![
            "\"0s\"".to_owned(),
            "\"-1s\"".to_owned(),
            "\"999us 999ns\"".to_owned(),
            format!("\"{} 1ns\"", humantime::format_duration(*range.end())),
            format!("\"{}h\"", range.end().as_secs() / 3600 + 1),
            "\"99999999999999999999s\"".to_owned(),
            "\"soon\"".to_owned(),
        ],
        Shape::Share(_) => ["0%", "-5%", "0.09%", "100.01%", "99999999999999999999%", "nan%", "5"]
            .map(|share| format!("\"{share}\""))
            .to_vec(),
        Shape::Text(_) => vec![r#""\u0000""#.to_owned(), "\"\"".to_owned()],
        Shape::Texts(_) | Shape::TextsAndTables(_) => vec![r#"["\u0000"]"#.to_owned()],
        Shape::Values | Shape::ValuesAndTables => {
            vec!["{ a = nan }".to_owned(), "{ a = 99999999999999999999 }".to_owned()]
        }
        // Every value of the type is valid, or the keys within are tested.
        Shape::Flag | Shape::Table | Shape::Tables | Shape::Named => Vec::new(),
        Shape::NamedTexts(_) | Shape::NamedTextsAndTables(_) => vec![r#"{ a = "\u0000" }"#.to_owned()],
    });
    assert_golden("keys-out-of-range", &report);
}

#[test]
fn every_key_changes_the_configuration() {
    for key in keys() {
        let Some(value) = valid(&key) else {
            continue;
        };
        let (_, name) = split(&key.path);
        let with = parse(&document(&key.path, name, &value)).unwrap();
        // The document sets required keys itself.
        let without = parse(&document(&key.path, "", "")).unwrap();
        assert_ne!(with, without, "{}", key.path);
    }
}

fn keys() -> Vec<KnownKey> {
    let keys = loader().keys();
    let keys: Vec<_> = keys.into_iter().filter(|key| key.path.starts_with("hooks")).collect();
    assert!(keys.len() > 20, "{keys:?}");
    keys
}

fn report(values: impl Fn(&KnownKey) -> Vec<String>) -> String {
    let mut report = String::new();
    for key in keys() {
        let (_, name) = split(&key.path);
        for value in values(&key) {
            let error = parse_error(&document(&key.path, name, &value));
            assert!(error.contains(&format!("`{name}")) || error.contains(&format!(".{name}")), "{error}");
            report.push_str(&format!("# {} = {value}\n{error}\n\n", key.path));
        }
    }
    report
}

/// A value that is neither the default nor in [`document`]. `None` for tables.
fn valid(key: &KnownKey) -> Option<String> {
    let (_, name) = split(&key.path);
    let text = match &key.shape {
        Shape::Flag => "false",
        Shape::Count(range) if range.contains(&77_000_000) => "77_000_000",
        Shape::Count(_) => "7",
        Shape::Size(_) if name == "compile-memory" => "\"77 MiB\"",
        Shape::Size(_) => "\"1536 KiB\"",
        Shape::Time(_) => "\"77s\"",
        Shape::Share(_) => "\"7%\"",
        Shape::Values | Shape::ValuesAndTables => "{ a = \"b\" }",
        Shape::Text(_) => match name {
            "class" => "\"max\"",
            "mode" if key.path.contains(".stores.") => "\"ro\"",
            "mode" => "\"rw\"",
            "guest" => "\"/guest\"",
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
        "hooks.NAME.grants.stores" => vec![("name", "\"s\"")],
        "hooks.NAME" => vec![("dir", "\"hooks.d\"")],
        _ => Vec::new(),
    };
    set.retain(|(other, _)| *other != name);
    set.extend((!name.is_empty()).then_some((name, value)));
    let entries: String = set.iter().map(|(name, value)| format!("{name} = {value}\n")).collect();

    let header = match table.replace("NAME", "small") {
        table if table.is_empty() => String::new(),
        table if [".dirs", ".http", ".stores"].iter().any(|list| table.ends_with(list)) => {
            format!("[[{table}]]\n")
        }
        table => format!("[{table}]\n"),
    };
    let parent = if table.starts_with("hooks.NAME.") { "[hooks.small]\ndir = \"hooks.d\"\n" } else { "" };
    format!("{parent}{header}{entries}")
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or(("", path))
}
