//! Calls, events and jobs; hooks; reloads, and the death of Main.

use std::fs;

use super::support::{Device, configure, configured, done, maker, puppet, put, until, weir};

#[test]
fn calls_reach_extensions_and_go_from_one_to_another() {
    let device = Device::with(&(puppet("a", "wants = [\"b@1\"]") + &puppet("b", "")));
    assert_eq!(device.tell("a", "call b@1 run echo through both"), "through both");
    assert_eq!(device.tell("a", "call b@1 run asker"), "a");
    let large = device.tell("b", "large 60000");
    assert!(large.len() == 60_000 && large.bytes().all(|byte| byte == b'x'), "{} bytes", large.len());
    let refused = device.ask("a", "error by hand");
    assert!(refused.code == 7 && refused.stderr.contains("by hand"), "{refused:?}");
    let unknown = device.ask("nobody", "echo");
    assert_eq!(unknown.code, 4, "{unknown:?}");
}

#[test]
fn events_reach_every_subscriber_in_their_order() {
    let subscriber = "subscribes = [\"told.>\"]\nconfig.start = \"subscribe told.>\"";
    let device = Device::with(
        &(puppet("a", subscriber) + &puppet("b", subscriber) + &puppet("c", "publishes = [\"told.*\"]")),
    );
    device.weir(&["publish", "told.once", "from outside"]).good();
    device.tell("c", "all publish told.twice from c; publish told.twice again");
    for id in ["a", "b"] {
        let heard = device.tell(id, "heard");
        let lines: Vec<_> = heard.lines().map(|line| line.rsplit_once(" 0 ").unwrap_or_default().1).collect();
        assert_eq!(lines, ["from outside", "from c", "again"], "{heard}");
    }
}

#[test]
fn a_job_goes_to_one_reader_and_again_if_that_one_dies() {
    let queue = "[queue.jobs]\nmessages = 8\nmax-deliveries = 2\ndead-letter = \"dead\"\n";
    let reader = "takes = [\"jobs\"]\nrestart = { backoff = \"1ms\", max-backoff = \"1ms\", failures = 9 }";
    let device = Device::with(
        &(queue.to_owned()
            + &puppet("writer", "puts = [\"jobs\"]")
            + &puppet("reader", &format!("{reader}\nconfig.start = \"take jobs one-by-one\""))),
    );
    device.tell("writer", "put jobs well done");
    let mut seen = String::new();
    until("the job", || {
        seen = device.tell("reader", "heard");
        !seen.is_empty()
    });
    assert!(seen.starts_with("job: ") && seen.ends_with(" 1 well done"), "{seen}");
    // It traps at each of two deliveries.
    device.tell("writer", "put jobs trap");
    let dead = || device.json(&["queues", "show", "--json", "dead"]).to_string();
    until("the dead letter", || dead().contains("\"trap\""));
    device.until_state("reader", "ready");
    let failure = device.failure("reader").to_string();
    assert!(failure.contains("trapped"), "{failure}");
}

const HOOKS: &str = r#"
[hooks.node]
dir = "hooks.d"
timeout = "5m"
total-timeout = "10m"
"#;

#[test]
fn hooks_run_one_after_another_until_one_fails() {
    let dir = configured("");
    fs::create_dir(dir.path().join("hooks.d")).unwrap();
    for name in ["10-well.wasm", "20-warns.wasm", "30-fails.wasm", "40-is-left-out.wasm"] {
        put(dir.path(), "hook", &format!("hooks.d/{name}"));
    }
    configure(dir.path(), HOOKS);
    let run = |params: &[&str]| {
        let arguments = ["hooks", "run", "node", "--config", "weir.toml", "--json"];
        done(weir(dir.path()).args(arguments).args(params))
    };
    let ran = run(&["--param", "DO_20=exit 33", "--param", "DO_30=fail"]);
    assert_eq!(ran.code, 7, "{ran:?}");
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let outcome =
        |run: &serde_json::Value| (run["hook"].as_str().unwrap().to_owned(), run["outcome"].clone());
    let hooks: Vec<_> = report["hooks"].as_array().unwrap().iter().map(outcome).collect();
    let names: Vec<_> = hooks.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["10-well.wasm", "20-warns.wasm", "30-fails.wasm"], "{report}");
    assert_eq!((hooks[0].1.as_str(), hooks[1].1.as_str()), (Some("ok"), Some("warning")), "{report}");
    let ran = run(&[]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn a_new_artifact_replaces_the_old_one_and_a_bad_one_does_not() {
    for mode in ["stop-first", "overlap"] {
        let device = Device::with(&puppet("a", &format!("reload = \"{mode}\"")));
        assert_eq!(device.tell("a", "config word"), "none");
        fs::write(device.path().join("puppet.cwasm"), "neither a component nor an artifact").unwrap();
        let refused = device.weir(&["reload", "a"]);
        assert_eq!(refused.code, 8, "{mode}: {refused:?}");
        assert_eq!(device.tell("a", "echo the old one"), "the old one", "{mode}");

        put(device.path(), "puppet", "puppet.cwasm");
        assert_eq!(device.weir(&["reload", "a"]).good(), "`a` is ready\n");
        let tables = puppet("a", &format!("reload = \"{mode}\"\nconfig.word = \"new\"")) + &puppet("b", "");
        configure(device.path(), &tables);
        let reloaded = device.weir(&["reload"]);
        assert_eq!(reloaded.code, 0, "{mode}: {reloaded:?}");
        assert_eq!(device.tell("a", "config word"), "new", "{mode}");
        assert_eq!(device.tell("b", "own-name"), "b", "{mode}");
    }
}

#[test]
fn after_a_kill_main_starts_again_from_what_is_there_with_nothing_in_the_way() {
    let mut dir = None;
    for _ in 0..3 {
        let device = match dir.take() {
            None => Device::with(&(puppet("a", "wants = [\"b@1\"]") + &puppet("b", ""))),
            Some(dir) => Device::start(dir),
        };
        assert_eq!(device.tell("a", "call b@1 run echo there"), "there");
        dir = Some(device.kill());
    }
    let device = Device::start(dir.unwrap());
    let (code, log) = device.shut_down();
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn extensions_stop_and_start_by_order_of_the_operator() {
    let device = Device::with(&puppet("a", ""));
    device.weir(&["stop", "a"]).good();
    assert_eq!(device.ask("a", "echo").code, 8);
    assert_eq!(device.weir(&["start", "a"]).good(), "`a` is ready\n");
    assert_eq!(device.tell("a", "echo there"), "there");
    assert!(maker().key().is_file(), "the key stays where artifacts are made");
}
