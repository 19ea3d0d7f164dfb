//! Every key of the table, from the list that the reader makes.

use weir_host::config::{Shape, extend::KnownKey};

use super::*;

#[test]
fn a_misspelt_key_is_refused_and_the_right_one_suggested() {
    let mut report = String::new();
    for key in keys() {
        let (_, name) = split(&key.path);
        let mut misspelt = name.to_owned();
        misspelt.remove(name.len() / 2);
        let error = parse_error(&document(&key.path, &misspelt, valid(&key).unwrap_or("{}")));
        assert!(error.contains(&format!("did you mean `{name}`?")), "{error}");
        report.push_str(&format!("# {}\n{error}\n\n", key.path));
    }
    assert_golden("keys-misspelt", &report);
}

#[test]
fn a_value_of_the_wrong_type_is_refused() {
    let report = report(|key| match &key.shape {
        Shape::Count(_) => &["\"5\"", "1.5"],
        Shape::Size(_) => &["true", "1.5"],
        Shape::Time(_) => &["5", "[]"],
        Shape::Text(_) => &["5"],
        Shape::Texts(_) => &["\"a\"", "[5]"],
        Shape::Table => &["5", "[]"],
        Shape::NamedTexts(_) => &["5", "[]", "{ \"app:page\" = \"http://a\" }", "{ \"app:page\" = [5] }"],
        Shape::NamedTextsAndTables(_) => &["5", "[]", "{ a = 5 }", "{ a = [\"b@1/c\"] }"],
        other => panic!("{other}"),
    });
    assert_golden("keys-wrong-type", &report);
}

#[test]
fn a_value_out_of_range_is_refused() {
    let report = report(|key| match &key.shape {
        Shape::Count(_) => &["0", "65_537", "-1", "99999999999999999999"],
        Shape::Size(_) => &["0", "4095", "67_108_865", "\"65 MiB\"", "\"much\""],
        Shape::Time(_) => &["\"0s\"", "\"999ms\"", "\"1day 1ns\"", "\"soon\""],
        Shape::Text(_) => &["\"\""],
        Shape::Texts(_) => &["[\"\"]", "[\"\\u0000\"]"],
        Shape::NamedTexts(_) => &["{ \"app:page\" = [] }"],
        Shape::Table | Shape::NamedTextsAndTables(_) => &[],
        other => panic!("{other}"),
    });
    assert_golden("keys-out-of-range", &report);
}

#[test]
fn every_key_changes_the_configuration() {
    for key in keys() {
        let Some(value) = valid(&key) else { continue };
        let (_, name) = split(&key.path);
        let with = parse(&document(&key.path, name, value)).unwrap();
        // The document sets required keys itself.
        let without = parse(&document(&key.path, "", "")).unwrap();
        assert_ne!(with, without, "{}", key.path);
    }
}

fn keys() -> Vec<KnownKey> {
    let keys = loader().keys();
    let keys: Vec<_> = keys.into_iter().filter(|key| key.path.starts_with("gateway.")).collect();
    assert!(keys.len() > 12, "{keys:?}");
    keys
}

fn report(values: impl Fn(&KnownKey) -> &'static [&'static str]) -> String {
    let mut report = String::new();
    for key in keys() {
        let (_, name) = split(&key.path);
        for value in values(&key) {
            let error = parse_error(&document(&key.path, name, value));
            assert!(
                error.contains(&format!("gateway.{name}")) || error.contains(&format!(".{name}`")),
                "{error}"
            );
            report.push_str(&format!("# {} = {value}\n{error}\n\n", key.path));
        }
    }
    report
}

/// A value that is neither the default nor in [`document`]. `None` for tables.
fn valid(key: &KnownKey) -> Option<&'static str> {
    Some(match key.path.as_str() {
        "gateway.listen" | "gateway.streams.listen" => "[\"unix:other\"]",
        "gateway.hosts" => "[\"device.local\"]",
        "gateway.connections" => "7",
        "gateway.buffer" => "\"5 KiB\"",
        "gateway.when-slow" => "\"latest\"",
        "gateway.ping-interval" => "\"7s\"",
        "gateway.tls.certificate" | "gateway.tls.key" => "\"other.pem\"",
        "gateway.origins" => "{ \"app:page\" = [\"http://a\"] }",
        "gateway.alias" => "{ a = \"b@1/c\" }",
        "gateway.alias.NAME.topic" => "\"other\"",
        _ => return None,
    })
}

/// A valid file that sets `name` in the key's table to `value`. Sets nothing if `name` is empty.
fn document(path: &str, name: &str, value: &str) -> String {
    let (table, _) = split(path);
    let required: &[_] = match table {
        "gateway" => &[("listen", "[\"unix:a\"]")],
        "gateway.tls" => &[("certificate", "\"cert.pem\""), ("key", "\"key.pem\"")],
        "gateway.alias.NAME" => &[("topic", "\"t\"")],
        "gateway.streams" => &[("listen", "[\"unix:b\"]")],
        _ => &[],
    };
    let mut set: Vec<(&str, &str)> = required.iter().filter(|(other, _)| *other != name).copied().collect();
    set.extend((!name.is_empty()).then_some((name, value)));
    let entries: String = set.iter().map(|(name, value)| format!("{name} = {value}\n")).collect();
    let before = if table == "gateway" { "" } else { "gateway.listen = [\"unix:a\"]\n" };
    let header = table.replace("NAME", "a");
    format!("{before}[{header}]\n{entries}\n[peer.\"app:page\"]\n")
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or(("", path))
}
