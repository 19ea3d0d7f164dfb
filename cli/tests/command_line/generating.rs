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

#[test]
fn wit_is_a_contract_and_contracts_are_wit() {
    let dir = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| done(weir(dir.path()).args(arguments));
    let wit = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/test-guests/exports.wit");
    let (exporter, contract) = (test_guests::path("exporter"), "`test.exports.values@1` is compatible\n");
    // The file says what a component of it says of itself, and has the comments, too.
    let described = run(&["describe", wit]).good();
    assert!(described.contains("count\n    How often this instance was called.\n"), "{described}");
    let exporter = exporter.to_str().unwrap();
    let compared = run(&["check-contract", wit, exporter]);
    assert!(compared.stdout.contains(contract), "{}", compared.stdout);
    assert!(run(&["check-contract", exporter, wit]).stdout.contains(contract));
    // What is generated from it is the same contract, but for the codes of errors: those are words in a text.
    run(&["generate", "wit", wit, "-o", "again.wit"]).good();
    assert!(run(&["check-contract", wit, "again.wit"]).stdout.contains(contract));
    fs::write(dir.path().join("faulty.wit"), "package a:b;\ninterface c { f: func(x: unknown); }\n").unwrap();
    let faulty = run(&["describe", "faulty.wit"]);
    assert!(faulty.stderr.contains("faulty.wit:2:26"), "{}", faulty.stderr);
    fs::write(dir.path().join("faulty.wit"), "package a:b;\ninterface c { resource r; f: func(x: r); }\n")
        .unwrap();
    let faulty = run(&["describe", "faulty.wit"]);
    let why = "error: `faulty.wit` is no WIT of contracts: the functions of `a:b/c` cannot be called: `f` has a resource";
    assert!(faulty.stderr.starts_with(why), "{}", faulty.stderr);
}
