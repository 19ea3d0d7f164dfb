//! What one guest may take.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::support::*;
use weir_http::{HttpError, Timeouts};

#[tokio::test]
async fn requests_in_flight_count_until_their_answers_are_read_or_dropped() {
    let (bench, server) = (Bench::new(), Server::echo().await);
    let guest = bench.guest_with(&[grant(&server.url(""))], |limits| limits.http_in_flight = 3);
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(guest.get(&server.url("/")).await.unwrap());
    }
    assert_eq!(guest.get(&server.url("/")).await.unwrap_err(), HttpError::TooMany);
    assert_eq!(guest.usage.http_refused.load(Ordering::Relaxed), 1);
    drop(held.pop());
    held.push(guest.get(&server.url("/")).await.unwrap());
    whole(held.pop().unwrap()).await.unwrap();
    held.push(guest.get(&server.url("/")).await.unwrap());
    assert_eq!((guest.usage.http.now(), guest.usage.http.peak()), (3, 3));
    drop(held);
    assert_eq!(guest.usage.http.now(), 0);
}

#[tokio::test]
async fn headers_are_bounded_both_ways() {
    let server = Server::raw(|mut stream| async move {
        let mut request = [0; 4096];
        let length = stream.read(&mut request).await.unwrap();
        let answer = match request[..length].starts_with(b"GET /large") {
            true => format!("HTTP/1.1 200 OK\r\nx: {}\r\ncontent-length: 0\r\n\r\n", "x".repeat(9 << 10)),
            false => format!("HTTP/1.1 200 OK\r\nx: {}\r\ncontent-length: 0\r\n\r\n", "x".repeat(7 << 10)),
        };
        let _cut = stream.write_all(answer.as_bytes()).await;
        let _end = stream.read(&mut request).await;
    })
    .await;
    let bench = Bench::new();
    let guest = bench.guest_with(&[grant(&server.url(""))], |limits| limits.http_header_size = 8 << 10);
    assert!(guest.fetch(&server.url("/small")).await.is_ok());
    assert_eq!(guest.fetch(&server.url("/large")).await, Err(HttpError::ResponseHeaders));
    let mut request = get(&server.url("/small"));
    request.headers_mut().insert("x", "x".repeat(9 << 10).parse().unwrap());
    let refused = guest.send(request, Timeouts::default()).await.unwrap_err();
    assert!(matches!(refused, HttpError::RequestHeaders { allowed: 8192, .. }), "{refused:?}");
    let refused = guest.get(&server.url(&format!("/{}", "x".repeat(9 << 10)))).await.unwrap_err();
    assert!(matches!(refused, HttpError::RequestHeaders { .. }), "{refused:?}");
}

#[tokio::test]
async fn headers_may_be_larger_than_what_a_connection_reads_ahead() {
    let server = Server::raw(|mut stream| async move {
        let _request = stream.read(&mut [0; 4096]).await;
        let head = format!("x: {}\r\ny: {}\r\n", "x".repeat(30 << 10), "y".repeat(30 << 10));
        let answer = format!("HTTP/1.1 200 OK\r\n{head}content-length: 0\r\n\r\n");
        let _cut = stream.write_all(answer.as_bytes()).await;
        let _end = stream.read(&mut [0]).await;
    })
    .await;
    let bench = Bench::new();
    let guest = bench.guest_with(&[grant(&server.url(""))], |limits| limits.http_header_size = 64 << 10);
    assert_eq!(guest.get(&server.url("/")).await.unwrap().headers()["y"].len(), 30 << 10);
}

#[tokio::test]
async fn waiting_for_the_guest_s_own_rate_is_no_silence_of_the_server() {
    let (bench, server) = (Bench::new(), Server::echo().await);
    let guest = bench.guest_with(&[grant(&server.url(""))], |limits| limits.http_bytes_out = 16 << 10);
    // Its end comes two seconds after it.
    let part = [Ok(http_body::Frame::data(vec![b'x'; 48 << 10].into()))];
    let body = http_body_util::StreamBody::new(futures_util::stream::iter(part));
    let request =
        http::Request::post(server.url("/")).body(http_body_util::BodyExt::boxed_unsync(body)).unwrap();
    let timeouts = Timeouts { first_byte: Some(Duration::from_millis(1200)), ..Timeouts::default() };
    let answer = guest.send(request, timeouts).await.unwrap();
    assert!(whole(answer).await.unwrap().len() > 48 << 10);
}

#[tokio::test]
async fn a_request_that_is_too_large_is_refused_before_it_is_judged() {
    let bench = Bench::new();
    let guest = bench.guest_with(&[], |limits| limits.http_header_size = 8 << 10);
    let url = format!("https://a.test/{}", "x".repeat(9 << 10));
    let refused = guest.get(&url).await.unwrap_err();
    assert!(matches!(refused, HttpError::RequestHeaders { .. }), "{refused:?}");
    let method = http::Method::from_bytes(&[b'A'; 9 << 10]).unwrap();
    let refused = guest.send(with_body(method, "https://a.test", ""), Timeouts::default()).await.unwrap_err();
    assert!(matches!(refused, HttpError::RequestHeaders { .. }), "{refused:?}");
    let method = http::Method::from_bytes(&[b'A'; 1 << 10]).unwrap();
    let refused = guest.send(with_body(method, "https://a.test", ""), Timeouts::default()).await.unwrap_err();
    assert!(matches!(&refused, HttpError::Denied(why) if why.len() < 200), "{refused:?}");
}

#[tokio::test]
async fn a_header_that_never_ends_is_cut_off() {
    let server = Server::raw(|mut stream| async move {
        let _request = stream.read(&mut [0; 4096]).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\n").await.unwrap();
        while stream
            .write_all(b"x: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n")
            .await
            .is_ok()
        {}
    })
    .await;
    let bench = Bench::new();
    let guest = bench.guest(&[grant(&server.url(""))]);
    assert_eq!(guest.fetch(&server.url("/")).await, Err(HttpError::ResponseHeaders));
    bench.connections(0, 0).await;
}

#[tokio::test]
async fn bytes_come_and_go_at_the_guest_s_rate() {
    const RATE: u64 = 256 << 10;
    let (bench, server) = (Bench::new(), Server::echo().await);
    let guest = bench.guest_with(&[grant(&server.url(""))], |limits| limits.http_bytes_in = RATE);
    let body = vec![b'x'; 512 << 10];
    let post = |body: &[u8]| with_body(http::Method::POST, &server.url("/"), body.to_vec());
    let began = Instant::now();
    let answer = guest.send(post(&body), Timeouts::default()).await.unwrap();
    assert!(whole(answer).await.unwrap().ends_with(&body));
    let took = began.elapsed();
    assert!((Duration::from_millis(700)..Duration::from_secs(10)).contains(&took), "{took:?}");

    let guest = bench.guest_with(&[grant(&server.url(""))], |limits| limits.http_bytes_out = RATE);
    let began = Instant::now();
    let parts: Vec<_> =
        body.chunks(1 << 14).map(|part| Ok(http_body::Frame::data(part.to_vec().into()))).collect();
    let body = http_body_util::StreamBody::new(futures_util::stream::iter(parts));
    let request =
        http::Request::post(server.url("/")).body(http_body_util::BodyExt::boxed_unsync(body)).unwrap();
    whole(guest.send(request, Timeouts::default()).await.unwrap()).await.unwrap();
    let took = began.elapsed();
    assert!((Duration::from_millis(700)..Duration::from_secs(10)).contains(&took), "{took:?}");
}

#[tokio::test]
async fn requests_begin_at_the_guest_s_rate() {
    let (bench, server) = (Bench::new(), Server::echo().await);
    let guest = bench.guest_with(&[grant(&server.url(""))], |limits| limits.http_rate = 10);
    let began = Instant::now();
    for _ in 0..15 {
        guest.fetch(&server.url("/")).await.unwrap();
    }
    let took = began.elapsed();
    assert!((Duration::from_millis(400)..Duration::from_secs(10)).contains(&took), "{took:?}");
}

#[tokio::test]
async fn slow_names_of_one_guest_hold_up_no_other() {
    struct Slow(Mutex<mpsc::Receiver<()>>, Arc<AtomicUsize>);
    impl weir_http::Resolve for Slow {
        fn resolve(&self, host: &str, port: u16) -> weir_http::Resolved {
            if host.starts_with("slow") {
                self.1.fetch_add(1, Ordering::Relaxed);
                let _ended = self.0.lock().unwrap().recv();
            }
            Ok(vec![std::net::SocketAddr::new([127, 0, 0, 1].into(), port)])
        }
    }
    let ((no_answer, answers), begun) = (mpsc::channel(), Arc::<AtomicUsize>::default());
    let resolver = Arc::new(Slow(Mutex::new(answers), begun.clone()));
    let mut bench = Bench::new();
    bench.sender =
        weir_http::HttpSender::with_resolver(&weir_http::HttpConfig::default(), resolver, Arc::new(|_| {}))
            .unwrap();
    let server = Server::echo().await;
    let port = server.address.port();
    let grants =
        ["slow.test", "quick.test"].map(|name| grant_at(&format!("http://{name}:{port}"), &["loopback"]));
    let (slow, quick) = (bench.guest(&grants), bench.guest(&grants));
    // Those that nobody waits for any more go on, and no further ones begin.
    for _ in 0..10 {
        let timeouts = Timeouts { connect: Some(Duration::from_millis(20)), ..Timeouts::default() };
        let late = slow.send(get(&format!("http://slow.test:{port}")), timeouts).await.unwrap_err();
        assert_eq!(late, HttpError::DnsTimeout);
    }
    assert_eq!(begun.load(Ordering::Relaxed), 2);
    assert!(quick.fetch(&format!("http://quick.test:{port}")).await.is_ok());
    drop(no_answer);
    assert!(slow.fetch(&format!("http://slow.test:{port}")).await.is_ok());
}
