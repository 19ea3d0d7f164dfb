//! `weir ps`, `status` and `logs`.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    time::SystemTime,
};

use super::support::{PUPPETS, Running, until};

#[test]
fn ps_lists_every_extension_with_what_it_uses() {
    let main = Running::with(PUPPETS);
    let table = main.weir(&["ps"]).good();
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["ID", "KIND", "STATE", "CPU", "CPU%", "MEMORY", "INBOX", "SHED", "RESTARTS"]);
    assert_eq!(rows[1][..3], ["puppet", "extension", "ready"]);
    assert_eq!(rows[2][..3], ["spare", "extension", "loaded"]);
    let puppet = &main.json(&["ps", "--json"])["extensions"][0];
    assert!(puppet["memory"].as_u64().unwrap() > 0, "{puppet}");
    assert!(puppet["cpu-seconds"].as_f64().unwrap() > 0.0, "{puppet}");
}

#[test]
fn ps_puts_the_one_first_that_used_most_of_the_last_second() {
    let main = Running::with(PUPPETS);
    main.weir(&["start", "spare"]).good();
    let share = |id| main.json(&["status", "--json", id])["cpu-share"].as_f64().unwrap();
    until("a busy second", || {
        main.weir(&["call", "spare@1", "run", "--raw", "burn 1000000"]).good();
        (share("spare") > 0.0 && share("puppet") == 0.0).then_some(())
    });
    let first = |args: &[&str]| main.weir(args).good().lines().nth(1).unwrap().to_owned();
    assert!(first(&["ps"]).starts_with("puppet "));
    let busiest = first(&["ps", "--sort", "cpu"]);
    assert!(busiest.starts_with("spare ") && busiest.contains("% "), "{busiest}");
}

#[test]
fn who_watches_ps_sees_each_change_until_main_ends() {
    let main = Running::with(PUPPETS);
    let mut watch = main.command(&["ps", "-w"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("spare") && line.contains("loaded")));
    main.weir(&["start", "spare"]).good();
    assert!(lines.any(|line| line.starts_with("spare") && line.contains("ready")));
    main.weir(&["shutdown"]).good();
    assert_eq!(watch.wait().unwrap().code(), Some(3));
}

#[test]
fn logs_are_those_since_a_time_if_asked() {
    let main = Running::with(PUPPETS);
    let say = |text: &str| main.weir(&["call", "puppet@1", "run", "--raw", text]).good();
    say("log before");
    let before = main.weir(&["logs", "-n1", "--json"]).good();
    let now = || humantime::format_rfc3339_millis(SystemTime::now()).to_string();
    let earlier = now();
    let between = until("a later millisecond", || Some(now()).filter(|now| *now != earlier));
    say("log after");
    let all = main.weir(&["logs", "--json", "--since", "1h"]).good();
    assert!(all.contains(&before) && all.contains("after"), "{all}");
    let later = main.weir(&["logs", "--json", "--since", &between]).good();
    assert!(later.lines().count() == 1 && later.contains("after"), "{later}");
    let mistake = main.weir(&["logs", "--since", "yesterday"]);
    assert!(mistake.code == 2 && mistake.stderr.contains("neither a time"), "{mistake:?}");
}

#[test]
fn a_failure_is_shown_with_what_was_handled_and_where_it_happened() {
    let main = Running::with(PUPPETS);
    assert_eq!(main.weir(&["ps", "--failures"]).good().lines().count(), 1);
    assert_eq!(main.weir(&["call", "puppet@1", "run", "--raw", "trap"]).code, 8);

    let table = main.weir(&["ps", "--failures"]).good();
    let row: Vec<&str> = table.lines().last().unwrap().split("  ").map(str::trim).collect();
    let row: Vec<&str> = row.into_iter().filter(|cell| !cell.is_empty()).collect();
    assert_eq!(row[1..6], ["puppet", "puppet@1 run", "1", "main", "-"], "{table}");
    let failures = main.json(&["ps", "--failures", "--json"]);
    assert_eq!(failures["failures"][0]["handling"]["sender"], "main", "{failures}");
    let status = main.weir(&["status", "puppet"]).good();
    assert!(status.contains("state     failed: "), "{status}");
    assert!(status.contains("handling  puppet@1 run for main"), "{status}");
    let (_, trace) = status.split_once("trace ").unwrap();
    assert!(trace.contains("commands") && trace.contains("trap"), "{status}");
}

#[test]
fn logs_are_of_all_or_of_one_and_the_last_ones_if_asked() {
    let main = Running::with(PUPPETS);
    main.weir(&["start", "spare"]).good();
    for (contract, text) in [("puppet@1", "one"), ("spare@1", "two"), ("puppet@1", "three")] {
        main.weir(&["call", contract, "run", "--raw", &format!("log {text}")]).good();
    }
    let texts = |args: &[&str]| -> Vec<String> {
        let lines = main.weir(&[&["logs", "--json"], args].concat()).good();
        let lines = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let texts = lines.map(|line| line["message"].as_str().unwrap().to_owned());
        texts.filter(|text| !text.contains("compiled")).collect()
    };
    assert_eq!(texts(&[]), ["start: done", "one", "two", "three"]);
    assert_eq!(texts(&["puppet"]), ["one", "three"]);
    assert_eq!(texts(&["puppet", "-n", "1"]), ["three"]);
    assert_eq!(texts(&["-n", "0"]), [""; 0]);
    let human = main.weir(&["logs", "-n1"]).good();
    assert!(human.ends_with(" WARN [puppet] three na\\nme=\"va\\\\u{1b}[2Jlue\"\n"), "{human}");
}

#[test]
fn who_follows_the_logs_sees_each_line_until_main_ends() {
    let main = Running::with(PUPPETS);
    let say = |text: &str| main.weir(&["call", "puppet@1", "run", "--raw", text]).good();
    say("log before");
    let mut logs = main.command(&["logs", "-f", "-n1", "puppet"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(logs.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("[puppet] before"));
    say("log after");
    assert!(lines.next().unwrap().unwrap().contains("[puppet] after"));
    main.weir(&["shutdown"]).good();
    assert_eq!(logs.wait().unwrap().code(), Some(0));
}

#[test]
fn what_an_extension_says_cannot_look_like_another_line() {
    let mut main = Running::with(PUPPETS);
    let line = "log a\x1b[1A\n2026-01-01T00:00:00Z  INFO [spare] forged";
    main.weir(&["call", "puppet@1", "run", "--raw", line]).good();
    let logged = main.until("forged");
    assert!(logged.contains("[puppet] a\\u{1b}[1A\\n2026"), "{logged}");
    let logs = main.weir(&["logs"]).good();
    assert!(!logs.lines().any(|line| line.starts_with("2026-01-01")), "{logs}");
}

#[test]
fn who_follows_for_somebody_that_has_left_ends_without_a_word() {
    let main = Running::with(PUPPETS);
    for args in [&["logs", "-f"][..], &["tail", ">"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        let child = main.command(args).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        drop(reader);
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
    }
}
