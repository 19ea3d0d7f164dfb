//! `weir topics` and `weir queues`.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use serde_json::Value;

use super::support::{PUPPET, PUPPETS, Running, configured, let_go};

/// A retained topic, and an extension that subscribes and reads no event: it waits for an answer that the puppet
/// forgets.
const TOPICS: &str = r#"
[topic."told.state"]
retain = true

[[extension]]
id = "slow"
path = "puppet.wasm"
fulfills = ["slow@1"]
requires = ["puppet@1"]
subscribes = [{ topic = "told.*", policy = "drop-newest", messages = 2, bytes = "1 KiB" }]
config = { contract = "slow@1", start = "all subscribe told.*; call puppet@1 run forget" }
limits.ready-timeout = "1h"
"#;

/// A queue for two jobs with dead letters, a queue for one job with blocking senders, and two readers.
const QUEUES: &str = r#"
[queue.jobs]
messages = 2
max-deliveries = 2
dead-letter = "dead"

[queue.strict]
messages = 1
when-full = "block"

[[extension]]
id = "puppet"
path = "puppet.wasm"
fulfills = ["puppet@1"]
puts = ["jobs"]
takes = ["jobs"]

[[extension]]
id = "worker"
path = "worker.wasm"
takes = ["jobs"]
publishes = ["worked.>"]
config = { queue = "jobs", mode = "one-by-one" }
autostart = false
restart = { backoff = "1ms", max-backoff = "1ms" }
"#;

fn row<'a>(table: &'a str, name: &str) -> Vec<&'a str> {
    let mut rows = table.lines().map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()));
    let row = rows.find(|row| row.clone().next() == Some(name));
    row.unwrap_or_else(|| panic!("no `{name}` in:\n{table}")).collect()
}

fn queue(main: &Running, name: &str) -> Value {
    let queues = main.json(&["queues", "--json"])["queues"].take();
    queues.as_array().unwrap().iter().find(|queue| queue["queue"] == name).unwrap().clone()
}

fn buried(main: &Running, count: usize) {
    while main.json(&["queues", "show", "--json", "dead"])["jobs"].as_array().unwrap().len() < count {}
}

#[test]
fn topics_show_what_was_published_and_who_lags() {
    let main = Running::begin(configured(&format!("{PUPPET}{TOPICS}")));
    while main.weir(&["topics"]).stdout.lines().all(|line| !line.starts_with("slow ")) {}
    for expected in [
        "delivered to 1 subscription\n",
        "delivered to 1 subscription\n",
        "delivered to 0 subscriptions; lost for want of room: 1 event, this one or older\n",
    ] {
        assert_eq!(main.weir(&["publish", "told.you", "1"]).good(), expected);
    }
    let table = main.weir(&["topics"]).good();
    let topic = row(&table, "told.you");
    assert_eq!((topic[1], &topic[3..]), ("3", &["1", "2", "1", "0", "-"][..]), "{table}");
    let subscription = row(&table, "slow");
    assert_eq!(subscription[1..4], ["told.*", "drop-newest", "2 / 2"], "{table}");
    assert_eq!(subscription[5..], ["0", "0", "1", "0"], "{table}");
    let_go(&main);
    while main.json(&["topics", "--json"])["subscriptions"][0]["received"] != 2 {}
}

#[test]
fn topics_are_those_that_a_pattern_meets() {
    let main = Running::begin(configured(&format!("{PUPPET}{TOPICS}")));
    while main.weir(&["topics"]).stdout.lines().all(|line| !line.starts_with("slow ")) {}
    main.weir(&["publish", "told.you", "1"]).good();
    let all = main.weir(&["topics"]).good();
    assert_eq!((row(&all, "told.state")[7], row(&all, "told.you")[1]), ("nothing yet", "1"), "{all}");
    let some = main.json(&["topics", "--json", "*.you"]);
    assert_eq!(some["topics"].as_array().unwrap().len(), 1, "{some}");
    assert_eq!(
        (&some["topics"][0]["topic"], &some["subscriptions"][0]["subscriber"]),
        (&"told.you".into(), &"slow".into())
    );
    assert_eq!(main.weir(&["topics", "nothing.>"]).good(), "no topics\n\nno subscriptions\n");
    let_go(&main);
}

#[test]
fn the_last_value_of_a_retained_topic_comes_first_and_is_marked() {
    let main = Running::with(&format!("{PUPPETS}\n[topic.\"told.state\"]\nretain = true\n"));
    main.weir(&["publish", "told.state", "1"]).good();
    main.weir(&["publish", "told.state", "{\"on\":true}"]).good();
    assert_eq!(row(&main.weir(&["topics"]).good(), "told.state")[7], "11 B");
    for (args, expected) in [
        (vec!["tail", "told.>"], "2 told.state from main (retained) {\"on\":true}"),
        (
            vec!["tail", "--json", "told.*"],
            r#"{"topic":"told.state","sender":"main","sequence":2,"lost":0,"retained":true,"payload":{"on":true}}"#,
        ),
    ] {
        let mut tail = main.command(&args).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), expected);
        tail.kill().unwrap();
        tail.wait().unwrap();
    }
}

#[test]
fn a_job_that_kills_its_reader_too_often_is_shown_as_a_dead_letter_and_put_back() {
    let main = Running::with(QUEUES);
    let put = main.weir(&["queues", "put", "jobs", "die \x1b[2J"]).good();
    let id = put.trim_end().strip_prefix("put as job ").unwrap();
    let shown = main.weir(&["queues", "show", "jobs"]).good();
    let waiting = row(&shown, id);
    assert_eq!(
        (waiting[1], &waiting[3..]),
        ("main", &["0", "-", "8 B", r#""die \u{1b}[2J""#][..]),
        "{shown}"
    );

    // It restarts by itself, and is killed again.
    main.weir(&["start", "worker"]).good();
    buried(&main, 1);
    let shown = main.weir(&["queues", "show", "dead"]).good();
    assert_eq!(row(&shown, id)[3..5], ["0", "in jobs after 2"], "{shown}");
    let jobs = queue(&main, "jobs");
    assert_eq!((&jobs["delivered"], &jobs["returned"], &jobs["dead"]), (&2.into(), &2.into(), &1.into()));

    main.weir(&["stop", "worker"]).good();
    let other = main.weir(&["queues", "requeue", "--id", "1000000", "dead"]);
    assert_eq!(
        (other.code, &*other.stderr),
        (2, "error: invalid: queue `dead` holds no dead letter 1000000\n")
    );
    assert_eq!(main.weir(&["queues", "requeue", "--id", id, "dead"]).good(), "requeued 1 job\n");
    assert_eq!(main.weir(&["queues", "show", "dead"]).good(), "no job waits in `dead`\n");
    let shown = main.weir(&["queues", "show", "jobs"]).good();
    assert_eq!(row(&shown, id)[3..5], ["0", "-"], "it is as good as new: {shown}");

    main.weir(&["restart", "worker"]).good();
    buried(&main, 1);
    main.weir(&["stop", "worker"]).good();
    assert_eq!(main.weir(&["queues", "requeue", "--all", "dead"]).good(), "requeued 1 job\n");
    assert_eq!(main.weir(&["queues", "requeue", "--all", "dead"]).good(), "no dead letter waits in `dead`\n");
}

#[test]
fn queues_show_what_waits_what_is_in_hand_and_what_is_done() {
    let main = Running::with(QUEUES);
    let puppet = |command: &str| main.weir(&["call", "puppet@1", "run", "--raw", command]).good();
    let counts = |name: &str| {
        let table = main.weir(&["queues"]).good();
        let cells: Vec<_> = row(&table, name).into_iter().map(str::to_owned).collect();
        (cells[1..4].join(" "), cells[7..].join(" "))
    };
    let counted = |name: &str, held: &str, became: &str| {
        assert_eq!(counts(name), (held.to_owned(), became.to_owned()));
    };
    counted("jobs", "0 0 2", "0 0 0 0 0 0 0 reject");
    puppet("take jobs 1");
    while queue(&main, "jobs")["idle-readers"] != 1 {}
    counted("jobs", "0 0 2", "0 0 0 0 0 1 0 reject");
    let id = puppet("put jobs first");
    while queue(&main, "jobs")["in-hand"] != 1 {}
    let sender = main.json(&["queues", "put", "--json", "jobs", "second"]);
    assert!(sender["id"].as_u64() > id.parse().ok(), "{sender}");
    counted("jobs", "1 1 2", "0 0 0 0 0 0 0 reject");
    assert_eq!(main.weir(&["queues", "put", "jobs", "third"]).code, 8);
    counted("jobs", "1 1 2", "0 0 0 0 1 0 0 reject");
    puppet(&format!("done {id}"));
    counted("jobs", "1 0 2", "1 0 0 0 1 0 0 reject");
    counted("strict", "0 0 1", "0 0 0 0 0 0 0 block");
    assert_eq!(
        main.json(&["queues", "show", "--json", "--max", "1", "jobs"])["jobs"][0]["payload-text"],
        "second"
    );
}

#[test]
fn a_job_that_is_not_put_has_an_exit_code_of_its_own() {
    let main = Running::with(&format!("request-timeout = \"50ms\"\n{QUEUES}"));
    let code = |args: &[&str]| main.weir(&[&["queues"], args].concat()).code;
    for args in [&["put", "nobodys"][..], &["show", "nobodys"], &["requeue", "--all", "nobodys"]] {
        let refused = main.weir(&[&["queues"], args].concat());
        let expected = "error: invalid: no queue `nobodys` is configured\n";
        assert_eq!((refused.code, &*refused.stderr), (4, expected));
    }
    assert_eq!(code(&["put", "strict", "first"]), 0);
    assert_eq!(code(&["put", "strict", "second"]), 6, "it waited for room in vain");
    let large = vec![b'x'; 1024 * 1024];
    assert_eq!(main.weir_with_stdin(&["queues", "put", "jobs", "-"], &large).code, 5);
    assert_eq!(main.weir(&["queues", "put", "jobs", ""]).code, 0, "a job may be empty");
}

#[test]
fn where_no_queue_is_configured_it_is_said_so() {
    assert_eq!(Running::with("").weir(&["queues"]).good(), "no queues are configured\n");
}
