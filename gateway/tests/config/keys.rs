//! Every key of the table, from the list that the reader makes.

#[path = "../../../host/config/src/tests/keys/every.rs"]
mod every;

use weir_host::config::{Shape, extend::KnownKey};

use self::every::{report, split};
use super::*;

#[test]
fn a_value_of_the_wrong_type_is_refused() {
    let report = report(|key| match &key.shape {
        Shape::Count(_) => vec!["\"5\"", "1.5"],
        Shape::Size(_) => vec!["true", "1.5"],
        Shape::Time(_) => vec!["5", "[]"],
        Shape::Text(_) | Shape::Choice(_) => vec!["5"],
        Shape::Texts(_) => vec!["\"a\"", "[5]"],
        Shape::Table => vec!["5", "[]"],
        Shape::NamedTexts(_) => vec!["5", "[]", "{ \"app:page\" = \"http://a\" }", "{ \"app:page\" = [5] }"],
        Shape::NamedTextsAndTables(_) => vec!["5", "[]", "{ a = 5 }", "{ a = [\"b@1/c\"] }"],
        other => panic!("{other}"),
    });
    assert_golden("keys-wrong-type", &report);
}

#[test]
fn a_value_out_of_range_is_refused() {
    let report = report(|key| match &key.shape {
        Shape::Count(_) => vec!["0", "65_537", "-1", "99999999999999999999"],
        Shape::Size(_) => vec!["0", "4095", "67_108_865", "\"65 MiB\"", "\"much\""],
        Shape::Time(_) => vec!["\"0s\"", "\"999ms\"", "\"1day 1ns\"", "\"soon\""],
        Shape::Text(_) | Shape::Choice(_) => vec!["\"\""],
        Shape::Texts(_) => vec!["[\"\"]", "[\"\\u0000\"]"],
        Shape::NamedTexts(_) => vec!["{ \"app:page\" = [] }"],
        Shape::Table | Shape::NamedTextsAndTables(_) => vec![],
        other => panic!("{other}"),
    });
    assert_golden("keys-out-of-range", &report);
}

fn keys() -> Vec<KnownKey> {
    let keys = loader().keys();
    let keys: Vec<_> = keys.into_iter().filter(|key| key.path.starts_with("gateway.")).collect();
    assert!(keys.len() > 12, "{keys:?}");
    keys
}

/// A value that is neither the default nor in [`document`]. `None` for tables.
fn valid(key: &KnownKey) -> Option<String> {
    let text = match key.path.as_str() {
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
    };
    Some(text.to_owned())
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
