//! `weir limits`, of a Main and of a file.

use serde_json::Value;

use super::support::{PUPPET, PUPPETS, Running, configured, done, until, weir};

/// A budget and the rest of `[main]`, a class, and a limit of the extension's own.
const LIMITED: &str = r#"memory-budget = "64 MiB"
[limits.small]
inherits = "min"
memory = "3 MiB"

[[extension]]
id = "puppet"
path = "puppet.wasm"
class = "small"
fulfills = ["puppet@1"]
limits.stop-timeout = "250ms"

[[extension]]
id = "spare"
path = "puppet.wasm"
autostart = false
"#;

fn row<'a>(table: &'a str, key: &str) -> Vec<&'a str> {
    let is_it = |line: &&str| line.split_whitespace().next() == Some(key);
    let line = table.lines().find(is_it).unwrap_or_else(|| panic!("no `{key}` in:\n{table}"));
    line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

fn limit<'a>(report: &'a Value, key: &str) -> &'a Value {
    let limits = report["extensions"][0]["limits"].as_array().unwrap();
    limits.iter().find(|limit| limit["key"] == key).unwrap()
}

#[test]
fn limits_of_a_running_main_show_what_is_used_and_where_they_are_set() {
    let main = Running::with(LIMITED);
    main.weir(&["call", "puppet@1", "run", "--raw", &format!("echo {}", "x".repeat(5000))]).good();

    let table = main.weir(&["limits", "puppet"]).good();
    assert!(table.starts_with("puppet: class `small`\n"), "{table}");
    let memory = row(&table, "memory");
    assert_eq!((memory[1], memory[4]), ("3 MiB", "weir.toml:6"));
    assert!(memory[2].ends_with("iB") && memory[3].ends_with("iB"), "{memory:?}");
    assert_eq!(row(&table, "stop-timeout")[4], "weir.toml:13");
    assert_eq!(row(&table, "cpu-share")[4], "built in, `min`");
    assert_eq!(row(&table, "request-timeout")[1..], ["5s", "-", "-", "`main.request-timeout`"]);
    assert_eq!(row(&table, "message-size")[3], "4.9 KiB");
    assert!(row(&table, "fuel-per-message")[1].starts_with("50000000 (≈ "), "{table}");
    assert_eq!(row(&table, "fuel-slice")[4], "fixed, `min`");
    assert_eq!(row(&table, "transfer")[1], "128.0 KiB");
    assert_eq!(row(&table, "stop-timeout")[2..4], ["-", "-"], "it has not been stopped yet");
    assert!(!table.contains("spare"), "{table}");

    let all = main.weir(&["limits"]).good();
    assert!(all.contains("puppet: class `small`\n") && all.contains("\nspare: class `medium`\n"), "{all}");
    assert!(row(&all, "(all)")[1].ends_with(" of 64.0 MiB, the `main.memory-budget`"), "{all}");

    let unknown = main.weir(&["limits", "nobody"]);
    assert_eq!((unknown.code, unknown.stderr.as_str()), (4, "error: no extension `nobody` is configured\n"));
}

#[test]
fn limits_for_programs_are_numbers() {
    let main = Running::with(LIMITED);
    let report = main.json(&["limits", "--json", "puppet"]);
    assert_eq!(report["extensions"].as_array().unwrap().len(), 1);
    assert!(report["fuel-per-ms"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(limit(&report, "memory")["allowed"], 3 * 1024 * 1024);
    assert!(limit(&report, "memory")["peak"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(limit(&report, "stop-timeout")["allowed"], 0.25);
    let source = &limit(&report, "memory")["source"];
    assert_eq!((&source["kind"], &source["line"]), (&"file".into(), &6.into()));
    assert_eq!(main.json(&["limits", "--json"])["extensions"].as_array().unwrap().len(), 2);
}

#[test]
fn limits_of_a_file_need_no_main() {
    let dir = configured(LIMITED);
    let limits = |args: &[&str]| done(weir(dir.path()).args(["limits", "--file", "weir.toml"]).args(args));
    let table = limits(&[]).good();
    assert_eq!(row(&table, "memory")[1..], ["3 MiB", "-", "-", "weir.toml:6"]);
    assert!(table.contains("\nspare: class `medium`\n"), "{table}");
    let mut overridden = weir(dir.path());
    overridden.args(["limits", "--file", "weir.toml"]).env("WEIR_LIMITS_SMALL_MEMORY", "2 MiB");
    let table = done(&mut overridden).good();
    assert_eq!(row(&table, "memory")[1..], ["2 MiB", "-", "-", "WEIR_LIMITS_SMALL_MEMORY"]);
    let report: Value = serde_json::from_str(&limits(&["--json", "spare"]).good()).unwrap();
    assert_eq!(report["extensions"][0]["id"], "spare");
    assert!(limit(&report, "memory")["used"].is_null(), "{report}");
    let unknown = limits(&["nobody"]);
    assert_eq!((unknown.code, unknown.stderr.as_str()), (4, "error: no extension `nobody` is configured\n"));
    assert_eq!(done(weir(dir.path()).arg("limits")).code, 3, "without a file it is Main that is asked");
}

#[test]
fn what_is_not_started_has_used_nothing() {
    let main = Running::with(PUPPETS);
    let report = main.json(&["limits", "--json", "absent"]);
    for limit in report["extensions"][0]["limits"].as_array().unwrap() {
        let peak = limit["peak"].as_f64();
        assert!(peak.is_none_or(|peak| peak == 0.0), "{limit}");
    }
}

#[test]
fn a_handler_of_an_event_or_a_job_that_hangs_is_warned_of_and_ended_at_handler_timeout() {
    let extension = |id: &str, keys: &str| {
        format!(
            r#"
            [[extension]]
            id = "{id}"
            path = "puppet.wasm"
            fulfills = ["{id}@1"]
            config.contract = "{id}@1"
            limits.handler-timeout = "400ms"
            restart = {{ backoff = "1ms", max-backoff = "1ms", failures = 100 }}
            {keys}
            "#
        )
    };
    let hears = extension("hears", "subscribes = [\"ev.>\"]\nconfig.start = \"subscribe ev.>\"");
    let works = extension("works", "takes = [\"one\"]\nconfig.start = \"take one one-by-one\"");
    // It receives on while the job is in hand.
    let keeps = extension("keeps", "takes = [\"some\"]\nconfig.start = \"take some 2\"");
    let queue = |name: &str| format!("[queue.{name}]\nmax-deliveries = 2\ndead-letter = \"dead\"\n");
    let config = [PUPPET, &hears, &works, &keeps, &queue("one"), &queue("some"), "[queue.dead]\n"].concat();
    let mut main = Running::with(&config);

    main.weir(&["publish", "ev.a", "\"fine\""]).good();
    main.weir(&["publish", "ev.a", "hang"]).good();
    let half = main.until("has had a message in hand for 200ms, and is ended at `handler-timeout` of 400ms");
    assert!(
        half.contains("WARN") && half.contains("handling=\"event ev.a\"") && half.contains("sequence=\"2\""),
        "{half}"
    );
    let end = main.until("failed: had a message in hand for longer than `handler-timeout` of 400ms");
    assert!(end.contains("handling=\"event ev.a\"") && end.contains("sender=\"main\""), "{end}");
    main.weir(&["publish", "ev.a", "fine"]).good();
    until("the next instance hears", || {
        let heard = main.weir(&["call", "hears@1", "run", "--raw", "heard"]).stdout;
        heard.contains("event: ev.a 3 1 fine").then_some(())
    });

    for (queue, job, id) in [("one", "hang", "works"), ("some", "kept", "keeps")] {
        main.weir(&["queues", "put", queue, job]).good();
        for _ in 0..2 {
            let end = main.until("failed: had a message in hand for longer than `handler-timeout`");
            assert!(end.contains(&format!("handling=\"queue {queue}\"")), "{end}");
        }
        let status = main.json(&["status", "--json", id]);
        let failure = &status["failures"][0];
        assert_eq!(failure["limit"]["name"], "handler-timeout", "{failure}");
        assert_eq!(failure["limit"]["allowed"], 0.4, "{failure}");
        assert!(
            failure["limit"]["used"].as_f64().is_some_and(|used| (0.4..4.0).contains(&used)),
            "{failure}"
        );
        assert_eq!(failure["handling"]["sender"], "main", "{failure}");
        assert!(
            failure["handling"]["message"].is_u64() || failure["handling"]["message"].is_string(),
            "{failure}"
        );
        assert_eq!(status["failures"].as_array().unwrap().len(), 2, "as often as it is delivered");
    }
    let dead = main.json(&["queues", "--json"]);
    let queues = dead["queues"].as_array().unwrap();
    let dead = queues.iter().find(|queue| queue["queue"] == "dead").unwrap();
    assert_eq!(dead["waiting"], 2, "{dead}");
    let puppet = main.json(&["status", "--json", "puppet"]);
    assert_eq!((&puppet["state"], &puppet["restarts"]), (&"ready".into(), &0.into()));
}
