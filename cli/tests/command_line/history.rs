//! The origins of orders, in the log and in `weir history`.

use std::{fs, process::Command};

use rustix::process::{Signal, getuid};
use serde_json::Value;

use super::support::{PUPPETS, Running, with_own_component};

fn history(main: &Running, id: &str) -> Vec<String> {
    let json = main.json(&["history", "--json", id]);
    let words = |entry: &Value| {
        let fields = ["order", "by", "state", "cause", "reason"].map(|name| entry[name].as_str());
        fields.into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    json["history"].as_array().unwrap().iter().map(words).collect()
}

fn asked(main: &Running, args: &[&str]) -> String {
    let mut command: Command = main.command(args);
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    format!("uid {}, pid {pid}", getuid().as_raw())
}

#[test]
fn every_change_that_is_asked_for_is_logged_with_who_asked_and_what_came_of_it() {
    let mut main = Running::with(PUPPETS);
    for (args, line) in [
        (&["restart", "puppet"][..], "restart: done"),
        (&["stop", "puppet"], "stop: done"),
        (&["start", "puppet"], "start: done"),
        (&["start", "absent"], "start: `absent` did not start: cannot start: `"),
        (&["reload", "puppet"], "reload: done"),
        (&["reload"], "reload of the configuration: 0 added, 0 removed, 0 changed, 0 failed"),
    ] {
        let who = asked(&main, args);
        let said = main.until(line);
        assert!(said.contains(&format!(" by=\"{who}\"")), "{said}");
    }
    fs::write(main.path().join("weir.toml"), "[main]\nservs = 1\n").unwrap();
    let who = asked(&main, &["reload"]);
    let said = main.until("reload of the configuration: the configuration was not changed: ");
    assert!(said.contains("unknown key `servs`") && said.contains(&who), "{said}");
    main.signal(Signal::HUP);
    main.until("by=\"SIGHUP\"");
    let who = asked(&main, &["shutdown"]);
    let said = main.until("shutdown: begun");
    assert!(said.contains(&who), "{said}");
}

#[test]
fn history_shows_what_was_asked_for_what_failed_and_which_version_serves_in_order() {
    let config = r#"
[[extension]]
id = "puppet"
path = "puppet.wasm"
fulfills = ["puppet@1"]
restart = { policy = "on-failure", backoff = "1ms", max-backoff = "1ms" }
"#;
    let main = Running::start(with_own_component(config));
    assert_eq!(history(&main, "puppet"), ["starting", "ready"]);
    let who = asked(&main, &["stop", "puppet"]);
    assert_eq!(history(&main, "puppet")[2..], [&format!("stop {who}"), "draining", "stopped"]);
    let who = asked(&main, &["start", "puppet"]);
    assert_eq!(history(&main, "puppet")[5..], [&format!("start {who}"), "starting", "ready"]);

    main.weir(&["call", "puppet@1", "run", "--raw", "trap"]);
    while main.json(&["status", "--json", "puppet"])["state"] != "ready" {}
    let failed = &history(&main, "puppet")[8..];
    assert!(failed[0].starts_with("trapped"), "{failed:?}");
    assert_eq!(failed[1..], ["backing-off", "loaded", "starting", "ready"]);

    // The same program with another hash.
    let component = main.path().join("puppet.wasm");
    let mut bytes = fs::read(&component).unwrap();
    bytes.extend(b"\0\x02\x01x");
    fs::write(&component, bytes).unwrap();
    let who = asked(&main, &["reload"]);
    let entries = history(&main, "puppet");
    assert_eq!(entries[13], format!("reload {who}"));
    assert_eq!(entries.last().unwrap(), "ready");
    let json = main.json(&["history", "--json", "puppet"]);
    let hashes: Vec<_> =
        json["history"].as_array().unwrap().iter().filter_map(|it| it["hash"].as_str()).collect();
    assert_ne!(hashes.first(), hashes.last());
    assert!(main.weir(&["history", "puppet"]).good().contains(hashes[0].get(..12).unwrap()));
    assert_eq!(main.weir(&["history", "nobody"]).code, 4);
}
