//! `weir generate`, without a Main.

use std::fs;

use super::support::{done, weir};

const DOCUMENT: &str = include_str!("../../generate/tests/odd.json");
const CLIENT: &str = include_str!("../../generate/tests/golden/odd.ts");

#[test]
fn a_client_is_generated_from_a_document() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("odd.json"), DOCUMENT).unwrap();
    assert_eq!(done(weir(dir.path()).args(["generate", "typescript", "odd.json"])).good(), CLIENT);
    let into_file = ["generate", "typescript", "odd.json", "odd.json", "--output", "odd.ts"];
    assert_eq!(done(weir(dir.path()).args(into_file)).good(), "");
    assert_eq!(fs::read_to_string(dir.path().join("odd.ts")).unwrap(), CLIENT);
}

#[test]
fn a_language_without_clients_for_a_kind_of_program_says_so() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("odd.json"), DOCUMENT).unwrap();
    let refused = done(weir(dir.path()).args(["generate", "python", "--for", "extension", "odd.json"]));
    let message =
        "error: there are no clients in `python` for `extension`: there are for `app` and `sidecar`\n";
    assert_eq!((refused.code, &*refused.stderr), (2, message));
}
