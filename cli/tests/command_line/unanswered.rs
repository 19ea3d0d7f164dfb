//! Commands to a Main that does not answer or is full.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    process::Stdio,
};

use rustix::process::Signal;

use super::support::{PUPPET, PUPPETS, Running, done, let_go, slow, until, weir};

#[test]
fn every_command_ends_where_main_is_stopped() {
    let main = Running::with(PUPPET);
    main.signal(Signal::STOP);
    let commands: [&[&str]; 9] = [
        &["call", "puppet@1", "run", "--raw", "echo", "--timeout", "1s"],
        &["call", "puppet@1", "run", "--raw", "echo"],
        &["ps"],
        &["publish", "told.you"],
        &["queues", "put", "none"],
        &["logs", "-f"],
        &["restart", "puppet"],
        &["reload"],
        &["shutdown"],
    ];
    // In parallel: each waits for its own timeout.
    let began = commands.map(|args| main.command(args).stderr(Stdio::piped()).spawn().unwrap());
    for (child, args) in began.into_iter().zip(commands) {
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(6), "{args:?}: {said}");
        assert!(said.starts_with("error: Main did not answer within "), "{args:?}: {said}");
        let is_look = matches!(args[0], "ps" | "logs");
        let says_then = said.ends_with("; the command is carried out only if Main has begun it already\n");
        assert_eq!(says_then, !is_look, "{args:?}: {said}");
    }
    main.signal(Signal::CONT);
    main.weir(&["ps"]).good();
}

#[test]
fn a_main_with_all_connections_in_use_is_busy_and_not_out_of_reach() {
    let main = Running::with(PUPPET);
    // Main waits a minute for the missing bodies.
    let taken: Vec<_> = (0..128)
        .map(|_| {
            let mut stream = UnixStream::connect(main.socket()).unwrap();
            stream
                .write_all(b"POST /v1/publish/a HTTP/1.1\r\nhost: weir\r\ncontent-length: 1\r\n\r\n")
                .unwrap();
            stream
        })
        .collect();
    let refused = main.weir(&["ps"]);
    assert_eq!(refused.code, 8, "{refused:?}");
    assert_eq!(refused.stderr, "error: Main is busy: all of its 128 connections are in use\n");
    let (head, body) = main.http("GET /v1/version HTTP/1.1\r\nhost: weir\r\nconnection: close\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
    assert!(body.contains(r#""code":"busy""#), "{body}");

    drop(taken);
    main.weir(&["ps"]).good();
    assert_eq!(main.weir(&["ps", "--socket", "nowhere"]).code, 3);
}

#[test]
fn a_path_that_no_socket_can_have_is_said_in_words() {
    let path = "x".repeat(108);
    let refused = done(weir(Path::new(".")).args(["ps", "--socket", &path]));
    let expected = format!("error: `{path}` is not the path of a socket: it must have 1 to 107 bytes\n");
    assert_eq!((refused.code, refused.stderr), (2, expected));
}

#[test]
fn a_command_whose_asker_has_gone_before_it_began_is_not_carried_out() {
    let mut main = Running::with(&format!("{PUPPETS}\n[queue.jobs]\n"));
    let commands = [
        "POST /v1/extensions/spare/start",
        "POST /v1/extensions/puppet/stop",
        "POST /v1/extensions/puppet/restart",
        "POST /v1/extensions/puppet/reload",
        "PUT /v1/extensions/new",
        "DELETE /v1/extensions/puppet",
        "POST /v1/reload",
        "POST /v1/peers/sessions/1/end",
        "POST /v1/queues/jobs/jobs",
        "POST /v1/queues/jobs/requeue",
        "POST /v1/publish/told.you",
        "POST /v1/call/puppet@1/run",
        "PUT /v1/stores/none/value?owner=puppet&key=a",
        "DELETE /v1/stores/none/value?owner=puppet&key=a",
        "POST /v1/shutdown",
    ];
    main.signal(Signal::STOP);
    for command in commands {
        let mut stream = UnixStream::connect(main.socket()).unwrap();
        let request = format!("{command} HTTP/1.1\r\nhost: weir\r\ncontent-length: 4\r\n\r\ntrap");
        stream.write_all(request.as_bytes()).unwrap();
    }
    // The asker of this one waits.
    let mut patient = UnixStream::connect(main.socket()).unwrap();
    patient.write_all(b"POST /v1/extensions/absent/start HTTP/1.1\r\nhost: weir\r\n\r\n").unwrap();
    main.signal(Signal::CONT);
    let mut said: Vec<String> = commands
        .iter()
        .map(|_| main.until("not carried out, because its asker had gone before: "))
        .map(|line| line.split_once("before: ").unwrap().1.split_once(" by=").unwrap().0.to_owned())
        .collect();
    let mut expected = commands.map(str::to_owned);
    said.sort();
    expected.sort();
    assert_eq!(said, expected);

    let status = |id: &str| main.json(&["status", "--json", id]);
    let (puppet, spare) = (status("puppet"), status("spare"));
    assert_eq!(
        (&puppet["state"], &puppet["restarts"], &puppet["received"]),
        (&"ready".into(), &0.into(), &0.into())
    );
    assert_eq!(spare["state"], "loaded");
    assert_eq!(main.json(&["queues", "--json"])["queues"][0]["waiting"], 0);
    let mut answer = [0; 12];
    patient.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 409");
}

#[test]
fn an_extension_is_put_and_removed_while_main_runs() {
    let main = Running::with(&format!("[limits.tiny]\ninherits = \"min\"\n{PUPPET}"));
    let send = |method: &str, id: &str, body: &str| {
        let length = body.len();
        let head = format!("{method} /v1/extensions/{id} HTTP/1.1\r\nhost: weir\r\nconnection: close\r\n");
        let (head, body) = main.http(&format!("{head}content-length: {length}\r\n\r\n{body}"));
        (head.split(' ').nth(1).unwrap().parse::<u16>().unwrap(), body)
    };
    let table = |id: &str, more: &str| {
        let own = PUPPET.replace("\"puppet\"", &format!("\"{id}\"")).replace("puppet@1", &format!("{id}@1"));
        format!("{own}config.contract = \"{id}@1\"\n{more}")
    };
    let (status, answer) = send("PUT", "new", &table("new", "class = \"tiny\"\n"));
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains(r#""state":"ready""#) && answer.contains(r#""class":"tiny""#), "{answer}");
    let (status, answer) = send("PUT", "new", &table("new", "restart = { policy = \"never\" }\n"));
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains(r#""class":"medium""#), "{answer}");

    let refused = [
        (send("PUT", "other", &table("new", "")), 400, "the path says `other`, and the body `new`"),
        (send("PUT", "new", "[[extension]]\nid = \"new\"\npth = \"x\"\n"), 422, "stanza:3:1"),
        (send("PUT", "new", "[main]\n"), 422, "main"),
        (send("PUT", "new", ""), 422, "a stanza has one extension"),
        (send("PUT", "new", &"#".repeat(65_537)), 413, "65536"),
        (send("PUT", "new", &table("new", "wants = [\"x@1\", \"x@1\"]\n")), 422, "x@1"),
        (send("DELETE", "none", ""), 404, "none"),
    ];
    for ((status, answer), expected, text) in refused {
        assert!(status == expected && answer.contains(text), "{status} {answer}");
    }
    assert_eq!(send("DELETE", "new", ""), (200, "{}".to_owned()));
    let left = main.json(&["ps", "--json"]);
    assert_eq!(left["extensions"].as_array().unwrap().len(), 1, "{left}");
}

#[test]
fn a_command_that_began_goes_on_without_its_asker() {
    let main = Running::with(&(PUPPET.to_owned() + &slow("stop")));
    let mut stop = main.command(&["stop", "slow"]).spawn().unwrap();
    let state = || main.json(&["status", "--json", "slow"])["state"].clone();
    until("the stop begins", || (state() == "draining").then_some(()));
    stop.kill().unwrap();
    stop.wait().unwrap();
    let_go(&main);
    until("the stop ends", || (state() == "stopped").then_some(()));
}
