//! Versions of an extension: what an operator sees of them, and orders.

use std::fs;

use super::support::{PUPPET, Running, with_own_component};

const UPDATE: &str = "update = { prove-for = '1h' }\n";

fn kept(more: &str) -> String {
    format!("[main]\nstate-dir = 'state'\n{PUPPET}{UPDATE}{more}")
}

#[test]
fn an_operator_accepts_a_version_and_goes_back_to_it_from_the_next() {
    let main = Running::start(with_own_component(&kept("")));
    assert!(main.weir(&["ps"]).good().contains("ready (probation)"));
    let text = main.weir(&["versions", "puppet"]).good();
    assert!(text.starts_with("serves      version 1, on probation until it has run for another "), "{text}");
    assert!(!text.contains("main.state-dir"), "{text}");
    let said = "`puppet` is ready, and runs version 1 (proven)\n";
    assert_eq!(main.weir(&["accept", "puppet"]).good(), said);
    let again = main.weir(&["accept", "puppet"]);
    assert_eq!(again.code, 4);
    assert_eq!(again.stderr, "error: no version of `puppet` is on probation\n");

    fs::write(main.path().join("weir.toml"), kept("limits.memory = '15 MiB'\n")).unwrap();
    main.weir(&["reload"]).good();
    let said = "`puppet` is ready, and runs version 1 (held back)\n";
    assert_eq!(main.weir(&["rollback", "puppet"]).good(), said);
    assert!(main.weir(&["ps"]).good().contains("ready (held back)"));
    let versions = main.json(&["versions", "--json", "puppet"]);
    assert_eq!((&versions["serving"], &versions["is-kept"]), (&1.into(), &true.into()));
    let standings = versions["versions"].as_array().unwrap().iter().map(|version| &version["standing"]);
    assert_eq!(standings.collect::<Vec<_>>(), ["refused", "proven"]);
    assert!(versions["held-back"].as_str().unwrap().starts_with("version 2 was refused: "), "{versions}");
    let metrics = main.weir(&["metrics"]).good();
    for line in [
        "weir_extension_version{extension=\"puppet\"} 1\n",
        "weir_extension_version_standing{extension=\"puppet\",standing=\"proven\"} 1\n",
        "weir_extension_version_standing{extension=\"puppet\",standing=\"refused\"} 0\n",
        "weir_extension_version_held_back{extension=\"puppet\"} 1\n",
    ] {
        assert!(metrics.contains(line), "no {line} in {metrics}");
    }
    let checked = main.weir(&["check", "weir.toml"]);
    assert_eq!(checked.code, 0);
    let warning = "warning: `puppet`: version 1 would run in place of this one: version 2 was refused: ";
    assert!(checked.stderr.contains(warning), "{}", checked.stderr);

    let plan = main.weir(&["plan"]).good();
    let why = "  version 2 was refused: an operator rolled it back\n";
    assert_eq!(plan, format!("`puppet` is held back, and runs version 1\n{why}"));
    let status = main.weir(&["status", "puppet"]).good();
    assert!(status.contains("config    has a version that was refused: `weir plan` says why\n"), "{status}");
    let stopped = main.weir(&["reload", "--all"]);
    assert_eq!(stopped.code, 1);
    assert!(stopped.stderr.contains("`puppet` does not hold: version 2 was refused: "), "{}", stopped.stderr);

    assert_eq!(main.weir(&["rollback", "puppet", "2"]).code, 4);
    assert_eq!(main.weir(&["rollback", "puppet"]).code, 4, "there is nothing before version 1");
    let tried = main.weir(&["reload", "puppet", "--now"]).good();
    assert!(tried.starts_with("`puppet` is ready, and runs version 2 ("), "{tried}");
    main.weir(&["check", "weir.toml"]).good();
}

#[test]
fn without_a_directory_versions_are_said_to_be_in_memory() {
    let main = Running::start(with_own_component(&format!("{PUPPET}{UPDATE}")));
    let text = main.weir(&["versions", "puppet"]).good();
    assert!(text.contains("kept        in memory, until Main ends"), "{text}");
}

#[test]
fn an_extension_without_update_has_no_versions() {
    let main = Running::start(with_own_component(PUPPET));
    for verb in ["versions", "accept", "rollback"] {
        let refused = main.weir(&[verb, "puppet"]);
        assert_eq!(refused.code, 4, "{verb}: {}", refused.stderr);
        assert!(refused.stderr.contains("it has no `update`"), "{verb}: {}", refused.stderr);
    }
    assert_eq!(main.weir(&["versions", "nobody"]).code, 4);
    assert_eq!(main.weir(&["reload", "--now"]).code, 2);
    assert!(!main.weir(&["ps"]).good().contains('('));
}
