//! HTTP/2 over TLS: for extensions that serve HTTP, and for JSON-RPC.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    client::conn::http2::{SendRequest, handshake},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::{
    support::{Stage, bearer, becomes, free_port, soon},
    tls::{data, secure_for},
};

const FILE: &str = "
[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1']

[[extension]]
id = 'shop'
path = 'server.wasm'
serves-http = { path = '/shop', open = true }
";

/// A gateway with TLS, and its port.
async fn stage() -> (Stage, u16) {
    let dir = tempfile::tempdir().unwrap();
    for name in ["cert.pem", "key.pem"] {
        std::fs::copy(data(name), dir.path().join(name)).unwrap();
    }
    std::fs::copy(test_guests::path("server"), dir.path().join("server.wasm")).unwrap();
    let port = free_port();
    let gateway = format!("# listen 0.0.0.0:{port}\ntls.certificate = 'cert.pem'\ntls.key = 'key.pem'");
    let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache");
    (Stage::in_dir(dir, &gateway, &format!("# main cache-dir = '{cache}'{FILE}")).await, port)
}

/// A connection, and the task that serves it to its end.
struct Client {
    requests: SendRequest<Full<Bytes>>,
    task: JoinHandle<hyper::Result<()>>,
}

impl Client {
    async fn connect(port: u16) -> Self {
        let stream = secure_for(port, &["h2", "http/1.1"]).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (requests, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        Self { requests, task: tokio::spawn(connection) }
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        self.requests.ready().await?;
        self.requests.send_request(request).await
    }

    async fn get(&mut self, uri: &str) -> (StatusCode, String) {
        let answer = soon(self.send(Request::get(uri).body(Full::default()).unwrap())).await.unwrap();
        whole(answer).await
    }
}

async fn whole(answer: Response<Incoming>) -> (StatusCode, String) {
    let status = answer.status();
    let body = soon(answer.into_body().collect()).await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_answers_many_requests_of_one_connection_at_once() {
    let (stage, port) = stage().await;
    let mut client = Client::connect(port).await;
    assert_eq!(client.get("https://localhost/shop").await, (StatusCode::OK, "hello".to_owned()));
    let uri = client.get("https://localhost/shop/uri?a=b").await.1;
    assert_eq!(uri, "GET https://localhost/shop/uri?a=b");
    let headers = client.get("https://localhost/shop/headers").await.1;
    assert_eq!(headers, "", "the host is the authority");
    // More than run at once, of which each is longer than the window of a stream.
    let long = "0123456789".repeat(30_000);
    let requests = (0..20).map(|_| {
        let mut requests = client.requests.clone();
        let body = Full::from(long.clone());
        let request = Request::post("https://localhost/shop/echo").body(body).unwrap();
        async move { whole(requests.send_request(request).await.unwrap()).await.1 }
    });
    for echoed in futures_util::future::join_all(requests).await {
        assert!(echoed == long);
    }
    let (status, streamed) = client.get("https://localhost/shop/stream?500").await;
    assert_eq!((status, streamed.len()), (StatusCode::OK, 500 << 16));
    // One that nobody reads ends with its stream, and the connection goes on.
    let endless = Request::get("https://localhost/shop/endless").body(Full::default()).unwrap();
    drop(soon(client.send(endless)).await.unwrap());
    assert_eq!(client.get("https://localhost/shop/served").await.1, "1");
    let in_hand = || stage.main.client().waiters();
    becomes(|| in_hand() == 0, || format!("{} waiters", in_hand())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_and_paths_are_judged_as_for_http_1() {
    let (_stage, port) = stage().await;
    let mut client = Client::connect(port).await;
    let two =
        Request::get("https://localhost/shop").header("host", "127.0.0.1").body(Full::default()).unwrap();
    assert_eq!(soon(client.send(two)).await.unwrap().status(), StatusCode::BAD_REQUEST);
    // A refusal ends the connection, as with HTTP/1.1.
    soon(client.task).await.unwrap().unwrap();
    for (uri, status) in [
        ("https://evil.example/shop", StatusCode::MISDIRECTED_REQUEST),
        ("https://localhost/", StatusCode::NOT_FOUND),
    ] {
        let mut client = Client::connect(port).await;
        assert_eq!(client.get(uri).await.0, status, "{uri}");
        soon(client.task).await.unwrap().unwrap();
    }
    let mut client = Client::connect(port).await;
    let connect =
        Request::builder().method(Method::CONNECT).uri("localhost:443").body(Full::default()).unwrap();
    let refused = soon(client.send(connect)).await.map(|answer| answer.status().as_u16());
    assert!(!matches!(refused, Ok(200..300)), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_of_json_rpc_proves_its_name_and_ends_the_connection() {
    let (stage, port) = stage().await;
    let mut client = Client::connect(port).await;
    let (name, value) = bearer("app:polite");
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "echo@1/sender" }).to_string();
    let post = Request::post("https://localhost/v1/peers/app:polite/rpc")
        .header(name, value)
        .header("content-type", "application/json")
        .body(Full::from(body))
        .unwrap();
    let (status, answer) = whole(soon(client.send(post)).await.unwrap()).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!((status, &answer["result"]), (StatusCode::OK, &json!("app:polite")));
    soon(client.task).await.unwrap().unwrap();
    stage.sessions_become(0).await;
}
