//! Start, discovery and end of Main.

use std::{
    fs,
    io::{Read, Write},
    os::unix::{fs::PermissionsExt, net::UnixStream, process::ExitStatusExt},
    process::Stdio,
};

use rustix::process::Signal;

use super::support::{PUPPETS, Running, configured, done, until, weir};

#[test]
fn a_signal_stops_the_extensions_and_leaves_nothing_behind() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut main = Running::with(PUPPETS);
        main.signal(signal);
        let (status, log) = main.wait();
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(log.contains("stopping the extensions"), "{log}");
        assert_eq!(fs::read_dir(main.path().join("weir")).unwrap().count(), 0);
    }
}

#[test]
fn one_command_starts_and_stops_several_and_what_is_refused_of_one_holds_up_no_other() {
    let main = Running::with(PUPPETS);
    let states = || {
        let all = main.json(&["ps", "--json"]);
        let all = all["extensions"].as_array().unwrap().iter();
        all.map(|extension| extension["state"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let stopped = main.weir(&["stop", "puppet", "nobody", "spare"]);
    assert_eq!(stopped.stdout, "`puppet` is stopped\n`spare` is loaded\n");
    assert_eq!((stopped.code, stopped.stderr.lines().count()), (4, 1), "{stopped:?}");
    assert!(stopped.stderr.contains("`nobody`"), "{stopped:?}");
    assert_eq!(states(), ["stopped", "loaded", "loaded"]);

    for verb in ["start", "restart"] {
        let done = main.weir(&[verb, "--all"]);
        assert_eq!(done.stdout, "`puppet` is ready\n`spare` is ready\n", "{done:?}");
        assert_eq!((done.code, done.stderr.lines().count()), (8, 1), "{done:?}");
        assert!(done.stderr.contains("absent.wasm"), "{done:?}");
        assert_eq!(states(), ["ready", "ready", "failed"]);
    }
    let stopped = main.weir(&["stop", "--all", "--json"]).good();
    let ids =
        stopped.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].clone());
    assert_eq!(ids.collect::<Vec<_>>(), ["absent", "spare", "puppet"]);
    assert_eq!(main.weir(&["stop"]).code, 2);
    assert_eq!(main.weir(&["stop", "--all", "puppet"]).code, 2);
}

#[test]
fn which_main_may_be_said_before_the_command() {
    let main = Running::with(PUPPETS);
    let elsewhere = tempfile::tempdir().unwrap();
    let socket = main.socket();
    let weir_elsewhere = |args: &[&str]| done(weir(elsewhere.path()).args(args));
    let socket = ["--socket", socket.to_str().unwrap()];
    for args in [&["ps"][..], &["status", "puppet"], &["queues"], &["logs"], &["stop", "spare"]] {
        weir_elsewhere(&[&socket[..], args].concat()).good();
    }
    for args in [&["check", "weir.toml"][..], &["ps", "--socket", "/other"]] {
        let refused = weir_elsewhere(&[&socket[..], args].concat());
        assert!(refused.code == 2 && refused.stderr.contains("`--socket`"), "{refused:?}");
    }
}

#[test]
fn a_second_signal_ends_at_once_and_the_next_main_takes_over_the_socket() {
    let mut main = Running::with(
        r#"
        [[extension]]
        id = "stubborn"
        path = "puppet.wasm"
        fulfills = ["puppet@1"]
        limits.stop-timeout = "1h"
        limits.fuel-per-message = 1_000_000_000_000_000
        config.stop = "spin"
        "#,
    );
    main.signal(Signal::TERM);
    main.until("SIGTERM: stopping the extensions");
    main.signal(Signal::INT);
    let (status, log) = main.wait();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(main.socket().exists());

    let mut next = Running::begin(main.into_dir());
    next.until("taking over");
    next.until("1 of 1 extensions are ready");
    next.weir(&["ps"]).good();
}

#[test]
fn a_main_that_was_killed_leaves_a_socket_that_the_next_one_takes_over() {
    let mut main = Running::with("");
    main.signal(Signal::KILL);
    assert_eq!(main.wait().0.signal(), Some(9));
    let refused = main.weir(&["ps"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.stderr.contains("nobody answers there; it may have been killed"), "{refused:?}");

    let next = Running::start(main.into_dir());
    assert!(next.weir(&["ps"]).good().starts_with("ID "));
}

#[test]
fn a_second_main_on_the_same_socket_is_refused_before_it_starts_anything() {
    let main = Running::with(PUPPETS);
    let second = done(weir(main.path()).args(["run", "weir.toml"]));
    assert_eq!(second.code, 1);
    let said = format!("error: `{}` is in use: another Main answers there", main.socket().display());
    assert!(second.stderr.starts_with(&said), "{}", second.stderr);
    assert!(!second.stderr.contains("puppet"), "{}", second.stderr);
    assert_eq!(main.weir(&["call", "puppet@1", "run", "--raw", "echo still here"]).good(), "still here");
}

#[test]
fn only_its_user_can_open_the_socket() {
    let main = Running::with("");
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(main.socket()), 0o600);
    assert_eq!(mode(main.path().join("weir")), 0o700);
}

#[test]
fn shutdown_ends_when_main_has_ended() {
    let mut main = Running::with(PUPPETS);
    assert_eq!(main.weir(&["shutdown"]).good(), "");
    assert_eq!(main.weir(&["ps"]).code, 3);
    let (status, log) = main.wait();
    assert_eq!(status.code(), Some(0), "{log}");
}

#[test]
fn clients_that_say_nothing_or_read_nothing_do_not_hold_up_the_end() {
    let mut main = Running::with(PUPPETS);
    let mut silent = UnixStream::connect(main.socket()).unwrap();
    let mut slow = UnixStream::connect(main.socket()).unwrap();
    slow.write_all(b"GET /v1/ver").unwrap();
    let mut stream = UnixStream::connect(main.socket()).unwrap();
    stream.write_all(b"GET /v1/events?pattern=%3E HTTP/1.1\r\nHost: weir\r\n\r\n").unwrap();
    stream.read_exact(&mut [0; 12]).unwrap();
    main.signal(Signal::TERM);
    let (status, log) = main.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert_eq!(silent.read(&mut [0]).unwrap(), 0);
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    // The stream ended, and the connection did not break.
    assert!(rest.ends_with("0\r\n\r\n"), "{rest}");
}

#[test]
fn who_waits_for_an_answer_hears_when_main_ends() {
    let mut main = Running::with(PUPPETS);
    let mut call = main
        .command(&["call", "puppet@1", "run", "--raw", "forget", "--timeout", "1h"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while main.json(&["status", "--json", "puppet"])["received"] == 0 {}
    main.signal(Signal::TERM);
    let mut said = String::new();
    call.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "error: the receiver stopped before it answered\n");
    assert_eq!(call.wait().unwrap().code(), Some(8));
    assert_eq!(main.wait().0.code(), Some(0));
}

#[test]
fn main_is_found_by_argument_by_configuration_and_by_environment() {
    let dir = configured("");
    let other = dir.path().join("other.sock");
    let other = other.to_str().unwrap();
    let file = fs::read_to_string(dir.path().join("weir.toml")).unwrap();
    let file = file.replacen("[main]", &format!("[main]\ncontrol-socket = \"{other}\""), 1);
    fs::write(dir.path().join("weir.toml"), file).unwrap();
    let main = Running::start(dir);
    assert_eq!(main.weir(&["ps"]).code, 3);
    main.weir(&["ps", "--socket", other]).good();
    main.weir(&["ps", "--config", "weir.toml"]).good();
    done(main.command(&["ps"]).env("WEIR_SOCKET", other)).good();
    let elsewhere = main.path().join("elsewhere.sock");
    done(main.command(&["ps", "--config", "weir.toml"]).env("WEIR_SOCKET", elsewhere)).good();
}

#[test]
fn main_can_be_stopped_with_a_file_that_is_wrong_by_now() {
    let dir = configured("control-socket = \"/nowhere/weir.sock\"");
    let other = dir.path().join("other.sock");
    let file = dir.path().join("weir.toml");
    let right = fs::read_to_string(&file).unwrap().replace("/nowhere/weir.sock", other.to_str().unwrap());
    fs::write(&file, &right).unwrap();
    let mut main = Running::start(dir);

    fs::write(&file, format!("{right}\nmemroy-budget = 1\n[limits.small]\nstack = '1 B'\n[[extension]]\n"))
        .unwrap();
    let with_file = |command: &str| {
        let mut command = main.command(&[command, "--config", "weir.toml"]);
        done(command.env("WEIR_LIMITS_MEDIUM_MEMORY", "much")).good()
    };
    with_file("ps");
    with_file("shutdown");
    assert_eq!(main.wait().0.code(), Some(0));
}

#[test]
fn extensions_are_started_and_stopped_one_by_one() {
    let main = Running::with(PUPPETS);
    let state = |id: &str| main.json(&["status", "--json", id])["state"].clone();
    assert_eq!(state("spare"), "loaded");
    assert_eq!(main.weir(&["call", "spare@1", "run"]).code, 8);
    assert_eq!(main.weir(&["start", "spare"]).good(), "`spare` is ready\n");
    assert_eq!(main.weir(&["call", "spare@1", "run", "--raw", "own-name"]).good(), "spare");
    assert_eq!(main.weir(&["stop", "spare"]).good(), "`spare` is stopped\n");
    assert_eq!(state("spare"), "stopped");
    assert_eq!(main.json(&["start", "--json", "spare"])["restarts"], 1);

    let failed = main.weir(&["start", "absent"]);
    assert_eq!(failed.code, 8);
    assert!(failed.stderr.starts_with("error: `absent` did not start: "), "{failed:?}");
}

#[test]
fn main_takes_a_worker_thread_and_one_for_deadlines_beside_its_own_and_the_one_of_the_log() {
    let main = Running::with(PUPPETS);
    let tasks = fs::read_dir(format!("/proc/{}/task", main.pid())).unwrap();
    let mut names: Vec<_> = tasks
        .map(|task| fs::read_to_string(task.unwrap().path().join("comm")).unwrap().trim().to_owned())
        .filter(|name| name != "weir-blocking")
        .collect();
    names.sort();
    assert_eq!(names, ["weir", "weir-deadlines", "weir-log", "weir-main"]);
}

#[test]
fn the_log_is_json_where_asked() {
    let dir = configured("");
    let mut run = weir(dir.path());
    let mut child =
        run.args(["run", "--log-format", "json", "weir.toml"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut log, &mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["level"], "INFO");
    assert!(line["message"].as_str().unwrap().starts_with("the control socket is"), "{line}");
}

#[test]
fn what_an_extension_saves_with_one_that_it_wants_outlives_every_stop_of_both() {
    let telemetry = r#"
        data-dir = "data"

        [store.storage]

        [[extension]]
        id = "telemetry"
        path = "telemetry.wasm"
        fulfills = ["telemetry@1"]
        wants = ["local.storage@1"]
        subscribes = ["told.>"]
        config.topics = "told.>"

        [[extension]]
        id = "storage"
        path = "storage.wasm"
        fulfills = ["local.storage@1"]
        grants.stores = ["storage"]
        "#;
    let mut dir = configured(telemetry);
    for round in 0..3 {
        let main = Running::start(dir);
        let count = || {
            let snapshot = main.json(&["call", "telemetry@1", "snapshot", "{}"]);
            snapshot["topics"][0]["count"].as_u64().unwrap_or_default()
        };
        assert_eq!(count(), 5 * round);
        let logs = main.weir(&["logs"]).good();
        assert!(!logs.contains("earlier counts are not there yet"), "{logs}");
        for _ in 0..5 {
            main.weir(&["publish", "told.you", "1"]).good();
        }
        until("all are counted", || (count() == 5 * (round + 1)).then_some(()));
        if round == 1 {
            // Both at once, by a reload.
            let file = main.path().join("weir.toml");
            let all = fs::read_to_string(&file).unwrap();
            fs::write(&file, all.split("[[extension]]").next().unwrap()).unwrap();
            main.weir(&["reload"]).good();
            fs::write(&file, all).unwrap();
            main.weir(&["reload"]).good();
            assert_eq!(count(), 10);
        }
        main.weir(&["shutdown"]).good();
        dir = main.into_dir();
    }
}
