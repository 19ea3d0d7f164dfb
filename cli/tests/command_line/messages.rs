//! `weir call`, `publish` and `tail`.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
};

use super::support::{PUPPETS, Running};

const CALL: [&str; 3] = ["call", "puppet@1", "run"];

fn call(main: &Running, args: &[&str]) -> super::support::Done {
    main.weir(&[&CALL, args].concat())
}

#[test]
fn a_payload_comes_from_the_arguments_from_stdin_or_from_a_file() {
    let main = Running::with(PUPPETS);
    assert_eq!(call(&main, &["--raw", "echo {\"a\": 1}"]).good(), "{\"a\": 1}");
    assert_eq!(main.weir_with_stdin(&[&CALL[..], &["-"]].concat(), b"echo from stdin").good(), "from stdin");
    fs::write(main.path().join("payload"), "echo from a file").unwrap();
    assert_eq!(call(&main, &["@payload"]).good(), "from a file");
}

#[test]
fn every_kind_of_refusal_has_an_exit_code_of_its_own() {
    let main = Running::with(PUPPETS);
    let code = |args: &[&str]| main.weir(args).code;
    assert_eq!(code(&["call", "puppet@1", "run", "not json"]), 2);
    assert_eq!(code(&["call", "puppet@1", "nothing"]), 2);
    assert_eq!(code(&["call", "nobody@1", "run"]), 4);
    assert_eq!(code(&["status", "nobody"]), 4);
    assert_eq!(code(&["logs", "nobody"]), 4);
    let large = "x".repeat(2 * 1024 * 1024);
    assert_eq!(main.weir_with_stdin(&["call", "puppet@1", "run", "-"], large.as_bytes()).code, 5);
    assert_eq!(code(&["call", "puppet@1", "run", "--raw", "forget", "--timeout", "50ms"]), 6);
    let own = call(&main, &["--raw", "error it is \x1b[2Jtoo late"]);
    assert_eq!((own.code, own.stderr.as_str()), (7, "error: refused: it is \\u{1b}[2Jtoo late\n"));
    assert_eq!(code(&["call", "spare@1", "run"]), 8);
    assert_eq!(code(&["call", "puppet@1", "run", "--provider", "spare"]), 8);
    assert_eq!(code(&["call", "puppet@1", "run", "--raw", "trap"]), 8);
    assert_eq!(code(&["ps", "--socket", "nowhere"]), 3);
}

#[test]
fn names_that_a_url_cannot_hold_arrive_as_they_are() {
    let main = Running::with(PUPPETS);
    for operation in ["a?b", "a#b", "%2F", "..", "a&b=c", "+"] {
        let refused = main.weir(&["call", "puppet@1", operation]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.stderr.contains(&format!("`{operation}`")), "{refused:?}");
    }
    assert_eq!(main.weir(&["call", "puppet@1", ""]).code, 2);
    assert_eq!(main.weir(&["call", "../../extensions", "x"]).code, 2);
}

#[test]
fn tail_shows_what_is_published_until_main_ends() {
    let main = Running::with(PUPPETS);
    for (format, expected) in [
        (None, vec!["1 told.you from puppet {\"n\":1}", "1 told.twice from main \"two\\nlines\""]),
        (
            Some("--json"),
            vec![
                r#"{"topic":"told.you","sender":"puppet","sequence":2,"lost":0,"payload":{"n":1}}"#,
                r#"{"topic":"told.twice","sender":"main","sequence":2,"lost":0,"payload-text":"two\nlines"}"#,
            ],
        ),
    ] {
        let args: Vec<_> = ["tail", "told.>"].into_iter().chain(format).collect();
        let mut tail = main.command(&args).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines();
        // Wait for a subscriber.
        while main.json(&["publish", "--json", "told.first"])["delivered"] == 0 {}
        assert!(lines.next().unwrap().unwrap().contains("told.first"));
        call(&main, &["--raw", "publish told.you {\"n\":1}"]).good();
        let told = main.weir(&["publish", "told.twice", "two\nlines"]).good();
        assert_eq!(told, "delivered to 1 subscription\n");
        for line in expected {
            assert_eq!(lines.next().unwrap().unwrap(), line);
        }
        tail.kill().unwrap();
        tail.wait().unwrap();
        while main.json(&["publish", "--json", "told.first"])["delivered"] != 0 {}
    }
    let mut tail = main.command(&["tail", ">"]).stdout(Stdio::piped()).spawn().unwrap();
    while main.json(&["publish", "--json", "a"])["delivered"] == 0 {}
    main.weir(&["shutdown"]).good();
    assert_eq!(tail.wait().unwrap().code(), Some(0));
}

#[test]
fn an_event_can_be_for_one_extension_alone() {
    let main = Running::with(&PUPPETS.replace("publishes", "subscribes"));
    let nobody = main.weir(&["publish", "--to", "puppet", "told.you", "1"]);
    assert_eq!(nobody.code, 8, "{nobody:?}");
    call(&main, &["--raw", "subscribe told.>"]).good();
    main.weir(&["publish", "--to", "puppet", "told.you", "1"]).good();
    assert!(call(&main, &["--raw", "heard"]).good().contains("event: told.you 0 0 1"));
}

#[test]
fn an_answer_of_any_size_is_an_error_and_costs_no_other_request() {
    let main = Running::with(PUPPETS);
    let beside: Vec<_> = (0..4)
        .map(|_| main.command(&[&CALL[..], &["--raw", "echo beside"]].concat()))
        .map(|mut command| command.stdout(Stdio::piped()).spawn().unwrap())
        .collect();
    for bytes in [1_114_113, 6_000_000] {
        let large = call(&main, &["--raw", &format!("large {bytes}")]);
        let refused = format!("refused: Error::TooLarge(Size {{ bytes: {bytes}, allowed: 1048576 }})");
        assert!(large.stderr.contains(&refused), "{large:?}");
    }
    for beside in beside {
        assert_eq!(beside.wait_with_output().unwrap().stdout, b"beside");
    }
    let status = main.json(&["status", "--json", "puppet"]);
    assert!(status["failures"].is_null(), "{status}");
}
