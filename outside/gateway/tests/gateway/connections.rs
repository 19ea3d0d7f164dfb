//! Connections that never become an app, and too many of them.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream, UnixStream},
    time::{sleep, timeout},
};

use crate::{
    app::App,
    support::{Response, Stage, bearer, becomes, free_port, request, soon, upgrade},
};

const FILE: &str = "
[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1']
limits.sessions = 1000
";

const RPC: &str = "/v1/peers/app:polite/rpc";

async fn is_over(stream: &mut UnixStream) -> bool {
    let mut byte = [0];
    matches!(timeout(Duration::from_millis(200), stream.read(&mut byte)).await, Ok(Ok(0) | Err(_)))
}

#[tokio::test(flavor = "multi_thread")]
async fn of_those_without_a_proof_the_oldest_gives_way() {
    let stage = Stage::new("", FILE).await;
    let mut polite = stage.app("app:polite").await;
    let mut crowd = Vec::new();
    for number in 0..300 {
        let mut stream = stage.connect().await;
        let text = request("GET", RPC, &upgrade(), "");
        // Nothing at all, half a head, and a head without its end.
        match number % 3 {
            0 => {}
            1 => stream.write_all(&text.as_bytes()[..text.len() / 2]).await.unwrap(),
            _ => stream.write_all(&text.as_bytes()[..text.len() - 2]).await.unwrap(),
        }
        crowd.push(stream);
    }
    polite.is_served().await;
    for stream in crowd.iter_mut().take(300 - 256) {
        let mut rest = Vec::new();
        soon(stream.read_to_end(&mut rest)).await.unwrap_or_default();
    }
    let mut newest = crowd.pop().unwrap();
    assert!(!is_over(&mut newest).await);
    let mut another = stage.app("app:polite").await;
    another.is_served().await;
    assert_eq!(stage.sessions(), 1 + 1);
}

/// A connection from this address of the machine's own.
async fn from(address: &str, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(address.parse().unwrap(), 0))?;
    socket.connect(to).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_from_one_address_pushes_out_none_from_another() {
    let port = free_port();
    let _stage = Stage::new(&format!("# listen 127.0.0.1:{port}"), FILE).await;
    let to = SocketAddr::from(([127, 0, 0, 1], port));
    let mut honest = from("127.0.0.2", to).await.unwrap();
    let mut crowd = Vec::new();
    for _ in 0..300 {
        crowd.push(from("127.0.0.3", to).await.unwrap());
    }
    let mut first = crowd.swap_remove(0);
    let mut rest = Vec::new();
    soon(first.read_to_end(&mut rest)).await.unwrap_or_default();
    let newcomer = from("127.0.0.4", to).await.unwrap();
    for _ in 0..300 {
        crowd.push(from("127.0.0.3", to).await.unwrap());
    }
    // It proves its name after all of them, in two pieces.
    let mut headers = upgrade();
    headers.push(bearer("app:polite"));
    let text = request("GET", RPC, &headers, "");
    let (one, other) = text.split_at(20);
    honest.write_all(one.as_bytes()).await.unwrap();
    let mut app = App::open(newcomer, "app:polite", &[bearer("app:polite")]).await.unwrap();
    app.is_served().await;
    honest.write_all(other.as_bytes()).await.unwrap();
    assert_eq!(Response::read(&mut honest).await.unwrap().status, 101);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_does_not_come_or_drips_is_waited_for_ten_seconds() {
    let stage = Stage::new("", FILE).await;
    let (mut polite, began) = (stage.app("app:polite").await, Instant::now());
    let (mut nothing, mut drips) = (stage.connect().await, stage.connect().await);
    drips.write_all(b"GET /v1/peers/app:polite/rpc HTTP/1.1\r\nX: ").await.unwrap();
    let drip = async {
        while drips.write_all(b"x").await.is_ok() {
            sleep(Duration::from_millis(50)).await;
        }
    };
    let mut rest = Vec::new();
    let nothing = async { soon(nothing.read_to_end(&mut rest)).await };
    let (_, ()) = tokio::join!(nothing, drip);
    let took = began.elapsed();
    assert!(took > Duration::from_secs(9) && took < Duration::from_secs(14), "{took:?}");
    polite.is_served().await;
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_megabyte_of_headers_is_refused_and_so_is_what_is_no_http() {
    let stage = Stage::new("", FILE).await;
    let mut polite = stage.app("app:polite").await;
    let one_long = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    let many = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "X: y\r\n".repeat(1 << 17));
    let long_path = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(1 << 20));
    for (text, statuses) in [
        (one_long.as_bytes(), &[431][..]),
        (many.as_bytes(), &[431]),
        (long_path.as_bytes(), &[414, 431]),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00\x00\x00\x00\r\n\r\n", &[400]),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[400, 404, 505]),
        (b"GET / HTTP/9.9\r\n\r\n", &[400]),
        (b"GET / HTTP/1.1\r\nHost: a\r\n b: c\r\n\r\n", &[400]),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", &[400]),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", &[400]),
        (b"\0\0\0\0\r\n\r\n", &[400]),
    ] {
        let mut stream = stage.connect().await;
        let _refused = stream.write_all(text).await;
        match Response::read(&mut stream).await {
            Some(answer) => assert!(statuses.contains(&answer.status), "{answer:?}"),
            // The rest of it was cut off, or it is no HTTP/1.
            None => assert!(
                text.len() > 1 << 19 || text.starts_with(b"PRI"),
                "{:?}",
                String::from_utf8_lossy(text)
            ),
        }
        polite.is_served().await;
    }
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_requests_in_one_piece_the_first_is_carried_out_and_none_is_smuggled() {
    let stage = Stage::new("", FILE).await;
    let headers = [bearer("app:polite"), ("Content-Type", "application/json".to_owned())];
    let call = |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"echo@1/sender"}}"#);
    let mut stream = stage.connect().await;
    let many: String = (0..50).map(|id| request("POST", RPC, &headers, &call(id))).collect();
    stream.write_all(many.as_bytes()).await.unwrap();
    let mut all = Vec::new();
    let _reset = soon(stream.read_to_end(&mut all)).await;
    let all = String::from_utf8(all).unwrap();
    assert_eq!((all.matches("HTTP/1.1 200").count(), all.matches("\"id\":0").count()), (1, 1), "{all}");
    // Two lengths of one body: never two requests.
    let both = format!(
        "POST {RPC} HTTP/1.1\r\nHost: localhost\r\n{}: {}\r\nContent-Type: application/json\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        headers[0].0, headers[0].1
    );
    let mut stream = stage.connect().await;
    stream.write_all(both.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut all = String::new();
    soon(stream.read_to_string(&mut all)).await.unwrap();
    assert!(all.matches("HTTP/1.1").count() == 1 && !all.contains("HTTP/1.1 101"), "{all}");
    stage.sessions_become(0).await;
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_to_something_else_or_half_of_one_is_refused() {
    let stage = Stage::new("", FILE).await;
    for (name, value) in [
        ("Upgrade", Some("h2c")),
        ("Upgrade", None),
        ("Connection", Some("close")),
        ("Sec-WebSocket-Version", Some("8")),
        ("Sec-WebSocket-Version", None),
        ("Sec-WebSocket-Key", None),
    ] {
        let mut headers: Vec<_> = upgrade().into_iter().filter(|(header, _)| *header != name).collect();
        headers.extend(value.map(|value| (name, value.to_owned())));
        headers.push(bearer("app:polite"));
        let answer = stage.http("GET", RPC, &headers, "").await;
        assert_eq!(answer.refusal(), (426, "upgrade-required".to_owned()), "{name} {value:?}");
    }
    for keys in [
        &[""][..],
        &["x"],
        &["dGhlIHNhbXBsZSBub25jZQ"],
        &["dGhlIHNhbXBsZSBub25j"],
        &["dGhlIHNhbXBsZSBub25jZWVl"],
        &["dGhlIHNhbXBsZSBub25jZ!=="],
        &["dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZQ=="],
    ] {
        let mut headers: Vec<_> =
            upgrade().into_iter().filter(|(header, _)| *header != "Sec-WebSocket-Key").collect();
        headers.extend(keys.iter().map(|key| ("Sec-WebSocket-Key", (*key).to_owned())));
        headers.push(bearer("app:polite"));
        let answer = stage.http("GET", RPC, &headers, "").await;
        assert_eq!(answer.refusal(), (400, "invalid".to_owned()), "{keys:?}");
    }
    assert_eq!(stage.http("CONNECT", "localhost:80", &upgrade(), "").await.status, 404);
    assert_eq!(stage.sessions(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_beyond_the_limit_wait_until_others_go() {
    let stage = Stage::new("connections = 100", FILE).await;
    let mut apps = Vec::new();
    for _ in 0..100 {
        apps.push(stage.app("app:polite").await);
    }
    // The backlog takes them; nobody answers.
    let mut crowd = Vec::new();
    for _ in 0..100 {
        crowd.push(stage.connect().await);
    }
    let stream = stage.connect().await;
    let waiting = tokio::spawn(async move { App::open(stream, "app:polite", &[bearer("app:polite")]).await });
    apps[0].is_served().await;
    drop(crowd);
    assert!(!waiting.is_finished());
    drop(apps.split_off(1));
    soon(waiting).await.unwrap().unwrap().is_served().await;
    apps[0].is_served().await;
    drop(apps);
    stage.sessions_become(0).await;
    stage.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn few_connections_are_not_held_by_those_without_a_proof() {
    let stage = Stage::new("connections = 8", FILE).await;
    let mut crowd = Vec::new();
    for _ in 0..50 {
        crowd.push(stage.connect().await);
    }
    let began = Instant::now();
    stage.app("app:polite").await.is_served().await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_goes_away_in_any_phase_leaves_nothing() {
    let stage = Stage::new("", FILE).await;
    let mut headers = upgrade();
    headers.push(bearer("app:polite"));
    let head = request("GET", RPC, &headers, "");
    let call = br#"{"jsonrpc":"2.0","id":1,"method":"echo@1/never"}"#;
    let mut whole = head.clone().into_bytes();
    whole.extend_from_slice(&[0x81, 0x80 | u8::try_from(call.len()).unwrap(), 0, 0, 0, 0]);
    whole.extend_from_slice(call);
    for cut in (0..head.len()).step_by(7).chain(head.len()..=whole.len()) {
        let mut stream = stage.connect().await;
        stream.write_all(&whole[..cut]).await.unwrap();
        if cut % 2 == 0 {
            // Half closed, and then gone.
            stream.shutdown().await.unwrap();
        }
        drop(stream);
    }
    stage.sessions_become(0).await;
    becomes(|| stage.main.client().waiters() == 0, || "waiters".to_owned()).await;
    stage.works().await;
}
