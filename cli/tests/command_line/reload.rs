//! `weir reload` after a change of a component or the configuration.

use std::{fs, process::Stdio};

use rustix::process::Signal;

use super::support::{PUPPET, Running, assert_golden, let_go, slow, until, with_own_component};

/// Overwrites the shared component with an invalid file.
fn break_component(main: &Running) {
    fs::write(main.path().join("puppet.wasm"), "not WebAssembly").unwrap();
}

fn configure(main: &Running, extensions: &str) {
    fs::write(main.path().join("weir.toml"), extensions).unwrap();
}

fn serving(id: &str, keys: &str) -> String {
    format!(
        r#"
        [[extension]]
        id = "{id}"
        path = "puppet.wasm"
        fulfills = ["{id}@1"]
        config.contract = "{id}@1"
        {keys}
        "#
    )
}

fn own_name(main: &Running, id: &str) -> String {
    main.weir(&["call", &format!("{id}@1"), "run", "--raw", "own-name"]).good()
}

#[test]
fn a_component_that_is_none_is_refused_and_the_one_before_serves_on() {
    for mode in ["stop-first", "overlap"] {
        let dir = with_own_component(&serving("a", &format!("reload = \"{mode}\"")));
        let component = fs::read(dir.path().join("puppet.wasm")).unwrap();
        let main = Running::start(dir);
        break_component(&main);
        let refused = main.weir(&["reload", "a"]);
        assert_eq!((refused.code, refused.stdout.as_str()), (8, ""));
        assert!(refused.stderr.starts_with("error: `a` was not reloaded: "), "{refused:?}");
        assert!(refused.stderr.contains("is not a WebAssembly component"), "{refused:?}");
        assert_eq!(own_name(&main, "a"), "a");

        fs::write(main.path().join("puppet.wasm"), component).unwrap();
        assert_eq!(main.weir(&["reload", "a"]).good(), "`a` is ready\n");
        assert_eq!(main.json(&["reload", "--json", "a"])["restarts"], 2);
        assert_eq!(own_name(&main, "a"), "a");
    }
}

#[test]
fn a_configuration_is_applied_with_a_word_on_each_that_it_touches() {
    let (same, gone, before) = (serving("same", ""), serving("gone", ""), serving("other", ""));
    let main = Running::start(with_own_component(&(same.clone() + &gone + &before)));
    assert_eq!(main.weir(&["reload"]).good(), "nothing to add, to remove or to change\n");

    let other = serving("other", "class = \"max\"\nwants = [\"nobody@1\"]");
    let broken = serving("broken", "config.start = \"error no licence\"\nrestart.policy = \"never\"");
    let head = "[main]\nrequest-timeout = \"3s\"\n";
    configure(&main, &[head, &same, &other, &serving("new", ""), &broken].concat());
    let reloaded = main.weir(&["reload"]);
    assert_eq!(reloaded.code, 1);
    let said = format!("{}--\n{}", reloaded.stdout, reloaded.stderr);
    assert_golden("reload", &said);
    assert_eq!(own_name(&main, "new"), "new");
    let restarts = |id: &str| main.json(&["status", "--json", id])["restarts"].clone();
    assert_eq!((restarts("same"), restarts("other")), (0.into(), 1.into()));
    assert_eq!(main.weir(&["status", "gone"]).code, 4);

    configure(&main, &(same + &gone + &other + &serving("new", "config.start = \"trap\"")));
    let reloaded = main.weir(&["reload", "--json"]);
    assert_eq!((reloaded.code, reloaded.stderr.as_str()), (1, ""));
    let report: serde_json::Value = serde_json::from_str(&reloaded.stdout).unwrap();
    assert_eq!((&report["added"][0], &report["removed"][0]), (&"gone".into(), &"broken".into()));
    assert_eq!(report["changed"], serde_json::json!([]));
    assert_eq!(report["failed"][0]["extension"], "new");
    let reason = report["failed"][0]["reason"].as_str().unwrap();
    assert!(reason.ends_with("; the version before serves again"), "{report}");
    assert_eq!(own_name(&main, "new"), "new");
}

/// Three extensions, each of which calls the one before.
fn chain(middle: &str, keys: &str) -> String {
    let second = format!("requires = [\"first@1\"]\n{middle}\n{keys}");
    serving("first", keys)
        + &serving("second", &second)
        + &serving("third", &format!("wants = [\"second@1\"]\n{keys}"))
}

#[test]
fn in_stages_nothing_is_reached_behind_the_first_that_does_not_hold() {
    let main = Running::start(with_own_component(&chain("", "")));
    assert_eq!(main.weir(&["reload", "--all"]).good(), "nothing to add, to remove or to change\n");
    configure(&main, &chain("config.start = \"error no licence\"", "class = \"max\""));
    let plan = main.weir(&["plan"]).good();
    let stages = "in stages, by `weir reload --all`:\n  1: `first`\n  2: `second`\n  3: `third`\n";
    assert!(plan.ends_with(stages), "{plan}");
    let reloaded = main.weir(&["reload", "--all"]);
    assert_eq!(reloaded.code, 1);
    assert_golden("reload-all", &format!("{}--\n{}", reloaded.stdout, reloaded.stderr));
    let again = main.weir(&["reload", "--all", "--json"]);
    assert_eq!((again.code, again.stderr.as_str()), (1, ""));
    let report: serde_json::Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!((&report["stopped-at"], &report["not-reached"]), (&2.into(), &serde_json::json!(["third"])));

    configure(&main, &chain("", "class = \"max\""));
    let plan = main.json(&["plan", "--json"]);
    let stage = |stage, id| serde_json::json!({ "stage": stage, "extensions": [id] });
    assert_eq!(plan["stages"], serde_json::json!([stage(2, "second"), stage(3, "third")]));
    assert_eq!(main.weir(&["reload", "--all"]).good(), "`second` was changed\n`third` was changed\n");
    for args in [&["reload", "--prove"][..], &["reload", "--all", "first"], &["reload", "--all", "--now"]] {
        assert_eq!(main.weir(args).code, 2, "{args:?}");
    }
}

#[test]
fn a_reload_in_stages_that_is_ended_goes_no_further() {
    let update = "update = { prove-for = \"1h\" }";
    let mut main = Running::start(with_own_component(&chain("", update)));
    configure(&main, &chain("", &format!("class = \"max\"\n{update}")));
    let mut first = main.command(&["reload", "--all", "--prove"]).stdout(Stdio::null()).spawn().unwrap();
    let number = |id: &str| main.json(&["status", "--json", id])["version"]["number"].clone();
    until("the first stage is up", || (number("first") == 2).then_some(()));
    assert_eq!(main.weir(&["reload"]).code, 8, "one at a time");
    first.kill().unwrap();
    first.wait().unwrap();
    main.until("the reload ends with stage 1, since nobody waits for it: 2 extensions not reached");
    let reloaded =
        until("it has ended", || Some(main.weir(&["reload", "--all"])).filter(|said| said.code != 8));
    assert_eq!(reloaded.good(), "`second` was changed\n`third` was changed\n");
}

#[test]
fn a_wrong_configuration_is_shown_as_check_shows_it_and_nothing_of_it_is_applied() {
    let main = Running::start(with_own_component(&serving("a", "")));
    configure(&main, "[[extension]]\nid = \"b\"\npath = \"puppet.wasm\"\nmemroy = 1\n");
    let checked = main.weir(&["check", "weir.toml"]);
    let mistake = checked.stderr.strip_prefix("error: weir.toml").unwrap();
    let file = main.path().join("weir.toml");
    for args in [&["reload"][..], &["reload", "--json"]] {
        let refused = main.weir(args);
        let said = format!("error: the configuration was not changed: {}{mistake}", file.display());
        assert_eq!((refused.code, refused.stdout.as_str(), refused.stderr), (1, "", said));
    }
    assert_eq!(own_name(&main, "a"), "a");
    assert_eq!(main.weir(&["status", "b"]).code, 4);
}

#[test]
fn one_reload_at_a_time_is_applied_and_goes_on_when_who_asked_has_left() {
    let main = Running::start(with_own_component(PUPPET));
    configure(&main, &(PUPPET.to_owned() + &slow("start")));
    let mut first = main.command(&["reload"]).stdout(Stdio::null()).spawn().unwrap();
    let state = || main.weir(&["status", "slow"]).stdout;
    while !state().contains("state     starting") {}
    let second = main.weir(&["reload"]);
    let said = "error: the configuration is being reloaded already: try again when that is done\n";
    assert_eq!((second.code, second.stderr.as_str()), (8, said));

    first.kill().unwrap();
    first.wait().unwrap();
    let_go(&main);
    while !state().contains("state     ready") {}
    // The first client left before its report.
    while main.weir(&["reload"]).code != 0 {}
}

#[test]
fn a_change_of_what_the_supervisor_alone_uses_is_told_and_starts_nothing_anew() {
    let main = Running::start(with_own_component(&serving("a", "")));
    let changes = [
        "autostart = false",
        "reload = \"overlap\"",
        "restart.policy = \"never\"",
        "restart.failures = 7",
        "limits.compile-timeout = \"9s\"",
    ];
    for keys in changes {
        configure(&main, &serving("a", keys));
        assert_eq!(main.weir(&["reload"]).good(), "`a` was changed\n", "{keys}");
        assert_eq!(main.weir(&["reload"]).good(), "nothing to add, to remove or to change\n", "{keys}");
    }
    main.weir(&["stop", "a"]).good();
    configure(&main, &serving("a", ""));
    assert_eq!(main.weir(&["reload"]).good(), "`a` was changed\n");
    assert_eq!(main.json(&["status", "--json", "a"])["restarts"], 0);
}

#[test]
fn a_delay_under_way_follows_the_policy_of_a_reload() {
    let waits = "restart = { backoff = \"1h\", max-backoff = \"1h\" }";
    let main = Running::start(with_own_component(&(serving("a", waits) + &serving("b", waits))));
    let state = |id: &str| main.json(&["status", "--json", id])["state"].clone();
    for id in ["a", "b"] {
        assert_ne!(main.weir(&["call", &format!("{id}@1"), "run", "--raw", "trap"]).code, 0);
        until("it is delayed", || (state(id) == "backing-off").then_some(()));
    }
    let (never, soon) =
        ("restart.policy = \"never\"", "restart = { backoff = \"1ms\", max-backoff = \"1ms\" }");
    configure(&main, &(serving("a", never) + &serving("b", soon)));
    assert_eq!(main.weir(&["reload"]).good(), "`a` was changed\n`b` was changed\n");
    let a = main.json(&["status", "--json", "a"]);
    assert_eq!(
        (&a["state"], &a["reason"]),
        (&"failed".into(), &"`restart.policy` does not start it again".into())
    );
    until("it is not delayed any more", || (state("b") == "ready").then_some(()));
    main.weir(&["start", "a"]).good();
}

#[test]
fn a_signal_during_a_reload_leads_to_one_more_after_it() {
    let mut main = Running::start(with_own_component(PUPPET));
    let slow = PUPPET.to_owned() + &slow("start");
    configure(&main, &slow);
    let mut first = main.command(&["reload"]).stdout(Stdio::null()).spawn().unwrap();
    let state = |main: &Running, id: &str| main.weir(&["status", id]).stdout;
    until("the first reload is under way", || {
        state(&main, "slow").contains("state     starting").then_some(())
    });
    configure(&main, &(slow + &serving("late", "")));
    main.signal(Signal::HUP);
    main.until("SIGHUP: reading the configuration again");
    let_go(&main);
    assert!(first.wait().unwrap().success());
    main.until("reloaded: 1 added, 0 removed, 0 changed, 0 failed: added `extension.late`");
    assert!(state(&main, "late").contains("state     ready"));
}
