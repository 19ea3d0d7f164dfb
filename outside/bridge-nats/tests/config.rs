//! Files of the bridge: what is accepted, and what is said of the others.

use std::path::Path;

use weir_nats::config::Config;

const GOOD: &str = r#"
node = "kitchen"
fleet = "home"
main.socket = "peers.sock"
nats.servers = ["nats://127.0.0.1:4222"]
"#;

#[test]
fn the_example_is_valid() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/fleet/kitchen/bridge.toml");
    let config = Config::load(&path).unwrap();
    assert_eq!(config.peer().as_str(), "node:kitchen");
    assert!(config.main.as_ref().token_file.as_ref().unwrap().ends_with("examples/fleet/kitchen/token"));
}

#[test]
fn nothing_crosses_by_default() {
    let config = Config::parse("bridge.toml", GOOD, Path::new("")).unwrap();
    assert!(config.export.contracts.is_empty() && config.import.contracts.is_empty());
    assert!(config.export.topics.is_empty() && config.import.topics.is_empty());
    assert!(config.export.queues.is_empty() && config.import.queues.is_empty());
}

#[test]
fn each_fault_is_told_with_its_place() {
    let faults = [
        ("an unknown key", "limit.calls = 1"),
        ("a key of the section", "export.contract.\"a@1\" = { to = [\"*\"] }"),
        ("a name", "export.contracts.\"a\" = { to = [\"*\"] }"),
        ("a list without an entry", "import.topics.\"a.>\" = { from = [] }"),
        (
            "events twice",
            "import.topics.\"a.*\" = { from = [\"*\"] }\nimport.topics.\"*.b\" = { from = [\"hall\"] }",
        ),
        ("nobody", "export.contracts.\"a@1\" = { to = [] }"),
        ("no operation", "export.contracts.\"a@1\" = { to = [\"*\"], operations = [] }"),
        ("nobody's events", "export.topics.\"a.>\" = { senders = [] }"),
        ("itself", "import.topics.\"a.>\" = { from = [\"kitchen\"] }"),
        ("a node twice", "import.topics.\"a.>\" = { from = [\"hall\", \"hall\"] }"),
        (
            "its own name",
            "import.contracts.\"a@1\" = { from = [\"*\"], operations = [\"get\"], as = \"a@1\" }",
        ),
        ("a caller", "export.contracts.\"a@1\" = { to = [\"Hall\"] }"),
        ("a subject of NATS", "export.topics.\"$JS.>\" = { senders = [\"*\"] }"),
        ("a subject of NATS as a queue", "import.queues.\"$SYS.>\" = { from = [\"*\"] }"),
        (
            "both ways",
            "export.contracts.\"a@1\" = { to = [\"*\"] }\nimport.contracts.\"a@1\" = { from = [\"*\"], operations = [\"get\"] }",
        ),
        (
            "prefer without as",
            "import.contracts.\"a@1\" = { from = [\"*\"], operations = [\"get\"], prefer = \"any\" }",
        ),
        (
            "a policy",
            "import.contracts.\"a@1\" = { from = [\"*\"], operations = [\"get\"], prefer = \"lokal\" }",
        ),
        ("no operations", "import.contracts.\"a@1\" = { from = [\"*\"], operations = [] }"),
        ("a queue without a store", "export.queues.a = { senders = [\"*\"] }"),
        (
            "a circle",
            "export.queues.a = { senders = [\"*\"], by = \"take\" }\nimport.queues.a = { from = [\"*\"] }",
        ),
        ("a choice of jobs", "export.queues.a = { senders = [\"storage\"], by = \"take\" }"),
        (
            "dead letters in a circle",
            "import.queues.a = { from = [\"*\"], dead-letter = \"b\" }\nimport.queues.b = { from = [\"*\"], dead-letter = \"a\" }",
        ),
        ("its own dead letters", "import.queues.a = { from = [\"*\"], dead-letter = \"a\" }"),
        ("a number", "limits.calls = 0"),
        ("a time", "limits.drain-timeout = \"soon\""),
        ("no kind", "main.peer = \"app:bridge\""),
        ("two proofs", "nats.nkey-file = \"a\"\nnats.token-file = \"b\""),
        ("half a proof", "nats.user = \"a\""),
        ("no syntax", "export = ["),
    ];
    let mut all = String::new();
    for (what, lines) in faults {
        let error = Config::parse("bridge.toml", &format!("{GOOD}{lines}\n"), Path::new("")).unwrap_err();
        all.push_str(&format!("{what}:\n{error}\n\n"));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_password_in_an_address_is_refused_and_not_shown() {
    let text = GOOD.replace("nats://127.0.0.1:4222", "nats://kitchen:hunter2@127.0.0.1:4222");
    let error = Config::parse("bridge.toml", &text, Path::new("")).unwrap_err().to_string();
    assert!(error.contains("`nats.user` and `nats.password-file` are for these"), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
}
