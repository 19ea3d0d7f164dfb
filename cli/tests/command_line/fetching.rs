//! Requests by HTTP that extensions and hooks send to servers that answer badly.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use super::support::{Running, configured, done, until, weir};

/// A server that does this with each connection, and tells of its end.
fn server(serve: fn(TcpStream)) -> (String, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (ended, ends) = channel();
    // It ends with the process of the test.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let ended = ended.clone();
            thread::spawn(move || {
                serve(stream.unwrap());
                let _told = ended.send(());
            });
        }
    });
    (url, ends)
}

fn take_request(stream: &mut TcpStream) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
}

/// Sends a byte again and again, well within each time between two parts.
fn drip(mut stream: TcpStream) {
    take_request(&mut stream);
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n").unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    // Nothing comes, so each read is a pause.
    while stream.write_all(b"x").is_ok() && !matches!(stream.read(&mut [0]), Ok(0)) {}
}

fn cut_off(mut stream: TcpStream) {
    take_request(&mut stream);
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabc").unwrap();
}

#[test]
fn a_server_that_drips_holds_no_extension_longer_than_its_total_timeout() {
    let (url, ends) = server(drip);
    let mut main = Running::start(configured(&format!(
        r#"
        [[extension]]
        id = "fetcher"
        path = "fetcher.wasm"
        fulfills = ["fetcher@1"]
        grants.http = [{{ to = "{url}" }}]
        limits.http = {{ total-timeout = "500ms" }}
        "#
    )));
    let told = |command: &str| {
        main.weir(&["call", "--timeout", "1h", "fetcher@1", "run", "--raw", &format!("{command} {url}/")])
    };
    let used = || {
        let limits = main.json(&["limits", "--json", "fetcher"])["extensions"][0].clone();
        let all = limits["limits"].as_array().unwrap();
        let of = |key: &str| all.iter().find(|limit| limit["key"] == key).unwrap().clone();
        (of("http.in-flight")["used"].as_u64(), limits["http-timed-out"].as_u64(), of("http.total-timeout"))
    };
    let read = told("size");
    assert_eq!(read.code, 7, "{read:?}");
    assert!(read.stderr.contains("HttpResponseTimeout"), "{read:?}");
    ends.recv().unwrap();
    let (in_flight, ended, limit) = used();
    assert_eq!((in_flight, ended, &limit["text"]), (Some(0), Some(1), &"500ms".into()));

    // Of these nobody reads anything.
    let hold = main.weir(&["call", "fetcher@1", "run", "--raw", &format!("hold {url}/ 2")]);
    assert_eq!(hold.good(), "2");
    until("they are ended", || (used().1 == Some(3)).then_some(()));
    assert_eq!(used().0, Some(0));
    for _ in 0..2 {
        ends.recv().unwrap();
    }
    let limits = main.weir(&["limits", "fetcher"]).good();
    assert!(limits.contains(", 3 ended"), "{limits}");
    let server = url.strip_prefix("http://").unwrap();
    let line = main.until("was ended");
    assert!(line.contains(&format!("an HTTP request to `{server}` was ended: it took longer")), "{line}");
}

#[test]
fn an_answer_that_is_cut_off_says_so_at_each_read_and_in_its_trailers() {
    let (url, _) = server(cut_off);
    let dir = tempfile::tempdir().unwrap();
    let hooks = dir.path().join("hooks.d");
    fs::create_dir(&hooks).unwrap();
    fs::copy(test_guests::path("reader"), hooks.join("10-reader.wasm")).unwrap();
    let config = format!("[hooks.q]\ndir = \"hooks.d\"\ngrants.http = [{{ to = \"{url}\" }}]\n");
    fs::write(dir.path().join("weir.toml"), config).unwrap();
    for how in ["poll", "blocking-read", "splice"] {
        let report = run(dir.path(), &url, how);
        let error = "ErrorCode::HttpResponseIncomplete";
        let said = format!("    3 bytes, then {error}\n    again {error}\n    trailers {error}\n");
        assert!(report.contains(&said), "{how}: {report}");
    }
}

fn run(dir: &Path, url: &str, how: &str) -> String {
    let (url, how) = (format!("URL={url}/"), format!("HOW={how}"));
    let args = ["hooks", "run", "--config", "weir.toml", "q", "--param", &url, "--param", &how];
    done(weir(dir).args(args)).good()
}
