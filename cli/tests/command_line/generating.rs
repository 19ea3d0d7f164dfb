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

const SMALL: &str = "package test:small@0.2.0;
  /// Shapes.
  interface shapes {
    /// A place.
    record point {
      /// To the right.
      x: s32,
      label: option<string>,
    }

    variant shape {
      /// Nothing at all.
      empty,
      /// Around a point.
      circle(tuple<point, f64>),
      many(list<u32>),
    }

    flags access {
      read,
      %list,
    }

    /// Draws.
    draw: func(shape: shape, access: access, number: u64, outcome: result<u8>) -> result<shape, string>;

    raw: func(payload: list<u8>) -> list<u8>;
  }
";

#[test]
fn wit_is_a_contract_and_contracts_are_wit() {
    let dir = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| done(weir(dir.path()).args(arguments));
    let wit = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/test-guests/exports.wit");
    let (exporter, contract) = (test_guests::path("exporter"), "`test.exports.values@1` is compatible\n");
    // The file says what a component of it says of itself, and has the comments, too.
    let described = run(&["describe", wit]).good();
    assert!(described.contains("count\n    How often this instance was called.\n"), "{described}");
    assert!(
        described.contains("\nfunctions@0\n\ntwice\n    takes\n        number: integer (uint32)\n"),
        "{described}"
    );
    let exporter = exporter.to_str().unwrap();
    let compared = run(&["check-contract", exporter, wit]);
    assert!(compared.stdout.contains(contract), "{}", compared.stdout);
    // What is generated of what was generated is the same, but for where it came from.
    fs::write(dir.path().join("small.wit"), SMALL).unwrap();
    run(&["generate", "wit", "small.wit", "-o", "made.wit"]).good();
    let (made, again) =
        (fs::read_to_string(dir.path().join("made.wit")).unwrap(), ["generate", "wit", "made.wit"]);
    let again = run(&again).good();
    // Codes of errors are comments there, and are added again.
    let interfaces = |text: &str| -> Vec<String> {
        let all = text.split_once("package test:").unwrap().1.lines();
        all.filter(|line| !line.contains("/// - ")).map(str::to_owned).collect()
    };
    assert_eq!(interfaces(&made), interfaces(&again));
    for line in SMALL.lines().skip(1).map(str::trim) {
        assert!(made.contains(line), "{line}\n{made}");
    }
    // A world may import what it exports, and two worlds may have the same.
    let worlds = "package a:%list; interface %map { f: func(); }
        world one { import log: func(text: string); import %map; export %map; }
        world two { import log: func(text: string); import %map; }";
    fs::write(dir.path().join("worlds.wit"), worlds).unwrap();
    let described = run(&["describe", "worlds.wit"]).good();
    assert_eq!(described.matches("a.list.map@0").count(), 1, "{described}");
    fs::write(dir.path().join("faulty.wit"), "package a:b;\ninterface c { f: func(x: unknown); }\n").unwrap();
    let faulty = run(&["describe", "faulty.wit"]);
    let why = "error: `faulty.wit` is no WIT of contracts: faulty.wit:2:26: name `unknown` does not exist\n";
    assert_eq!(faulty.stderr, why);
    fs::write(dir.path().join("faulty.wit"), "package a:b;\ninterface c { resource r; f: func(x: r); }\n")
        .unwrap();
    let faulty = run(&["describe", "faulty.wit"]);
    let why = "error: `faulty.wit` is no WIT of contracts: the functions of `a:b/c` cannot be called: `f` has a resource";
    assert!(faulty.stderr.starts_with(why), "{}", faulty.stderr);
}
