//! The manual of the operator's file against the keys that Weir reads.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{collections::BTreeSet, fs, path::Path};

fn manual() -> String {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    fs::read_to_string(manual).unwrap()
}

#[test]
fn every_key_stands_in_the_manual_with_what_it_must_be() {
    let manual = manual();
    for key in weir_host::loader().keys() {
        // Limits are described once, with the classes, and grants with extensions.
        let path = key.path.replace("extension.limits.", "limits.NAME.");
        let path = path
            .replace("hooks.NAME.limits.", "limits.NAME.")
            .replace("hooks.NAME.grants.", "extension.grants.");
        let row = manual.lines().find(|line| line.starts_with(&format!("| `{path}` |")));
        let row = row.unwrap_or_else(|| panic!("`{path}` has no row in docs/configuration.md"));
        assert!(row.contains(&key.shape.to_string()), "`{path}` must be {}: {row}", key.shape);
    }
}

#[test]
fn the_manual_has_no_key_that_is_not_one() {
    let known: BTreeSet<_> = weir_host::loader().keys().into_iter().map(|key| key.path).collect();
    assert!(known.contains("hooks.NAME.dir") && known.contains("main.memory-budget"), "{known:?}");
    for row in manual().lines().filter_map(|line| line.strip_prefix("| `")) {
        let path = row.split('`').next().unwrap();
        assert!(known.contains(path), "`{path}`");
    }
}
