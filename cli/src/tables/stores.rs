//! Key-value stores and their keys as text for people.

use comfy_table::{Cell, Color};

use super::{NOTHING, finish, size, table};
use crate::{
    output::printable,
    store::model::{Entry, StoreStatus},
};

/// All of `weir store ls`, and why stores cannot be used.
pub(crate) fn stores(stores: &[StoreStatus]) -> String {
    if stores.is_empty() {
        return "no stores are configured\n".to_owned();
    }
    let mut table = table(["STORE", "KEYS", "BYTES", "FILE", "DURABLE", "SHARED"]);
    table.add_rows(stores.iter().map(|store| {
        let durable =
            store.durable_within.as_deref().map_or("each".to_owned(), |time| format!("within {time}"));
        let name = Cell::new(printable(&store.name));
        vec![
            if store.error.is_some() { name.fg(Color::Red) } else { name },
            Cell::new(format!("{} / {}", store.keys, store.max_keys)),
            Cell::new(format!("{} / {}", size(store.bytes), size(store.max_bytes))),
            Cell::new(size(store.file_bytes)),
            Cell::new(printable(&durable)),
            Cell::new(if store.shared { "yes" } else { "no" }),
        ]
    }));
    let failed: String = stores
        .iter()
        .filter_map(|store| Some((&store.name, store.error.as_ref()?)))
        .map(|(name, error)| format!("`{}`: {}\n", printable(name), printable(error)))
        .collect();
    let gap = if failed.is_empty() { "" } else { "\n" };
    format!("{}{gap}{failed}", finish(&table))
}

/// A page of keys.
pub(crate) fn entries(store: &str, entries: &[Entry]) -> String {
    if entries.is_empty() {
        return format!("`{}` has no such keys\n", printable(store));
    }
    let mut table = table(["OWNER", "KEY", "BYTES"]);
    table.add_rows(entries.iter().map(|entry| {
        let owner = Some(&*entry.owner).filter(|owner| !owner.is_empty()).unwrap_or(NOTHING);
        vec![Cell::new(printable(owner)), Cell::new(printable(&entry.key)), Cell::new(entry.bytes)]
    }));
    finish(&table)
}

#[cfg(test)]
mod tests {
    use super::{super::tests::assert_golden, *};

    fn fixture() -> Vec<StoreStatus> {
        let text = r#"[
            {"name": "settings", "shared": true, "keys": 12, "max-keys": 100000, "bytes": 3456,
             "max-bytes": 16777216, "file-bytes": 73728},
            {"name": "cache", "shared": false, "durable-within": "1s", "keys": 0, "max-keys": 10, "bytes": 0,
             "max-bytes": 65536, "file-bytes": 0, "error": "\u001b[2Jdamaged"}
        ]"#;
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn stores_line_up_and_failures_are_told_below() {
        assert_golden("stores", &stores(&fixture()));
        assert_eq!(stores(&[]), "no stores are configured\n");
    }

    #[test]
    fn keys_cannot_play_with_the_terminal() {
        let entry = |owner: &str, key: &str| Entry { owner: owner.into(), key: key.into(), bytes: 7 };
        let text = entries("s", &[entry("", "a\u{1b}[2J\nb"), entry("uploader", "\u{202e}")]);
        assert_golden("store-entries", &text);
        assert!(!text.contains(['\x1b', '\u{202e}']), "{text}");
        assert_eq!(entries("s", &[]), "`s` has no such keys\n");
    }
}
