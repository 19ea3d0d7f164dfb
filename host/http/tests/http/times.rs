//! Every wait ends.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::support::*;
use weir_http::{HttpError, Timeouts};

const SHORT: Duration = Duration::from_millis(100);

/// Sends an answer of ten bytes, each after this time.
async fn slow(each: Duration) -> Server {
    Server::raw(move |mut stream| async move {
        let _request = stream.read(&mut [0; 4096]).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n").await.unwrap();
        for _ in 0..10 {
            tokio::time::sleep(each).await;
            if stream.write_all(b"x").await.is_err() {
                return;
            }
        }
    })
    .await
}

/// A header that comes a byte at a time, and never ends.
async fn slowloris() -> Server {
    Server::raw(|mut stream| async move {
        let _request = stream.read(&mut [0; 4096]).await;
        let _cut = stream.write_all(b"HTTP/1.1 200 OK\r\nx: ").await;
        while stream.write_all(b"y").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

async fn outcome(server: &Server, timeouts: Timeouts) -> (Result<(), HttpError>, Duration) {
    let bench = Bench::new();
    let guest = bench.guest(&[grant(&server.url(""))]);
    let began = Instant::now();
    let outcome = match guest.send(get(&server.url("/")), timeouts).await {
        Ok(answer) => whole(answer).await.map(drop),
        Err(error) => Err(error),
    };
    let took = began.elapsed();
    bench.connections(0, 0).await;
    (outcome, took)
}

#[tokio::test]
async fn an_answer_that_does_not_begin_is_given_up() {
    let timeouts = Timeouts { first_byte: Some(SHORT), ..Timeouts::default() };
    let (outcome, took) = outcome(&slowloris().await, timeouts).await;
    assert_eq!(outcome, Err(HttpError::ResponseTimeout));
    assert!(took >= SHORT && took < PATIENCE / 2, "{took:?}");
}

#[tokio::test]
async fn an_answer_that_stops_is_given_up_and_a_slow_one_is_not() {
    let timeouts = Timeouts { between_bytes: Some(SHORT), ..Timeouts::default() };
    assert_eq!(outcome(&slow(PATIENCE).await, timeouts).await.0, Err(HttpError::ResponseTimeout));
    let patient = Timeouts { between_bytes: Some(PATIENCE), ..Timeouts::default() };
    let bench = Bench::new();
    let server = slow(Duration::from_millis(10)).await;
    let guest = bench.guest(&[grant(&server.url(""))]);
    let answer = guest.send(get(&server.url("/")), patient).await.unwrap();
    assert_eq!(whole(answer).await.unwrap(), "xxxxxxxxxx");
}

#[tokio::test]
async fn a_deadline_ends_an_answer_at_any_point_of_it() {
    for server in [slowloris().await, slow(Duration::from_millis(30)).await, slow(PATIENCE).await] {
        let timeouts = Timeouts { deadline: Some(Instant::now() + SHORT), ..Timeouts::default() };
        let (outcome, took) = outcome(&server, timeouts).await;
        assert_eq!(outcome, Err(HttpError::ResponseTimeout));
        assert!(took < PATIENCE / 2, "{took:?}");
    }
}

#[tokio::test]
async fn a_deadline_ends_a_request_whose_body_does_not_begin() {
    let bench = Bench::new();
    let guest = bench.guest(&[grant("http://a.test")]);
    for (timeouts, why) in [
        (
            Timeouts { deadline: Some(Instant::now() + SHORT), ..Timeouts::default() },
            HttpError::ResponseTimeout,
        ),
        (Timeouts { first_byte: Some(SHORT), ..Timeouts::default() }, HttpError::RequestBody),
    ] {
        assert_eq!(guest.send(with_no_beginning("http://a.test"), timeouts).await.unwrap_err(), why);
    }
}

#[tokio::test]
async fn each_request_on_a_connection_has_a_time_of_its_own() {
    let server = Server::new(|request| async move {
        match request.uri().path() {
            "/late" => tokio::time::sleep(SHORT * 3).await,
            "/never" => std::future::pending().await,
            _ => {}
        }
        text("ok")
    })
    .await;
    let bench = Bench::new();
    let guest = bench.guest(&[grant(&server.url(""))]);
    for (path, first_byte, is_answered) in
        [("/", SHORT, true), ("/late", PATIENCE, true), ("/never", SHORT, false)]
    {
        let timeouts = Timeouts { first_byte: Some(first_byte), ..Timeouts::default() };
        let (began, answer) = (Instant::now(), guest.send(get(&server.url(path)), timeouts).await);
        match answer {
            Ok(answer) => assert!(is_answered && whole(answer).await.unwrap() == "ok", "{path}"),
            Err(error) => assert!(!is_answered && error == HttpError::ResponseTimeout, "{path} {error}"),
        }
        assert!(began.elapsed() < PATIENCE / 2, "{path}");
        bench.connections(usize::from(is_answered), usize::from(is_answered)).await;
    }
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn a_deadline_ends_an_answer_that_nobody_reads() {
    let server = Server::raw(|mut stream| async move {
        let _request = stream.read(&mut [0; 4096]).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n").await.unwrap();
        while stream.write_all(&[7; 65536]).await.is_ok() {}
    })
    .await;
    let bench = Bench::new();
    let guest = bench.guest(&[grant(&server.url(""))]);
    let timeouts = Timeouts { deadline: Some(Instant::now() + SHORT), ..Timeouts::default() };
    let answer = guest.send(get(&server.url("/")), timeouts).await.unwrap();
    bench.connections(0, 0).await;
    assert_eq!(whole(answer).await, Err(HttpError::ResponseTimeout));
}

#[tokio::test]
async fn no_guest_waits_longer_than_its_limit() {
    let bench = Bench::new();
    let server = slowloris().await;
    let guest = bench.guest_with(&[grant(&server.url(""))], |limits| limits.http_timeout = SHORT);
    let forever = Some(Duration::from_secs(1_000_000));
    let timeouts =
        Timeouts { connect: forever, first_byte: forever, between_bytes: forever, ..Timeouts::default() };
    let failed = guest.send(get(&server.url("/")), timeouts).await.unwrap_err();
    assert_eq!(failed, HttpError::ResponseTimeout);
}

#[tokio::test]
async fn a_connection_that_is_not_made_in_time_is_given_up() {
    // A listener with a full queue answers to no one.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(Ok(stream)) = tokio::time::timeout(SHORT, tokio::net::TcpStream::connect(address)).await {
        waiting.push(stream);
    }
    let bench = Bench::new();
    let url = format!("http://{address}");
    let guest = bench.guest(&[grant(&url)]);
    let timeouts = Timeouts { connect: Some(SHORT), ..Timeouts::default() };
    assert_eq!(guest.send(get(&url), timeouts).await.unwrap_err(), HttpError::ConnectTimeout);
    bench.connections(0, 0).await;
}
