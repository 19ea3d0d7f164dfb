//! Answers by HTTP as hooks read them by raw `wasi:http`: a failed body stays failed, whatever reads it.

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinHandle,
};
use weir_host::{
    Main,
    config::HttpGrant,
    hooks::{HookCall, HookDir},
};

use super::support::*;

const WAYS: [&str; 6] = ["poll", "blocking-read", "skip", "blocking-skip", "splice", "blocking-splice"];

const INCOMPLETE: &str = "ErrorCode::HttpResponseIncomplete";

/// Answers each path in its own way, until it is dropped.
struct Server {
    url: String,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 4096];
                let length = stream.read(&mut request).await.unwrap();
                let path = request.get(..length).unwrap().split(|byte| *byte == b' ').nth(1).unwrap();
                let answer = format!("HTTP/1.1 200 OK\r\n{}", answer(path));
                stream.write_all(answer.as_bytes()).await.unwrap();
                if path == b"/reset" {
                    stream.set_zero_linger().unwrap();
                }
            }
        });
        Self { url, task }
    }
}

fn answer(path: &[u8]) -> &'static str {
    match path {
        b"/whole" => "content-length: 3\r\n\r\nabc",
        b"/chunks" => "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx-sum: 7\r\n\r\n",
        b"/short" | b"/reset" => "content-length: 4\r\n\r\nabc",
        b"/nothing" => "content-length: 4\r\n\r\n",
        b"/in-chunk" => "transfer-encoding: chunked\r\n\r\n5\r\nabc",
        b"/after-chunk" => "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"/in-length" => "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n1",
        b"/in-trailers" => "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx-sum: 7\r\n",
        b"/bad-length" => "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n",
        _ => "content-length: 0\r\n\r\n",
    }
}

async fn read(dir: &HookDir, url: &str, how: &str) -> String {
    let call = HookCall::new().param("URL", url).param("HOW", how);
    let report = tokio::time::timeout(PATIENCE, dir.run(call)).await.unwrap().unwrap();
    assert!(report.is_success(), "{url} {how}: {report:?}");
    text(&report.runs.first().unwrap().stdout).to_owned()
}

/// Every way to read the answer to one path, and one way for the others.
fn ways(path: &str, of_all: &str) -> &'static [&'static str] {
    if path == of_all { &WAYS } else { &WAYS[..1] }
}

/// A directory with the hook that reads from the server.
fn reader(main: &Main, server: &Server, files: &TempDir) -> HookDir {
    put(files.path(), "10-reader", "reader");
    let mut config = config(files);
    config.grants.http = vec![HttpGrant::new(server.url.parse().unwrap())];
    main.hooks().open(config).unwrap()
}

#[tokio::test]
async fn a_body_that_failed_fails_again_and_its_trailers_fail_whatever_reads_it() {
    let (server, main, files) = (Server::new().await, main().await, dir(&[]));
    let dir = reader(&main, &server, &files);
    for (path, bytes, error) in [
        ("/short", 3, INCOMPLETE),
        ("/nothing", 0, INCOMPLETE),
        ("/in-chunk", 3, INCOMPLETE),
        ("/after-chunk", 3, INCOMPLETE),
        ("/in-length", 3, INCOMPLETE),
        ("/in-trailers", 3, INCOMPLETE),
        ("/bad-length", 3, "ErrorCode::HttpProtocolError"),
    ] {
        let url = format!("{}{path}", server.url);
        for how in ways(path, "/short") {
            let expected = format!("{bytes} bytes, then {error}\nagain {error}\ntrailers {error}\n");
            assert_eq!(read(&dir, &url, how).await, expected, "{path} by {how}");
        }
    }
    for path in ["/short", "/nothing"] {
        let said = read(&dir, &format!("{}{path}", server.url), "drop").await;
        assert_eq!(said, format!("0 bytes, then dropped\ntrailers {INCOMPLETE}\n"), "{path}");
    }
    let said = read(&dir, &format!("{}/short", server.url), "finish").await;
    assert_eq!(said, format!("trailers {INCOMPLETE}\n"));
    // What came before a reset may be lost with it.
    let said = read(&dir, &format!("{}/reset", server.url), "poll").await;
    assert!(said.ends_with(&format!("{INCOMPLETE}\nagain {INCOMPLETE}\ntrailers {INCOMPLETE}\n")), "{said}");
}

#[tokio::test]
async fn a_whole_body_ends_and_its_trailers_come() {
    let (server, main, files) = (Server::new().await, main().await, dir(&[]));
    let dir = reader(&main, &server, &files);
    for (path, bytes, trailers) in [("/whole", 3, "none"), ("/chunks", 3, "x-sum=7"), ("/empty", 0, "none")] {
        let url = format!("{}{path}", server.url);
        for how in ways(path, "/chunks") {
            let expected = format!("{bytes} bytes, then closed\nagain closed\ntrailers {trailers}\n");
            assert_eq!(read(&dir, &url, how).await, expected, "{path} by {how}");
        }
    }
    let url = format!("{}/chunks", server.url);
    assert_eq!(read(&dir, &url, "drop").await, "0 bytes, then dropped\ntrailers x-sum=7\n");
    assert_eq!(read(&dir, &url, "finish").await, "trailers x-sum=7\n");
}
