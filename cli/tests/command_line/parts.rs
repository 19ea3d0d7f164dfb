//! Parts of Main, as an operator sees them: what they refuse, that they are not for the operator to end, and their end.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    time::Duration,
};

use rustix::process::Signal;
use serde_json::Value;
use weir_host::config::TokenHash;

use super::support::{Running, configured, done, weir};

const TOKEN: &str = "weir_0123456789abcdef_page";

fn file() -> String {
    format!(
        "peer-socket = 'peers.sock'\n\
         [gateway]\nlisten = ['unix:gateway.sock']\nstreams.listen = ['unix:streams.sock']\n\
         origins = {{ 'app:page' = ['http://127.0.0.1:8080'] }}\n\
         [peer.'app:page']\ntokens = ['{}']\nsubscribes = ['news.>']\n",
        TokenHash::of(TOKEN)
    )
}

fn connect(main: &Running, socket: &str) -> UnixStream {
    let stream = UnixStream::connect(main.path().join(socket)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Sends what it is given, and reads to the end.
fn exchange(main: &Running, socket: &str, bytes: &[u8]) -> String {
    let mut stream = connect(main, socket);
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    // What was not read resets the connection after the answer.
    let _reset = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// An app on a WebSocket.
fn app(main: &Running) -> UnixStream {
    let mut stream = connect(main, "gateway.sock");
    let request = format!(
        "GET /v1/peers/app:page/rpc HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Authorization: Bearer {TOKEN}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    assert!(head.starts_with(b"HTTP/1.1 101"));
    stream
}

fn request(method: &str, path: &str, headers: &str) -> Vec<u8> {
    format!("{method} {path} HTTP/1.1\r\n{headers}Content-Length: 0\r\n\r\n").into_bytes()
}

#[test]
fn what_the_sockets_refuse_is_logged_counted_and_shown_without_secrets() {
    let mut main = Running::with(&file());
    let path = "/v1/peers/app:page/rpc";
    let bearer = format!("Host: localhost\r\nAuthorization: Bearer {TOKEN}\r\n");
    let ticket = format!("{path}?ticket=s3cret");
    let upgrade = "Host: localhost\r\nOrigin: http://127.0.0.1:8080\r\nConnection: Upgrade\r\n\
                   Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let json = "Content-Type: application/json\r\n";
    for (bytes, status) in [
        (request("POST", path, &format!("{bearer}{json}Origin: https://evil.example/\u{9b}2J\r\n")), 403),
        (request("GET", &ticket, upgrade), 401),
        (request("POST", path, &format!("Host: localhost\r\nAuthorization: Bearer wrong\r\n{json}")), 401),
        (request("POST", path, &format!("Host: localhost\r\n{json}")), 401),
        (request("GET", "/elsewhere", "Host: localhost\r\n"), 404),
    ] {
        let answer = exchange(&main, "gateway.sock", &bytes);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
    for line in ["app:page wrong subscribe news.a lines", "what?"] {
        assert!(exchange(&main, "streams.sock", format!("{line}\n").as_bytes()).starts_with("error "));
    }
    for _ in 0..6 {
        assert!(exchange(&main, "peers.sock", &[1, 0, 0, 0, 0xff]).contains("protocol"));
    }

    let status = main.json(&["peers", "--json"]);
    let refused = |part: &str| {
        let parts = status["parts"].as_array().unwrap();
        parts.iter().find(|known| known["name"] == part).map(|part| part["refused"].clone()).unwrap()
    };
    let gateway = refused("gateway");
    for (reason, count) in [("origin", 1), ("ticket", 1), ("proof", 3), ("not-found", 1), ("protocol", 1)] {
        assert_eq!(gateway[reason], count, "{reason}: {gateway}");
    }
    assert_eq!(refused("peer-socket")["protocol"], 6);
    let shown = main.weir(&["peers"]).good();
    assert!(shown.contains("`peer-socket` refused so far: 6 protocol\n"), "{shown}");
    let metrics = main.weir(&["metrics"]).good();
    for line in [
        "weir_part_refusals_total{part=\"gateway\",reason=\"origin\"} 1\n",
        "weir_part_refusals_total{part=\"gateway\",reason=\"ticket\"} 1\n",
        "weir_part_refusals_total{part=\"peer-socket\",reason=\"protocol\"} 6\n",
        "weir_part_up{part=\"gateway\"} 1\n",
        "weir_part_restarts_total{part=\"gateway\"} 0\n",
    ] {
        assert!(metrics.contains(line), "{line}{metrics}");
    }
    main.signal(Signal::TERM);
    let (_, log) = main.wait();
    let lines = |word: &str| log.lines().filter(|line| line.contains(word)).collect::<Vec<_>>();
    let origin = lines("reason=\"origin\"");
    let [line] = &origin[..] else { panic!("{log}") };
    assert!(line.contains("/v1/peers/app:page/rpc") && line.contains("https://evil.example/"), "{line}");
    assert_eq!(lines("reason=\"ticket\"").len(), 1, "{log}");
    assert_eq!(lines("part=\"peer-socket\"").len(), 4, "{log}");
    assert!(!log.contains("s3cret") && !log.contains(TOKEN) && !log.contains('\u{9b}'), "{log}");
}

#[test]
fn the_session_of_the_gateway_is_not_for_the_operator_to_end() {
    let main = Running::with(&file());
    let status = main.json(&["peers", "--json"]);
    let peers = status["peers"].as_array().unwrap();
    let own = peers.iter().find(|peer| peer["name"] == "gateway:events").unwrap()["sessions"][0].clone();
    assert_eq!(own["proof"], "main");
    let id = own["id"].to_string();
    let ended = main.weir(&["peers", "end", &id]);
    let refusal =
        format!("error: the session {id} belongs to `gateway:events`, a part of Main: nobody can end it\n");
    assert_eq!((ended.code, ended.stderr), (1, refusal));
    let shown = main.weir(&["peers"]).good();
    let line = shown.lines().find(|line| line.contains("gateway:events")).unwrap();
    assert_eq!(line.split_whitespace().nth(1), Some("-"), "{shown}");
    assert_eq!(main.json(&["peers", "--json"])["peers"].as_array().unwrap().len(), 2);
}

#[test]
fn a_regular_stop_is_no_error_and_shutdown_returns_when_another_main_can_start() {
    let mut dir = Some(configured(&file()));
    for round in 0..8 {
        let mut main = Running::start(dir.take().unwrap());
        // It answers no close frame, so Main waits for it.
        let _app = (round % 4 == 0).then(|| app(&main));
        main.weir(&["shutdown"]).good();
        // This Main has not been waited for.
        let mut next = Running::spawn(configured(""), {
            let mut command = weir(main.path());
            command.args(["run", "weir.toml"]);
            command
        });
        next.until("extensions are ready");
        let (status, log) = main.wait();
        assert!(status.success(), "{log}");
        assert!(!log.contains("ERROR") && !log.contains("WARN"), "{log}");
        assert_eq!(done(weir(main.path()).arg("shutdown")).good(), "");
        next.wait();
        dir = Some(main.into_dir());
    }
}

#[test]
fn an_app_that_answers_does_not_delay_the_end_of_main() {
    let mut took = Vec::new();
    // A busy machine may be late now and then, not always.
    for _ in 0..4 {
        let mut main = Running::with(&file());
        let mut app = app(&main);
        let began = std::time::Instant::now();
        main.signal(Signal::TERM);
        let mut head = [0; 2];
        app.read_exact(&mut head).unwrap();
        assert_eq!(head[0], 0x88);
        // The same code, masked with zeros. The connection stays open on this side.
        app.write_all(&[0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe9]).unwrap();
        assert!(main.wait().0.success());
        took.push(began.elapsed());
        if took.last().is_some_and(|took| *took < Duration::from_millis(400)) {
            return;
        }
    }
    panic!("{took:?}");
}

#[test]
fn parts_of_main_are_in_every_report_and_ps_shows_those_that_have_ended() {
    let main = Running::with(&file());
    let all = main.json(&["ps", "--json"]);
    let names: Vec<&Value> = all["parts"].as_array().unwrap().iter().map(|part| &part["name"]).collect();
    for part in ["control-socket", "deadlines", "gateway", "peer-socket", "services"] {
        assert!(names.iter().any(|name| *name == part), "{part}: {names:?}");
    }
    assert!(!main.weir(&["ps"]).good().contains("PART OF MAIN"));
}
