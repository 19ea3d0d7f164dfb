//! `weir plan`: what a reload would do.

use std::fs;

use super::support::{Running, with_own_component};

const BEFORE: &str = r#"
[[extension]]
id = "puppet"
path = "puppet.wasm"
fulfills = ["puppet@1"]
limits.memory = "8 MiB"

[[extension]]
id = "eager"
path = "puppet.wasm"
fulfills = ["eager@1"]
config.contract = "eager@1"

[[extension]]
id = "leaver"
path = "puppet.wasm"
fulfills = ["leaver@1"]
config.contract = "leaver@1"
autostart = false
"#;

const AFTER: &str = r#"
[main]
memory-budget = "1 GiB"
blocking-threads = 5

[[extension]]
id = "puppet"
path = "puppet.wasm"
fulfills = ["puppet@1"]
limits.memory = "9 MiB"
grants.dirs = [{ host = "/", guest = "/all" }]
grants.env.TOKEN = "secret"

[[extension]]
id = "eager"
path = "puppet.wasm"
fulfills = ["eager@1"]
config.contract = "eager@1"
restart = { policy = "never" }

[[extension]]
id = "comer"
path = "puppet.wasm"
fulfills = ["comer@1"]
config.contract = "comer@1"

[queue.work]
"#;

const PLAN: &str = r#"`leaver` would be stopped and removed
`comer` would be added
`puppet` would be stopped, and started again
  + grants.dirs = [{ host = "/", guest = "/all", mode = "ro" }]
  + grants.env.TOKEN = …
  - limits.memory = 8 MiB
  + limits.memory = 9 MiB
`eager` would be changed at once
  - restart.policy = "on-failure"
  + restart.policy = "never"
`main.blocking-threads` would be changed, when Main is started anew
  - main.blocking-threads = 4
  + main.blocking-threads = 5
`main.memory-budget` would be changed, at once
  + main.memory-budget = 1 GiB
`queue.work` would be added
  + bytes = 1 MiB
  + max-deliveries = 3
  + messages = 1000
  + when-full = "reject"
"#;

const NOTHING: &str = "nothing to add, to remove or to change\n";

#[test]
fn a_plan_says_what_a_reload_would_do_and_does_nothing() {
    let main = Running::start(with_own_component(BEFORE));
    let status = || main.weir(&["status", "puppet"]).good();
    assert_eq!(main.weir(&["plan"]).good(), NOTHING);
    assert!(status().contains("config    as the file has it\n"), "{}", status());

    fs::write(main.path().join("weir.toml"), AFTER).unwrap();
    assert_eq!(main.weir(&["plan"]).good(), PLAN);
    assert_eq!(main.json(&["ps", "--json"])["extensions"][2]["id"], "leaver");
    assert!(status().contains("config    differs from the file: `weir plan` shows how\n"), "{}", status());
    let only = main.json(&["plan", "--json", "eager"]);
    assert_eq!(
        (&only["changed"][0]["extension"], &only["changed"][0]["takes-effect"]),
        (&"eager".into(), &"at-once".into())
    );
    assert_eq!(only["changed"].as_array().unwrap().len(), 1, "{only}");
    assert_eq!(main.weir(&["plan", "comer"]).good(), "`comer` would be added\n");
    assert_eq!(main.weir(&["plan", "nobody"]).code, 4);

    let reloaded = main.weir(&["reload"]);
    assert_eq!(reloaded.code, 0);
    assert!(reloaded.stdout.contains("`main.memory-budget` was changed\n"), "{reloaded:?}");
    let left = main.weir(&["plan"]).good();
    assert!(left.starts_with("`main.blocking-threads` would be changed, when Main is"), "{left}");
    assert_eq!(left.lines().count(), 3, "{left}");
}

#[test]
fn a_plan_knows_a_component_that_was_replaced_or_has_gone() {
    let main = Running::start(with_own_component(BEFORE));
    let file = main.path().join("puppet.wasm");
    let mut component = fs::read(&file).unwrap();
    // A custom section: it changes only the hash.
    component.extend([0, 3, 1, b'v', 1]);
    fs::write(&file, component).unwrap();
    let plan = main.weir(&["plan", "puppet"]).good();
    assert!(
        plan.starts_with(
            "`puppet` would be stopped, and started again\n  its component has changed: SHA-256 "
        ),
        "{plan}"
    );
    fs::remove_file(&file).unwrap();
    let plan = main.weir(&["plan", "puppet"]).good();
    assert!(plan.contains("  it would not come up: `"), "{plan}");
    assert_eq!(main.weir(&["plan", "leaver"]).good(), NOTHING);
}

#[test]
fn a_plan_for_a_wrong_file_says_where_it_is_wrong() {
    let main = Running::start(with_own_component(BEFORE));
    fs::write(main.path().join("weir.toml"), "[[extension]]\nid = \"puppet\"\nlimits.memory = 3\n").unwrap();
    let refused = main.weir(&["plan"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""), "{refused:?}");
    assert!(refused.stderr.starts_with("error: a reload would be refused: "), "{refused:?}");
    assert!(refused.stderr.contains("weir.toml:3:17"), "{refused:?}");
    let status = main.weir(&["status", "puppet"]).good();
    assert!(
        status.contains("cannot be compared with the file, which is wrong: `weir plan` says where"),
        "{status}"
    );
}

#[cfg(feature = "gateway")]
#[test]
fn a_changed_gateway_waits_for_a_new_start_of_main() {
    let main = Running::start(with_own_component(BEFORE));
    let after = BEFORE.to_owned() + "[gateway]\nlisten = [\"unix:gateway.sock\"]\n";
    fs::write(main.path().join("weir.toml"), after).unwrap();
    let planned = "`gateway` would be added, when Main is started anew\n";
    let warning = "warning: `gateway` has changed, and takes effect when Main is started anew\n";
    for _ in 0..2 {
        let plan = main.weir(&["plan"]).good();
        assert!(plan.starts_with(planned) && plan.contains("  + listen = [\"unix:"), "{plan}");
        let reloaded = main.weir(&["reload"]);
        assert_eq!((reloaded.code, &*reloaded.stdout, &*reloaded.stderr), (0, "", warning));
    }
    fs::write(main.path().join("weir.toml"), BEFORE).unwrap();
    assert_eq!(main.weir(&["plan"]).good(), NOTHING);
}

/// What each table beside the extensions may have, before a change and after it.
#[cfg(feature = "store")]
const RIGHTS: [&str; 2] = [
    r#"
[main]
peer-socket = "peers.sock"
data-dir = "data"
[queue.work]
[topic."a.b"]
[peer."app:player"]
tokens = ["sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "sha256:5555555555555555555555555555555555555555555555555555555555555555"]
wants = ["puppet@1"]
[peer."app:gone"]
uid = 7
[hooks.init]
dir = "hooks"
[store.kept]
"#,
    r#"
[main]
peer-socket = "peers.sock"
data-dir = "data"
[queue.work]
messages = 7
[topic."a.b"]
retain = true
[peer."app:player"]
tokens = ["sha256:5555555555555555555555555555555555555555555555555555555555555555"]
wants = ["puppet@1", "eager@1"]
[hooks.init]
dir = "hooks"
grants.env.KEY = "secret"
[store.kept]
shared = true
"#,
];

#[cfg(feature = "store")]
const RIGHTS_PLAN: &str = r#"`peer."app:gone"` would be removed
  - limits.in-flight = 64
  - limits.inbox.bytes = 256 KiB
  - limits.inbox.messages = 256
  - limits.message-rate = 1000
  - limits.message-size = 256 KiB
  - limits.sessions = 8
  - limits.stall-timeout = 30s
  - limits.subscriptions = 64
  - uid = 7
  - when-full = "reject"
`peer."app:player"` would be changed
  tokens: 1 removed
  - wants = ["puppet@1"]
  + wants = ["puppet@1", "eager@1"]
`queue.work` would be changed
  - messages = 1000
  + messages = 7
`topic."a.b"` would be changed
  - retain = false
  + retain = true
`hooks.init` would be changed
  + grants.env.KEY = …
`store.kept` would be changed
  - shared = false
  + shared = true
"#;

#[cfg(feature = "store")]
#[test]
fn a_changed_right_is_named_by_the_plan_and_by_the_log_of_the_reload() {
    let dir = with_own_component(&(RIGHTS[0].to_owned() + BEFORE));
    fs::create_dir(dir.path().join("hooks")).unwrap();
    let mut main = Running::start(dir);
    assert_eq!(main.weir(&["plan"]).good(), NOTHING);
    fs::write(main.path().join("weir.toml"), RIGHTS[1].to_owned() + BEFORE).unwrap();
    assert_eq!(main.weir(&["plan"]).good(), RIGHTS_PLAN);
    let differences = main.json(&["plan", "--json"])["table-differences"].clone();
    assert_eq!(
        differences[1]["keys"][0],
        serde_json::json!({"key": "tokens", "before": "…", "after": "…", "note": "1 removed"})
    );
    assert_eq!(differences[1]["takes-effect"], "at-once");

    assert_eq!(main.weir(&["reload"]).code, 0);
    let line = main.until("reload of the configuration: ");
    for named in [
        "0 added, 1 removed, 5 changed, 0 failed: removed `peer.\"app:gone\"`; changed ",
        "`peer.\"app:player\"` (tokens: 1 removed, wants)",
        "`queue.work` (messages)",
        "`topic.\"a.b\"` (retain)",
        "`hooks.init` (grants.env.KEY)",
        "`store.kept` (shared)",
    ] {
        assert!(line.contains(named), "{named}: {line}");
    }
    assert!(!line.contains("secret") && !line.contains("sha256:"), "{line}");
    assert_eq!(main.weir(&["plan"]).good(), NOTHING);
}

#[test]
fn a_plan_looks_into_added_components_and_into_those_that_were_cut_off() {
    let main = Running::start(with_own_component(BEFORE));
    let component = fs::read(main.path().join("puppet.wasm")).unwrap();
    let half = component.get(..component.len() / 2).unwrap();
    fs::write(main.path().join("half.wasm"), half).unwrap();
    fs::write(main.path().join("text.wasm"), "no component").unwrap();
    let added = ["half", "text"].map(|id| format!("[[extension]]\nid = \"{id}\"\npath = \"{id}.wasm\"\n"));
    fs::write(main.path().join("weir.toml"), BEFORE.to_owned() + &added.concat()).unwrap();
    let plan = main.weir(&["plan"]).good();
    for (id, fault) in [
        ("half", "is cut off or damaged: its sections do not end where it does"),
        ("text", "is not a WebAssembly component"),
    ] {
        let lines = plan.split_once(&format!("`{id}` would be added\n  it would not come up: ")).unwrap().1;
        assert!(lines.lines().next().unwrap().contains(fault), "{id}: {plan}");
    }
    fs::write(main.path().join("puppet.wasm"), half).unwrap();
    let plan = main.weir(&["plan", "puppet"]).good();
    assert!(
        plan.contains("  its component has changed: ") && plan.contains("is cut off or damaged"),
        "{plan}"
    );
}
