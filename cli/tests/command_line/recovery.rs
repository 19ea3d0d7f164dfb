//! Failures of extensions and the operator's remedies.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
};

use super::support::{PUPPET, Running, configured, done, until, weir, with_own_component};

/// Quarantined at the first failure.
const FRAGILE: &str = r#"
[[extension]]
id = "fragile"
path = "puppet.wasm"
fulfills = ["puppet@1"]
restart.failures = 1
"#;

/// Its restart delay outlasts the test.
const PATIENT: &str = r#"
[[extension]]
id = "patient"
path = "puppet.wasm"
fulfills = ["puppet@1"]
restart = { backoff = "1h", max-backoff = "1h", window = "7days" }
"#;

fn trap(main: &Running) {
    let trapped = main.weir(&["call", "puppet@1", "run", "--raw", "trap"]);
    let advice = "error: the receiver trapped with the request in hand; `weir ps --failures` says why\n";
    assert_eq!((trapped.code, trapped.stderr.as_str()), (8, advice));
}

#[test]
fn a_quarantine_is_shown_with_what_lifts_it_and_only_that_does() {
    let main = Running::with(FRAGILE);
    trap(&main);
    let row = main.weir(&["ps"]).good();
    assert!(row.lines().last().unwrap().starts_with("fragile  extension  quarantined  "), "{row}");

    let refused = main.weir(&["start", "fragile"]);
    assert_eq!(refused.code, 8);
    let advice = "; `weir restart fragile` starts it again\n";
    assert!(
        refused.stderr.starts_with("error: `fragile` did not start: 1 failures within 1m"),
        "{refused:?}"
    );
    assert!(refused.stderr.ends_with(advice), "{refused:?}");
    assert_eq!(main.weir(&["reload", "fragile"]).good(), "`fragile` is quarantined\n");
    assert_eq!(main.weir(&["stop", "fragile"]).good(), "`fragile` is quarantined\n");
    let call = main.weir(&["call", "puppet@1", "run"]);
    assert_eq!(call.code, 8);
    let said = "error: no provider: `fragile` is not running: quarantined: 1 failures within 1m, the last: ";
    assert!(call.stderr.starts_with(said), "{call:?}");
    assert!(call.stderr.ends_with("; `weir restart fragile` starts it again; `weir ps` shows what runs\n"));

    assert_eq!(main.weir(&["restart", "fragile"]).good(), "`fragile` is ready\n");
    assert_eq!(main.weir(&["call", "puppet@1", "run", "--raw", "own-name"]).good(), "fragile");
}

#[test]
fn what_came_of_a_failure_is_shown_with_the_time_of_the_restart() {
    let main = Running::with(PATIENT);
    trap(&main);
    let failure = main.json(&["status", "--json", "patient"])["failures"][0].clone();
    assert_eq!(failure["then"], "backing-off");
    let next = failure["next-restart"].as_str().unwrap();

    let table = main.weir(&["ps"]).good();
    assert!(table.contains("patient  extension  backing-off"), "{table}");
    assert!(table.ends_with(&format!(" 0, next at {next}\n")), "{table}");
    let table = main.weir(&["ps", "--failures"]).good();
    assert!(table.contains(&format!(" backing-off until {next}  trapped: ")), "{table}");
    let status = main.weir(&["status", "patient"]).good();
    assert!(status.contains("\nstate     backing-off: trapped: "), "{status}");
    assert!(status.contains(&format!("\nrestarts  0, next at {next}\n")), "{status}");
    assert!(status.contains(&format!("\n  then      backing-off until {next}\n")), "{status}");

    assert_eq!(main.weir(&["restart", "patient"]).good(), "`patient` is ready\n");
    let table = main.weir(&["ps"]).good();
    assert!(table.ends_with(" 1\n"), "{table}");
}

#[test]
fn a_restart_is_of_an_extension_that_there_is_and_ends_when_it_is_ready() {
    let main = Running::with(PATIENT);
    assert_eq!(main.json(&["restart", "--json", "patient"])["restarts"], 1);
    main.weir(&["stop", "patient"]).good();
    assert_eq!(main.weir(&["restart", "patient"]).good(), "`patient` is ready\n");
    let unknown = main.weir(&["restart", "nobody"]);
    assert_eq!((unknown.code, unknown.stderr.as_str()), (4, "error: no extension `nobody` is configured\n"));
}

#[test]
fn a_restart_after_a_failure_runs_the_version_in_memory_and_one_that_is_asked_for_reads_the_file() {
    let config = format!("{PUPPET}restart = {{ backoff = '1ms', max-backoff = '1ms' }}\n");
    let main = Running::start(with_own_component(&config));
    let status = || main.json(&["status", "--json", "puppet"]);
    let replace = |component: &[u8]| {
        let new = main.path().join("new");
        fs::write(&new, component).unwrap();
        fs::rename(new, main.path().join("puppet.wasm")).unwrap();
    };
    // The hash of what runs after a failure.
    let failed = || {
        let before = status()["restarts"].as_u64();
        trap(&main);
        until("it is back", || {
            let now = status();
            (now["restarts"].as_u64() > before && now["state"] == "ready").then(|| now["hash"].clone())
        })
    };
    let first = status()["hash"].clone();
    assert!(first.is_string(), "{first}");
    // The same program with another hash.
    let mut changed = fs::read(main.path().join("puppet.wasm")).unwrap();
    changed.extend(b"\0\x02\x01x");
    replace(&changed);
    assert_eq!(failed(), first);
    replace(b"not WebAssembly");
    assert_eq!(failed(), first);
    assert_eq!(main.weir(&["call", "puppet@1", "run", "--raw", "own-name"]).good(), "puppet");
    let refused = main.weir(&["restart", "puppet"]);
    assert_eq!(refused.code, 8, "{refused:?}");
    assert!(refused.stderr.contains("is not a WebAssembly component"), "{refused:?}");
}

const FACTS: [&str; 11] = [
    "handling=\"puppet@1 run\"",
    "sender=\"main\"",
    "message=\"1\"",
    "limit=\"stack\"",
    "used=\"1048576\"",
    "allowed=\"1048576\"",
    "then=\"backing-off\"",
    "next-restart=\"20",
    "hash=\"",
    "trace=\"",
    "puppet::commands::recurse < puppet::commands::recurse",
];

#[test]
fn a_failure_is_one_line_of_the_log_with_all_that_is_known_of_it() {
    for format in ["human", "json"] {
        let dir = configured(PATIENT);
        let mut run = weir(dir.path());
        run.args(["run", "--log-format", format, "weir.toml"]).stderr(Stdio::piped());
        let mut child = run.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        lines.find(|line| line.contains("1 of 1 extensions are ready")).unwrap();
        assert_eq!(done(weir(dir.path()).args(["call", "puppet@1", "run", "--raw", "recurse"])).code, 8);
        let line = lines.next().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let said = match format {
            "json" => {
                let line: serde_json::Value = serde_json::from_str(&line).unwrap();
                assert_eq!((&line["level"], &line["extension"]), (&"ERROR".into(), &"patient".into()));
                line["message"].as_str().unwrap().to_owned()
            }
            _ => line.split_once(" ERROR [patient] ").unwrap().1.to_owned(),
        };
        let mut rest = said.strip_prefix("failed: trapped: call stack exhausted").unwrap();
        for fact in FACTS {
            rest = rest.split_once(fact).unwrap_or_else(|| panic!("no `{fact}` here: {said}")).1;
        }
    }
}

#[test]
fn an_extension_that_says_itself_that_it_failed_is_said_to_have_failed_once() {
    let extension = "[[extension]]\nid = \"plain\"\npath = \"puppet.wasm\"\nfulfills = [\"puppet@1\"]\n\
                     config.start = \"error failed: cannot open\"\nrestart.policy = \"never\"\n";
    let mut main = Running::begin(configured(extension));
    let line = main.until(" ERROR [plain] ");
    assert!(line.contains(" ERROR [plain] failed: cannot open"), "{line}");
    assert_eq!(line.matches("failed: ").count(), 1, "{line}");
    until("it has failed", || (main.json(&["status", "--json", "plain"])["state"] == "failed").then_some(()));
    let status = main.weir(&["status", "plain"]).good();
    assert!(status.contains("\nstate     failed: cannot open\n"), "{status}");
    let listed = main.weir(&["ps"]).good();
    assert!(listed.ends_with("\n`plain`: failed: cannot open\n"), "{listed}");
}
