//! Extensions that serve HTTP, behind the gateway.

use std::time::{Duration, Instant};

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::sleep,
};
use weir_host::{control::ExtensionState, limits::LimitValue, logs::Level};

use crate::support::{PATIENCE, Stage, bearer, becomes, request, soon};

/// A Main with the guest `server` at `/shop`, open to anybody. `http` is added to its table `serves-http`, and `more` to
/// the table of the extension.
async fn stage(http: &str, more: &str) -> Stage {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(test_guests::path("server"), dir.path().join("server.wasm")).unwrap();
    let text = shop(http, more);
    Stage::in_dir(dir, "", &text).await
}

fn shop(http: &str, more: &str) -> String {
    let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache");
    format!(
        "# main cache-dir = '{cache}'\n[[extension]]\nid = 'shop'\npath = 'server.wasm'\nwants = ['echo@1']\n\
         serves-http.path = '/shop/'\nserves-http.open = true\n{http}\n{more}\n"
    )
}

/// An answer in full, with its chunks put together.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
    /// Whether all of it came.
    is_whole: bool,
}

impl Answer {
    pub(crate) fn of(input: &[u8]) -> Self {
        let at = input.windows(4).position(|it| it == b"\r\n\r\n").unwrap_or_else(|| {
            panic!("no head: {:?}", String::from_utf8_lossy(input));
        });
        let (head, mut rest) = (String::from_utf8_lossy(&input[..at]).to_ascii_lowercase(), &input[at + 4..]);
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let (mut body, mut is_whole) = (Vec::new(), false);
        if let Some(length) = length {
            body.extend_from_slice(rest);
            is_whole = body.len() == length.parse::<usize>().unwrap();
        } else {
            while let Some(end) = rest.windows(2).position(|it| it == b"\r\n") {
                let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
                is_whole = size == 0;
                let Some(chunk) = rest.get(end + 2..end + 2 + size) else { break };
                body.extend_from_slice(chunk);
                rest = rest.get(end + 4 + size..).unwrap_or_default();
            }
        }
        Self { status, head, body: String::from_utf8(body).unwrap(), is_whole }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

pub(crate) trait Asks {
    async fn send(&self, text: &str) -> UnixStream;

    async fn ask(&self, method: &str, path: &str, headers: &[(&str, String)], body: &str) -> Answer;

    async fn get(&self, path: &str) -> (u16, String) {
        let answer = self.ask("GET", path, &[], "").await;
        assert!(answer.is_whole, "{answer:?}");
        (answer.status, answer.body)
    }

    async fn raw(&self, text: &str) -> Answer;
}

impl Asks for Stage {
    async fn send(&self, text: &str) -> UnixStream {
        let mut stream = self.connect().await;
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    async fn ask(&self, method: &str, path: &str, headers: &[(&str, String)], body: &str) -> Answer {
        let headers = [headers, &[("Connection", "close".to_owned())]].concat();
        self.raw(&request(method, path, &headers, body)).await
    }

    async fn raw(&self, text: &str) -> Answer {
        let mut stream = self.connect().await;
        let (mut reads, mut writes) = stream.split();
        let mut input = Vec::new();
        let write = async {
            // The server may answer before it has read all.
            let _broken = writes.write_all(text.as_bytes()).await;
        };
        let (_broken, ()) = soon(async { tokio::join!(reads.read_to_end(&mut input), write) }).await;
        Answer::of(&input)
    }
}

#[tokio::test]
async fn a_server_answers_below_its_path_and_gets_what_a_client_sends() {
    let stage = stage("", "").await;
    assert_eq!(stage.get("/shop").await, (200, "hello".to_owned()));
    assert_eq!(stage.get("/shop/a/uri?b=c").await, (200, "GET http://localhost/shop/a/uri?b=c".to_owned()));
    let long = "0123456789".repeat(100_000);
    let echoed = stage.ask("POST", "/shop/echo", &[], &long).await;
    assert_eq!((echoed.status, echoed.is_whole, echoed.body == long), (200, true, true));
    assert_eq!(stage.ask("PURGE", "/shop/uri", &[], "").await.body, "PURGE http://localhost/shop/uri");
    for path in ["/shop/echo", "/shop/stream?1000"] {
        let head = format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let answer = stage.raw(&head).await;
        assert_eq!((answer.status, answer.body.as_str()), (200, ""), "{path}");
    }
    for (path, status) in [
        ("/", 404),
        ("/shops", 404),
        ("/v1/peers", 404),
        ("/shop/status?404", 404),
        ("/shop/status?503", 503),
    ] {
        assert_eq!(stage.ask("GET", path, &[], "").await.status, status, "{path}");
    }
    let status = stage.main.control().status("shop").unwrap();
    assert_eq!((status.kind(), status.state, &status.failures), ("http", ExtensionState::Ready, &vec![]));
    let answers = status.http.unwrap();
    let classes = answers.answers.classes().map(|(_, count)| count);
    assert_eq!((answers.path.as_str(), classes), ("/shop", [6, 0, 1, 1]));
}

#[tokio::test]
async fn a_connection_takes_one_request_after_the_other() {
    let stage = stage("", "").await;
    let mut stream = stage.connect().await;
    for number in 0..20 {
        let body = format!("number {number:02}");
        stream.write_all(request("POST", "/shop/echo", &[], &body).as_bytes()).await.unwrap();
        let mut input = BytesMut::new();
        while !input.windows(body.len()).any(|it| it == body.as_bytes()) {
            assert!(soon(stream.read_buf(&mut input)).await.unwrap() > 0, "{input:?}");
        }
        // The end of a chunked body.
        if !input.windows(5).any(|it| it == b"0\r\n\r\n") && input.windows(8).any(|it| it == b"chunked\r") {
            soon(stream.read_buf(&mut input)).await.unwrap();
        }
    }
}

#[tokio::test]
async fn each_request_has_a_new_instance_unless_the_operator_says_how_many_one_serves() {
    let fresh = stage("", "").await;
    for _ in 0..3 {
        assert_eq!(fresh.get("/shop/served").await.1, "1");
    }
    let warm = stage("serves-http.requests-per-instance = 3\nserves-http.at-once = 1", "").await;
    let mut served = Vec::new();
    for _ in 0..7 {
        served.push(warm.get("/shop/served").await.1);
    }
    assert_eq!(served, ["1", "2", "3", "1", "2", "3", "1"]);
    // An instance that failed is not used again.
    assert_eq!(warm.get("/shop/panic").await.0, 500);
    assert_eq!(warm.get("/shop/served").await.1, "1");
}

#[tokio::test]
async fn a_failure_costs_its_request_and_is_on_record() {
    let stage = stage("", "limits.fuel-per-message = 20_000_000\nlimits.memory = '8 MiB'").await;
    let failures = || stage.main.control().status("shop").unwrap().failures;
    for (path, status, cause) in [
        ("/shop/spin", 500, "`fuel-per-message` of 20000000 used up"),
        ("/shop/panic", 500, "trapped: wasm `unreachable` instruction executed"),
        ("/shop/memory", 500, "trapped: wasm `unreachable` instruction executed"),
    ] {
        let before = failures().len();
        let answer = stage.ask("GET", path, &[], "").await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert!(!answer.body.contains("unreachable"), "{answer:?}");
        let failure = failures().last().cloned().unwrap();
        assert_eq!((failures().len(), failure.cause.as_str()), (before + 1, cause), "{path}");
        let handling = failure.handling.unwrap();
        assert_eq!((handling.sender.as_str(), handling.operation), ("main", format!("GET {path}")));
        assert_eq!((failure.in_hand.len(), failure.then), (1, ExtensionState::Ready));
        assert!(failure.hash.is_some() && !failure.trace.is_empty());
    }
    let failures_of_memory = failures().last().unwrap().limit.clone().unwrap();
    assert_eq!(failures_of_memory.name.to_string(), "memory");
    for path in ["/shop/fails", "/shop/exit"] {
        assert_eq!(stage.get(path).await.0, 502, "{path}");
    }
    // A body that is cut off does not look whole.
    for path in ["/shop/half", "/shop/half-exit"] {
        let half = stage.ask("GET", path, &[], "").await;
        assert_eq!((half.status, half.is_whole), (200, false), "{path}");
    }
    let status = stage.main.control().status("shop").unwrap();
    assert_eq!((status.state, status.restarts), (ExtensionState::Ready, 0));
    assert_eq!(stage.get("/shop").await.0, 200);
}

#[tokio::test]
async fn a_server_that_does_not_answer_in_time_is_given_up() {
    let stage = stage("", "limits.request-timeout = '300ms'").await;
    assert_eq!(stage.get("/shop/never").await.0, 504);
    nothing_runs(&stage).await;
    assert_eq!(stage.get("/shop").await.0, 200);
    // Of a stream, only the beginning has to be there by then.
    assert_eq!(stage.get("/shop/late-call?second").await, (200, "first second".to_owned()));
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_work() {
    let stage = stage("", "limits.request-timeout = '1h'").await;
    for path in ["/shop/never", "/shop/endless"] {
        let mut stream = stage.send(&request("GET", path, &[], "")).await;
        if path.ends_with("endless") {
            let mut piece = [0; 1 << 16];
            soon(stream.read_exact(&mut piece)).await.unwrap();
        }
        has_in_hand(&stage, 1).await;
        drop(stream);
        nothing_runs(&stage).await;
    }
    // Nor does one that leaves in the middle of its own body hold anything.
    let head = "POST /shop/size HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nonly this";
    let stream = stage.send(head).await;
    has_in_hand(&stage, 1).await;
    drop(stream);
    nothing_runs(&stage).await;
    assert!(stage.main.control().status("shop").unwrap().failures.is_empty());
}

/// Waits until the server has so many requests in hand.
async fn has_in_hand(stage: &Stage, expected: u64) {
    let began = Instant::now();
    loop {
        let report = stage.main.control().limits().await;
        let shop = report.extensions.iter().find(|it| it.id.as_str() == "shop").unwrap();
        let limit = shop.limits.iter().find(|limit| limit.key == "in-flight").unwrap();
        let used = match limit.used {
            Some(LimitValue::Count(used)) => used,
            _ => 0,
        };
        if used == expected {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{used} in hand");
        sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) async fn nothing_runs(stage: &Stage) {
    has_in_hand(stage, 0).await;
    becomes(|| stage.main.client().waiters() == 0, || "somebody waits".to_owned()).await;
    let memory = || stage.main.control().status("shop").unwrap().memory;
    becomes(|| memory() == 0, || format!("{} bytes", memory())).await;
}

#[tokio::test]
async fn what_runs_at_once_is_bounded_and_what_waits_too() {
    let stage =
        stage("serves-http.at-once = 2", "limits.request-timeout = '1h'\nlimits.inbox.messages = 1").await;
    let never = || stage.send("GET /shop/never HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut held = Vec::new();
    for number in 1..=2 {
        held.push(never().await);
        has_in_hand(&stage, number).await;
    }
    let waiting = never().await;
    let status = || stage.main.control().status("shop").unwrap();
    becomes(|| status().inbox_messages == 1, || format!("{} wait", status().inbox_messages)).await;
    let refused = stage.ask("GET", "/shop", &[], "").await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{refused:?}");
    drop((held, waiting));
    nothing_runs(&stage).await;
    assert_eq!(stage.get("/shop").await.0, 200);
}

#[tokio::test]
async fn only_named_peers_reach_a_server_that_is_not_open() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(test_guests::path("server"), dir.path().join("server.wasm")).unwrap();
    let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache");
    let text = format!(
        "# main cache-dir = '{cache}'\n[[extension]]\nid = 'shop'\npath = 'server.wasm'\nserves-http.path = '/'\n\
         serves-http.peers = ['app:b', 'app:a']\nserves-http.methods = ['GET', 'PUT']\n\
         [peer.'app:a']\ntokens = ['HASH']\n[peer.'app:b']\ntokens = ['HASH']\n[peer.'app:c']\ntokens = ['HASH']\n"
    );
    let stage = Stage::in_dir(dir, "", &text).await;
    let spoofed = ("Weir-Peer", "app:b".to_owned());
    for headers in [vec![], vec![spoofed.clone()], vec![bearer("app:c"), spoofed.clone()]] {
        let refused = stage.ask("GET", "/headers", &headers, "").await;
        assert_eq!(
            (refused.status, refused.header("www-authenticate")),
            (401, Some("bearer")),
            "{refused:?}"
        );
    }
    let answer = stage.ask("GET", "/headers", &[bearer("app:a"), spoofed], "").await;
    let names: Vec<_> = answer.body.lines().filter(|line| line.starts_with("weir-peer")).collect();
    assert_eq!((answer.status, names), (200, vec!["weir-peer: app:a"]));
    assert!(!answer.body.contains("authorization"), "{answer:?}");
    let status = stage.main.peers().list();
    assert!(status.iter().all(|peer| peer.name.as_str() != "app:a" || peer.denied == 0), "{status:?}");
    // What is the gateway's stays so.
    for path in ["/v1", "/v1/peers/app:a/nothing"] {
        assert_eq!(stage.ask("GET", path, &[bearer("app:a")], "").await.status, 404, "{path}");
    }
    let other = stage.ask("POST", "/", &[bearer("app:a")], "").await;
    assert_eq!((other.status, other.header("allow")), (405, Some("get, put")), "{other:?}");
    becomes(|| stage.sessions() == 0, || format!("{} sessions", stage.sessions())).await;
}

#[tokio::test]
async fn bodies_come_and_go_piece_by_piece() {
    let small = stage("serves-http.max-body = '10 B'", "").await;
    let stage = stage(
        "serves-http.max-body = '64 MiB'",
        "limits.memory = '8 MiB'\nlimits.fuel-per-message = 5_000_000_000",
    )
    .await;
    // 64 MiB, of which the guest never has more than a piece.
    let streamed = stage.ask("GET", "/shop/stream?1024", &[], "").await;
    assert_eq!((streamed.is_whole, streamed.body.len()), (true, 64 << 20));
    let large = "x".repeat(32 << 20);
    let answer = stage.ask("POST", "/shop/echo", &[], &large).await;
    assert_eq!((answer.is_whole, answer.body.len()), (true, large.len()));
    // More than is allowed: at once where the client says so, and else when it comes.
    let told =
        format!("POST /shop/size HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", (64 << 20) + 1);
    let mut refused = stage.send(&told).await;
    let mut head = [0; 12];
    soon(refused.read_exact(&mut head)).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 413");
    let chunked = "POST /shop/size HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nb\r\n01234567890\r\n0\r\n\r\n";
    let told = small.raw(chunked).await;
    assert!(told.body.contains("HttpRequestBodySize"), "{told:?}");
}

#[tokio::test]
async fn what_proxies_and_servers_could_read_in_two_ways_is_refused() {
    let stage = stage("", "").await;
    for (text, status) in [
        ("GET /shop HTTP/1.1\r\nHost: localhost\r\nHost: other\r\nConnection: close\r\n\r\n", 400),
        ("GET /shop HTTP/1.1\r\nConnection: close\r\n\r\n", 400),
        ("GET http://other/shop HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 400),
        ("GET http://localhost/shop HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 200),
        ("GET /shop HTTP/1.1\r\nHost : localhost\r\nConnection: close\r\n\r\n", 400),
        ("GET /shop HTTP/1.1\r\nHost: localhost\r\n X: folded\r\nConnection: close\r\n\r\n", 400),
        (
            "POST /shop/echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            400,
        ),
        (
            "POST /shop/echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked, identity\r\n\r\nab",
            400,
        ),
        ("POST /shop/echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400),
    ] {
        assert_eq!(stage.raw(text).await.status, status, "{text}");
    }
    let many = format!("GET /shop HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "a: b\r\n".repeat(100_000));
    let mut stream = stage.connect().await;
    let _cut_off = stream.write_all(many.as_bytes()).await;
    let mut input = Vec::new();
    let _broken = soon(stream.read_to_end(&mut input)).await;
    assert!(input.is_empty() || Answer::of(&input).status == 431, "{:?}", String::from_utf8_lossy(&input));
    let connection = "GET /shop/headers HTTP/1.1\r\nHost: localhost\r\nConnection: close, X-Hop\r\nX-Hop: a\r\nTE: trailers\r\n\
         Upgrade: x\r\nKeep-Alive: 1\r\nX-Kept: b\r\n\r\n";
    assert_eq!(stage.raw(connection).await.body, "x-kept: b\n");
}

#[tokio::test]
async fn a_handler_has_what_extensions_have_but_for_an_inbox() {
    let stage = stage("", "config = { greeting = 'good day' }").await;
    for (path, said) in [
        ("/shop/call?x", "x"),
        ("/shop/config?greeting", "good day"),
        ("/shop/name", "shop"),
        ("/shop/log?careful", ""),
        ("/shop/wasi-log?empty", ""),
    ] {
        assert_eq!(stage.get(path).await, (200, said.to_owned()), "{path}");
    }
    // Replies that nobody waits for hold nothing up.
    for _ in 0..5 {
        assert_eq!(stage.get("/shop/send?x").await.1, "sent");
    }
    let lines = stage.main.control().logs();
    assert!(lines.iter().any(|line| line.extension.as_ref() == "shop" && line.message == "careful"));
    let empty = lines.iter().find(|line| line.message == "empty").unwrap();
    let (level, fields) = (empty.level, format!("{:?}", empty.fields));
    assert!(level == Level::Error && fields.contains("context") && fields.contains("till"), "{empty:?}");
    assert!(lines.iter().any(|line| line.level == Level::Debug && line.message.starts_with("xxx")));
    // Its contract is for the gateway alone.
    let direct = stage.main.client().call("http.shop@1", "get", "12345678").await;
    assert!(format!("{direct:?}").contains("by HTTP alone"), "{direct:?}");
}

#[tokio::test]
async fn a_reload_lets_what_runs_end_and_another_path_takes_effect() {
    let stage = stage("", "").await;
    let mut stream =
        stage.send(&request("GET", "/shop/stream?100", &[("Connection", "close".to_owned())], "")).await;
    let mut first = [0; 1000];
    soon(stream.read_exact(&mut first)).await.unwrap();
    let reading = tokio::spawn(async move {
        let mut rest = Vec::new();
        sleep(Duration::from_millis(100)).await;
        soon(stream.read_to_end(&mut rest)).await.unwrap();
        rest.len()
    });
    stage
        .reload(&shop("serves-http.path = '/other'", "").replacen("serves-http.path = '/shop/'\n", "", 1))
        .await;
    assert!(reading.await.unwrap() > 6_500_000 - 1000);
    assert_eq!(stage.get("/other").await, (200, "hello".to_owned()));
    assert_eq!(stage.ask("GET", "/shop", &[], "").await.status, 404);
    stage.reload("").await;
    assert_eq!(stage.ask("GET", "/other", &[], "").await.status, 404);
}

#[tokio::test]
async fn the_longest_path_wins() {
    let second = "[[extension]]\nid = 'inner'\npath = 'server.wasm'\nserves-http.path = '/shop/inner'\nserves-http.open = true\n";
    let stage = stage("", second).await;
    for (path, name) in
        [("/shop/name", "shop"), ("/shop/inner/name", "inner"), ("/shop/innermost/name", "shop")]
    {
        assert_eq!(stage.get(path).await.1, name, "{path}");
    }
}

#[tokio::test]
async fn an_access_log_has_a_line_for_each_request() {
    let stage = stage("serves-http.access-log = true", "").await;
    stage.get("/shop/a").await;
    stage.get("/shop/panic").await;
    let lines: Vec<_> = stage.main.control().logs().iter().map(|line| line.message.clone()).collect();
    assert!(lines.iter().any(|line| line.starts_with("GET /shop/a 200 in ")), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("GET /shop/panic 500 in ")), "{lines:?}");
}
