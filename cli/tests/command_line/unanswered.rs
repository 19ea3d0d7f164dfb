//! Commands to a Main that does not answer or is full.

use std::{io::Write, os::unix::net::UnixStream, path::Path, process::Stdio};

use rustix::process::Signal;

use super::support::{PUPPET, Running, done, weir};

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
