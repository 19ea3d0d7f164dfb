//! Every key of the table, from the list that the reader makes.

#[path = "../../../../host/config/src/tests/keys/every.rs"]
mod every;
#[path = "../../../../host/config/src/tests/keys/shapes.rs"]
mod shapes;

use weir_host::config::{Shape, extend::KnownKey};

use self::every::split;
use super::*;

fn written(size: u64) -> String {
    Shape::Size(0..=u64::MAX).text(size)
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
