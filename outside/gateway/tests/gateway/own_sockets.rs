//! Unix sockets of servers of their own, behind which a proxy may stand.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::{
    servers::Answer,
    support::{Stage, becomes, connect, soon},
};

#[tokio::test]
async fn a_server_has_a_socket_of_its_own_for_a_proxy() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(test_guests::path("server"), dir.path().join("server.wasm")).unwrap();
    let path = dir.path().join("shop.sock");
    let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache");
    let text = |socket: &str| {
        format!(
            "# main cache-dir = '{cache}'\n[[extension]]\nid = 'shop'\npath = 'server.wasm'\nserves-http.path = '/'\nlimits.inbox.messages = 512\n{socket}\n"
        )
    };
    let stage = Stage::in_dir(dir, "", &text("serves-http.socket = 'shop.sock'")).await;
    let ask = async |path: &std::path::Path, text: &str| {
        let mut stream = connect(path).await;
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut input = Vec::new();
        soon(stream.read_to_end(&mut input)).await.unwrap();
        Answer::of(&input)
    };
    let of_proxy = "GET /v1/uri HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n";
    // Any host, and paths that are the gateway's elsewhere.
    let answer = ask(&path, of_proxy).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "GET http://shop.example/v1/uri"));
    let headers = "GET /headers HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: b\r\nWeir-Peer: c\r\nOrigin: d\r\nConnection: close\r\n\r\n";
    let answer = ask(&path, headers).await;
    assert_eq!(answer.body, "origin: d\nx-forwarded-for: b\n");
    let twice = of_proxy.replace("Connection: close\r\n", "") + of_proxy;
    let mut stream = connect(&path).await;
    stream.write_all(twice.as_bytes()).await.unwrap();
    let mut input = String::new();
    soon(stream.read_to_string(&mut input)).await.unwrap();
    assert_eq!(input.matches("HTTP/1.1 200").count(), 2, "{input}");
    // More than the strangers that the gateway bears, and each is served.
    let mut crowd = Vec::new();
    for _ in 0..300 {
        crowd.push(connect(&path).await);
    }
    for stream in &mut crowd {
        stream.write_all(of_proxy.as_bytes()).await.unwrap();
    }
    for stream in &mut crowd {
        let mut input = Vec::new();
        soon(stream.read_to_end(&mut input)).await.unwrap();
        assert_eq!(Answer::of(&input).status, 200);
    }
    // At the gateway nobody may reach it.
    assert_eq!(stage.http("GET", "/uri", &[], "").await.status, 404);

    // A reload moves the socket, and takes it away.
    let other = path.with_file_name("other.sock");
    stage.reload(&text("serves-http.socket = 'other.sock'")).await;
    becomes(|| other.exists() && !path.exists(), || "the socket stays".to_owned()).await;
    assert_eq!(ask(&other, of_proxy).await.status, 200);
    let mut kept = connect(&other).await;
    let first = of_proxy.replace("Connection: close\r\n", "");
    kept.write_all(first.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    soon(kept.read_exact(&mut head)).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    stage.reload(&text("serves-http.open = true")).await;
    becomes(|| !other.exists(), || "the socket stays".to_owned()).await;
    // A connection that is open lets nobody in any more.
    kept.write_all(first.as_bytes()).await.unwrap();
    let mut rest = String::new();
    soon(kept.read_to_string(&mut rest)).await.unwrap();
    assert!(rest.contains("HTTP/1.1 404") && !rest.contains("HTTP/1.1 200"), "{rest}");
    assert_eq!(stage.http("GET", "/uri", &[], "").await.status, 200);
}
