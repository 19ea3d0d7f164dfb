//! Every wait ends.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::Request;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::support::*;
use weir_http::{HttpError, RequestBody, Timeouts};

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

/// A guest all of whose exchanges end after [`SHORT`].
fn hurried(bench: &Bench, server: &Server) -> Guest {
    bench.guest_with(&[grant(&server.url(""))], |limits| limits.http_total_timeout = SHORT)
}

/// An upload of a byte now and then, without an end.
fn dripping(url: &str) -> Request<RequestBody> {
    let parts = futures_util::stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Some((Ok::<_, weir_http::BodyError>(Frame::data(Bytes::from_static(b"x"))), ()))
    });
    Request::post(url).body(StreamBody::new(parts).boxed_unsync()).unwrap()
}

#[tokio::test]
async fn no_exchange_takes_longer_than_the_operator_allows() {
    let dripping_body = slow(Duration::from_millis(30)).await;
    let silent = Server::raw(|mut stream| async move { while stream.read_u8().await.is_ok() {} }).await;
    type Make = fn(&str) -> Request<RequestBody>;
    for (server, request) in [
        (&dripping_body, get as Make),
        (&slowloris().await, get),
        (&slow(PATIENCE).await, get),
        (&silent, get),
        (&silent, dripping),
        (&silent, with_no_beginning),
    ] {
        let request = request(&server.url("/"));
        let bench = Bench::new();
        let guest = hurried(&bench, server);
        let began = Instant::now();
        let outcome = match guest.send(request, Timeouts::default()).await {
            Ok(answer) => whole(answer).await,
            Err(error) => Err(error),
        };
        assert_eq!(outcome, Err(HttpError::TotalTimeout));
        assert!(began.elapsed() >= SHORT && began.elapsed() < PATIENCE / 2, "{:?}", began.elapsed());
        bench.connections(0, 0).await;
        assert_eq!((guest.usage.http.now(), guest.usage.http_timed_out.load(Ordering::Relaxed)), (0, 1));
        let said = guest.said.lock().unwrap();
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains(&server.address.to_string()) && said[0].contains("`http.total-timeout`"));
    }
}

#[tokio::test]
async fn an_answer_that_nobody_reads_gives_its_place_back_in_time() {
    let server = Server::raw(|mut stream| async move {
        let _request = stream.read(&mut [0; 4096]).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n").await.unwrap();
        while stream.write_all(&[7; 65536]).await.is_ok() {}
    })
    .await;
    let bench = Bench::new();
    let guest = hurried(&bench, &server);
    let mut body = guest.get(&server.url("/")).await.unwrap().into_body();
    eventually(|| guest.usage.http.now() == 0).await;
    bench.connections(0, 0).await;
    for _ in 0..2 {
        assert_eq!(body.frame().await.unwrap().unwrap_err(), HttpError::TotalTimeout);
    }
}

#[tokio::test]
async fn a_deadline_of_the_guest_s_own_is_not_counted_as_the_operator_s() {
    let (bench, server) = (Bench::new(), slowloris().await);
    let guest = bench.guest_with(&[grant(&server.url(""))], |limits| limits.http_total_timeout = PATIENCE);
    let timeouts = Timeouts { deadline: Some(Instant::now() + SHORT), ..Timeouts::default() };
    let failed = guest.send(get(&server.url("/")), timeouts).await.unwrap_err();
    assert_eq!(failed, HttpError::ResponseTimeout);
    assert_eq!(guest.usage.http_timed_out.load(Ordering::Relaxed), 0);
    assert_eq!(guest.said.lock().unwrap().len(), 0);
}
