//! Connections: kept, shared by nobody, closed in time, and gone with their guest.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Response;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinHandle,
};

use super::support::*;
use weir_http::{HttpError, ResponseBody, Timeouts};

/// Reads a request without a body.
async fn read_head(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(head)
}

/// A request on its way.
fn begun(guest: &Guest, url: &str) -> JoinHandle<Result<Response<ResponseBody>, HttpError>> {
    tokio::spawn(guest.client.send(get(url), Timeouts::default()).unwrap())
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[tokio::test]
async fn a_guest_keeps_its_connection_and_shares_it_with_no_other() {
    let (bench, server) = (Bench::new(), Server::echo().await);
    let grants = [grant(&server.url(""))];
    let (first, second) = (bench.guest(&grants), bench.guest(&grants));
    for number in 0..5 {
        let (_, echoed) = first.fetch(&server.url(&format!("/{number}"))).await.unwrap();
        assert!(echoed.starts_with(format!("GET /{number} ").as_bytes()), "{echoed:?}");
        bench.connections(1, 1).await;
    }
    assert_eq!(server.accepted(), 1);
    second.fetch(&server.url("/")).await.unwrap();
    bench.connections(2, 2).await;
    assert_eq!(server.accepted(), 2);
    drop(first);
    bench.connections(1, 1).await;
    drop(second);
    bench.connections(0, 0).await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_in_time() {
    let bench = Bench::with(|config| config.idle_timeout = Duration::from_millis(50));
    let server = Server::echo().await;
    let guest = bench.guest(&[grant(&server.url(""))]);
    for _ in 0..2 {
        guest.fetch(&server.url("/")).await.unwrap();
        bench.connections(0, 0).await;
    }
    assert_eq!(server.accepted(), 2);
}

#[tokio::test]
async fn a_kept_connection_that_its_server_has_closed_costs_no_request() {
    // Closes without a word after each answer.
    let server = Server::raw(|mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(OK).await.unwrap();
    })
    .await;
    let bench = Bench::new();
    let guest = bench.guest(&[grant(&server.url(""))]);
    for _ in 0..50 {
        assert_eq!(guest.fetch(&server.url("/")).await.unwrap().1, "ok");
    }
}

#[tokio::test]
async fn a_request_that_may_have_had_an_effect_is_not_repeated() {
    let requests = Arc::<AtomicUsize>::default();
    let counted = requests.clone();
    // Closes at the second request of a connection, once it has read it.
    let server = Server::raw(move |mut stream| {
        let counted = counted.clone();
        async move {
            read_head(&mut stream).await;
            counted.fetch_add(1, Ordering::Relaxed);
            stream.write_all(OK).await.unwrap();
            if read_head(&mut stream).await.is_some() {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        }
    })
    .await;
    let bench = Bench::new();
    let guest = bench.guest(&[grant(&server.url(""))]);
    let post = || with_body(http::Method::POST, &server.url("/"), "");
    guest.send(post(), Timeouts::default()).await.unwrap();
    bench.connections(1, 1).await;
    let failed = guest.send(post(), Timeouts::default()).await.unwrap_err();
    assert!(matches!(failed, HttpError::ConnectionTerminated | HttpError::ResponseIncomplete), "{failed:?}");
    assert_eq!((requests.load(Ordering::Relaxed), server.accepted()), (2, 1));
    // One that only reads is.
    guest.fetch(&server.url("/")).await.unwrap();
    bench.connections(1, 1).await;
    assert_eq!(guest.fetch(&server.url("/")).await.unwrap().1, "ok");
}

#[tokio::test]
async fn a_request_is_repeated_once_however_many_connections_are_kept() {
    let ended = Arc::<AtomicUsize>::default();
    let counted = ended.clone();
    let together = Arc::new(tokio::sync::Barrier::new(3));
    // Answers three connections at once, so that all are open; each reads a second request, and ends.
    let server = Server::raw(move |mut stream| {
        let (counted, together) = (counted.clone(), together.clone());
        async move {
            read_head(&mut stream).await;
            together.wait().await;
            stream.write_all(OK).await.unwrap();
            if read_head(&mut stream).await.is_some() {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        }
    })
    .await;
    let bench = Bench::new();
    let guest = bench.guest(&[grant(&server.url(""))]);
    let url = server.url("/");
    let (one, two, three) = tokio::join!(guest.fetch(&url), guest.fetch(&url), guest.fetch(&url));
    assert!(one.is_ok() && two.is_ok() && three.is_ok());
    bench.connections(3, 3).await;
    // The repeated one dials anew, and waits there for the other two of its three.
    let asked = begun(&guest, &url);
    eventually(|| server.accepted() == 4).await;
    assert_eq!(ended.load(Ordering::Relaxed), 1);
    asked.abort();
}

#[tokio::test]
async fn what_is_under_way_ends_with_its_guest() {
    let [read, gone] = [(); 2].map(|()| Arc::<AtomicUsize>::default());
    let counted = [read.clone(), gone.clone()];
    // Sends a part of an answer, or none, and waits for the end.
    let server = Server::raw(move |mut stream| {
        let [read, gone] = counted.clone();
        async move {
            let head = read_head(&mut stream).await.unwrap();
            read.fetch_add(1, Ordering::Relaxed);
            if head.starts_with(b"GET /part") {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\npart").await.unwrap();
            }
            let _end = stream.read(&mut [0]).await;
            gone.fetch_add(1, Ordering::Relaxed);
        }
    })
    .await;
    let bench = Bench::new();
    let guest = bench.guest(&[grant(&server.url(""))]);
    let part = guest.get(&server.url("/part")).await.unwrap();
    let none = begun(&guest, &server.url("/none"));
    eventually(|| read.load(Ordering::Relaxed) == 2).await;
    let Guest { client, usage, .. } = guest;
    drop(client);
    eventually(|| gone.load(Ordering::Relaxed) == 2).await;
    bench.connections(0, 0).await;
    assert!(whole(part).await.is_err());
    // The server may have read the request before its sender knows that all of it is written.
    let error = none.await.unwrap().unwrap_err();
    assert!(matches!(error, HttpError::ConnectionTerminated | HttpError::RequestBody), "{error:?}");
    assert_eq!(usage.http.now(), 0);
}

#[tokio::test]
async fn an_answer_that_nobody_wants_any_more_closes_its_connection() {
    let server = Server::raw(|mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n").await.unwrap();
        while stream.write_all(&[7; 65536]).await.is_ok() {}
    })
    .await;
    let bench = Bench::new();
    let guest = bench.guest_with(&[grant(&server.url(""))], |limits| limits.http_in_flight = 1);
    for _ in 0..20 {
        drop(guest.get(&server.url("/")).await.unwrap());
    }
    bench.connections(0, 0).await;
    assert_eq!((guest.usage.http.now(), guest.usage.http.peak()), (0, 1));
}

#[tokio::test]
async fn no_more_connections_are_open_than_configured() {
    let bench = Bench::with(|config| config.connections = 2);
    let server = Server::echo().await;
    let held = Server::raw(|mut stream| async move {
        read_head(&mut stream).await;
        let _end = stream.read(&mut [0]).await;
    })
    .await;
    let grants = [grant(&server.url("")), grant(&held.url(""))];
    let (first, second, third) = (bench.guest(&grants), bench.guest(&grants), bench.guest(&grants));
    first.fetch(&server.url("/")).await.unwrap();
    bench.connections(1, 1).await;
    let one = begun(&second, &held.url("/"));
    bench.connections(2, 1).await;
    // The idle one makes room.
    let _two = begun(&third, &held.url("/"));
    bench.connections(2, 0).await;
    assert_eq!(first.fetch(&server.url("/")).await, Err(HttpError::TooMany));
    one.abort();
    bench.connections(1, 0).await;
    assert!(first.fetch(&server.url("/")).await.is_ok());
}

#[tokio::test]
async fn a_guest_has_as_many_connections_as_requests_in_flight_and_never_more_than_half() {
    // Answers at once, and reads on without an end.
    let server = Server::raw(|mut stream| async move {
        read_head(&mut stream).await;
        stream.write_all(OK).await.unwrap();
        let _end = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    })
    .await;
    let bench = Bench::with(|config| config.connections = 4);
    let (first, second) = (bench.guest(&[grant(&server.url(""))]), bench.guest(&[grant(&server.url(""))]));
    let unending = || {
        let body = http_body_util::StreamBody::new(futures_util::stream::pending::<
            Result<http_body::Frame<bytes::Bytes>, weir_http::BodyError>,
        >());
        http::Request::post(server.url("/")).body(http_body_util::BodyExt::boxed_unsync(body)).unwrap()
    };
    for _ in 0..2 {
        whole(first.send(unending(), Timeouts::default()).await.unwrap()).await.unwrap();
    }
    let timeouts = Timeouts { connect: Some(Duration::from_millis(50)), ..Timeouts::default() };
    assert_eq!(first.send(unending(), timeouts).await.unwrap_err(), HttpError::TooMany);
    bench.connections(2, 0).await;
    assert!(second.fetch(&server.url("/")).await.is_ok());
}
