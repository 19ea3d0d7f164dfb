//! Bodies: whole, in parts, cut off, endless, and in both directions.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::support::*;
use weir_http::{HttpError, Timeouts};

/// Answers every connection with these bytes, then closes it.
async fn answering(answer: &'static [u8]) -> Server {
    Server::raw(move |mut stream| async move {
        let _request = stream.read(&mut [0; 4096]).await;
        stream.write_all(answer).await.unwrap();
    })
    .await
}

async fn fetched(server: &Server) -> Result<Bytes, HttpError> {
    let bench = Bench::new();
    Ok(bench.guest(&[grant(&server.url(""))]).fetch(&server.url("/")).await?.1)
}

#[tokio::test]
async fn a_body_ends_where_its_framing_says() {
    for (answer, body) in [
        (&b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc"[..], "abc"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", "abc"),
        (b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nabc", "abc"),
        (b"HTTP/1.0 200 OK\r\n\r\nabc", "abc"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", ""),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc", "abc"),
    ] {
        assert_eq!(fetched(&answering(answer).await).await.unwrap(), body);
    }
}

#[tokio::test]
async fn a_body_that_is_cut_off_is_no_whole_one() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabc"[..],
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabc",
    ] {
        assert_eq!(fetched(&answering(answer).await).await, Err(HttpError::ResponseIncomplete));
    }
}

#[tokio::test]
async fn a_length_of_a_chunk_that_is_none_is_no_http() {
    for length in ["zz", "fffffffffffffffff"] {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n";
        let answer = format!("{head}{length}\r\n").into_bytes().leak();
        let failed = fetched(&answering(answer).await).await.unwrap_err();
        assert!(matches!(failed, HttpError::Protocol(_)), "{failed:?}");
    }
}

#[tokio::test]
async fn a_body_that_has_failed_fails_again() {
    let server = answering(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabc").await;
    let bench = Bench::new();
    let guest = bench.guest(&[grant(&server.url(""))]);
    let mut body = guest.get(&server.url("/")).await.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "abc");
    for _ in 0..3 {
        assert_eq!(body.frame().await.unwrap().unwrap_err(), HttpError::ResponseIncomplete);
    }
    assert_eq!(guest.usage.http.now(), 0);
}

#[tokio::test]
async fn what_is_not_http_is_said() {
    for answer in [
        &b"SSH-2.0-OpenSSH_9.2\r\n"[..],
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
    ] {
        let failed = fetched(&answering(answer).await).await.unwrap_err();
        assert!(matches!(failed, HttpError::Protocol(_)), "{failed:?}");
    }
    let upgraded = b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n";
    let failed = fetched(&answering(upgraded).await).await.unwrap_err();
    assert!(matches!(failed, HttpError::Upgraded | HttpError::Protocol(_)), "{failed:?}");
}

#[tokio::test]
async fn trailers_come_after_the_body() {
    let server = answering(
        b"HTTP/1.1 200 OK\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx-sum: 7\r\n\r\n",
    )
    .await;
    let bench = Bench::new();
    let guest = bench.guest(&[grant(&server.url(""))]);
    let collected = guest.get(&server.url("/")).await.unwrap().into_body().collect().await.unwrap();
    assert_eq!(collected.trailers().unwrap()["x-sum"], "7");
    assert_eq!(collected.to_bytes(), "a");
}

#[tokio::test]
async fn a_reset_in_the_middle_is_an_error() {
    let server = Server::raw(|mut stream: TcpStream| async move {
        let _request = stream.read(&mut [0; 4096]).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\nabc").await.unwrap();
        // Closed with unread bytes of the client, or at once by the option, the kernel resets it.
        stream.set_zero_linger().unwrap();
    })
    .await;
    assert_eq!(fetched(&server).await, Err(HttpError::ResponseIncomplete));
}

#[tokio::test]
async fn a_server_sends_no_more_than_its_reader_takes() {
    let sent = Arc::<AtomicUsize>::default();
    let counted = sent.clone();
    let server = Server::raw(move |mut stream: TcpStream| {
        let counted = counted.clone();
        async move {
            let _request = stream.read(&mut [0; 4096]).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n").await.unwrap();
            let part = vec![7; 1 << 16];
            while stream.write_all(&part).await.is_ok() {
                counted.fetch_add(part.len(), Ordering::Relaxed);
            }
        }
    })
    .await;
    let bench = Bench::new();
    let guest = bench.guest(&[grant(&server.url(""))]);
    let mut answer = guest.get(&server.url("/")).await.unwrap();
    let mut taken = answer.body_mut().frame().await.unwrap().unwrap().into_data().unwrap().len();
    // What the two kernels' buffers and the sender hold is there; no more comes.
    let mut before = 0;
    eventually(|| {
        std::mem::replace(&mut before, sent.load(Ordering::Relaxed)) == sent.load(Ordering::Relaxed)
    })
    .await;
    assert!(sent.load(Ordering::Relaxed) - taken < 16 << 20, "{} bytes", sent.load(Ordering::Relaxed));
    while taken < 64 << 20 {
        taken += answer.body_mut().frame().await.unwrap().unwrap().into_data().unwrap().len();
    }
    assert!(guest.usage.http_bytes_in.peak() > 1 << 20);
    assert!(guest.worked.load(Ordering::Relaxed) > 0);
}

#[tokio::test]
async fn a_body_goes_out_with_its_length_or_in_chunks() {
    let (bench, server) = (Bench::new(), Server::echo().await);
    let guest = bench.guest(&[grant(&server.url(""))]);
    let body: Bytes = vec![b'x'; 3 << 20].into();
    let request = with_body(Method::POST, &server.url("/"), body.clone());
    let echoed = whole(guest.send(request, Timeouts::default()).await.unwrap()).await.unwrap();
    assert!(echoed.ends_with(&body) && echoed.starts_with(b"POST / "));

    let parts = (0..100).map(move |_| Ok::<_, weir_http::BodyError>(Frame::data(body.slice(..1000))));
    let body = BodyExt::boxed_unsync(StreamBody::new(futures_util::stream::iter(parts)));
    let request = Request::put(server.url("/")).body(body).unwrap();
    let echoed = whole(guest.send(request, Timeouts::default()).await.unwrap()).await.unwrap();
    assert_eq!(echoed.iter().filter(|byte| **byte == b'x').count(), 100_000);
    assert!(guest.usage.http_bytes_out.peak() > 3 << 20);
}

#[tokio::test]
async fn a_body_that_its_guest_does_not_finish_is_no_whole_request() {
    let (bench, server) = (Bench::new(), Server::echo().await);
    let guest = bench.guest(&[grant(&server.url(""))]);
    let parts = [Ok(Frame::data(Bytes::from_static(b"a"))), Err("given up".into())];
    let body = BodyExt::boxed_unsync(StreamBody::new(futures_util::stream::iter(parts)));
    let request = Request::post(server.url("/")).body(body).unwrap();
    let failed = guest.send(request, Timeouts::default()).await.unwrap_err();
    assert_eq!(failed, HttpError::RequestBody);
    bench.connections(0, 0).await;
}

#[tokio::test]
async fn an_answer_before_the_end_of_the_request_is_an_answer() {
    let server = Server::new(|_request| async { text("no, thank you") }).await;
    let bench = Bench::new();
    let guest = bench.guest(&[grant(&server.url(""))]);
    let endless = futures_util::stream::pending::<Result<Frame<Bytes>, weir_http::BodyError>>();
    let request =
        Request::post(server.url("/")).body(BodyExt::boxed_unsync(StreamBody::new(endless))).unwrap();
    let timeouts = Timeouts { between_bytes: Some(Duration::from_millis(50)), ..Timeouts::default() };
    let answer = guest.send(request, timeouts).await.unwrap();
    assert_eq!(whole(answer).await.unwrap(), "no, thank you");
    // The rest of the request never comes, so the connection is of no use.
    bench.connections(0, 0).await;
}

#[tokio::test]
async fn a_request_that_reads_has_no_body_where_its_guest_writes_none() {
    let server = Server::new(|request| async move {
        let framed = ["transfer-encoding", "content-length"];
        let framed = framed.map(|name| request.headers().contains_key(name));
        let body = request.into_body().collect().await.unwrap().to_bytes();
        text(format!("{framed:?} {body:?}"))
    })
    .await;
    let bench = Bench::new();
    let guest = bench.guest(&[grant(&server.url(""))]);
    for (parts, seen) in [
        (vec![], r#"[false, false] b"""#),
        (vec!["", ""], r#"[false, false] b"""#),
        (vec!["a", "b"], r#"[true, false] b"ab""#),
    ] {
        let parts = parts.into_iter().map(|part| Ok::<_, weir_http::BodyError>(Frame::data(part.into())));
        let body = BodyExt::boxed_unsync(StreamBody::new(futures_util::stream::iter(parts)));
        let request = Request::get(server.url("/")).body(body).unwrap();
        let answer = guest.send(request, Timeouts::default()).await.unwrap();
        assert_eq!(whole(answer).await.unwrap(), seen);
    }
}

#[tokio::test]
async fn a_body_that_ends_because_its_guest_has_ended_is_no_whole_one() {
    let received = Arc::<std::sync::Mutex<Option<Vec<u8>>>>::default();
    let told = received.clone();
    let server = Server::raw(move |mut stream| {
        let told = told.clone();
        async move {
            let mut all = Vec::new();
            let _cut = stream.read_to_end(&mut all).await;
            *told.lock().unwrap() = Some(all);
        }
    })
    .await;
    let bench = Bench::new();
    let guest = bench.guest(&[grant(&server.url(""))]);
    let client = Arc::new(std::sync::Mutex::new(None));
    let ending = client.clone();
    let mut parts = 0;
    let body = futures_util::stream::poll_fn(move |_| {
        parts += 1;
        std::task::Poll::Ready((parts == 1).then(|| Ok(Frame::data(Bytes::from_static(b"half")))).or_else(
            || {
                // As when a guest traps: all of it goes, and its body with it.
                drop(ending.lock().unwrap().take());
                None
            },
        ))
    });
    let request = Request::post(server.url("/")).body(StreamBody::new(body).boxed_unsync()).unwrap();
    let answer = {
        let mut place = client.lock().unwrap();
        let answer = guest.client.send(request, Timeouts::default()).unwrap();
        *place = Some(guest.client);
        answer
    };
    assert!(answer.await.is_err());
    eventually(|| received.lock().unwrap().is_some()).await;
    let received = received.lock().unwrap().take().unwrap();
    assert!(!received.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&received));
}
