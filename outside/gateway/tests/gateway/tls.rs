//! TLS, and what comes to its port without it.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};
use weir_gateway::{Gateway, GatewayConfig};

use crate::{
    app::App,
    support::{Response, Stage, bearer, free_port, request, soon, token_of},
};

const FILE: &str = "
[peer.'app:polite']
tokens = ['HASH']
wants = ['echo@1']
publishes = ['news.>']
";

pub(crate) fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// A gateway that other machines reach, and its ports for HTTP and for streams.
async fn stage() -> (Stage, u16, u16) {
    let dir = tempfile::tempdir().unwrap();
    for name in ["cert.pem", "key.pem"] {
        std::fs::copy(data(name), dir.path().join(name)).unwrap();
    }
    let (http, streams) = (free_port(), free_port());
    let gateway = format!(
        "# listen 0.0.0.0:{http}\n# streams 0.0.0.0:{streams}\ntls.certificate = 'cert.pem'\ntls.key = 'key.pem'"
    );
    (Stage::in_dir(dir, &gateway, FILE).await, http, streams)
}

async fn plain(port: u16) -> TcpStream {
    TcpStream::connect(("127.0.0.1", port)).await.unwrap()
}

async fn secure(port: u16) -> Box<TlsStream<TcpStream>> {
    secure_for(port, &[]).await
}

/// A connection of a client that knows these protocols.
pub(crate) async fn secure_for(port: u16, protocols: &[&str]) -> Box<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(data("cert.pem")).unwrap()).unwrap();
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let name = ServerName::try_from("localhost").unwrap();
    Box::new(soon(TlsConnector::from(Arc::new(config)).connect(name, plain(port).await)).await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn websockets_posts_and_streams_are_served_over_tls() {
    let (_stage, http, streams) = stage().await;
    let mut app = App::open(secure(http).await, "app:polite", &[bearer("app:polite")]).await.unwrap();
    app.is_served().await;
    let large = app.call("echo@1/big", json!([])).await.unwrap();
    assert_eq!(large["$base64"].as_str().map(str::len), Some(133_336));
    let mut post = secure(http).await;
    let headers = [bearer("app:polite"), ("Content-Type", "application/json".to_owned())];
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "echo@1/sender" }).to_string();
    post.write_all(request("POST", "/v1/peers/app:polite/rpc", &headers, &body).as_bytes()).await.unwrap();
    assert_eq!(Response::read(&mut post).await.unwrap().json()["result"], "app:polite");
    let mut stream = secure(streams).await;
    let line = format!("app:polite {} publish news.a lines\n1\n2\n", token_of("app:polite"));
    stream.write_all(line.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    soon(stream.read_to_string(&mut answer)).await.unwrap();
    assert_eq!(answer, "ok\ndone 2\n");
    app.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_tls_learns_nothing_and_half_a_handshake_ends() {
    let (stage, http, streams) = stage().await;
    let mut app = App::open(secure(http).await, "app:polite", &[bearer("app:polite")]).await.unwrap();
    let text = request("POST", "/v1/peers/app:polite/rpc", &[bearer("app:polite")], "{}");
    let line = format!("app:polite {} publish news.a lines\n1\n", token_of("app:polite"));
    for (port, text) in [(http, text), (streams, line)] {
        let mut stream = plain(port).await;
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _reset = soon(stream.read_to_end(&mut answer)).await;
        // A TLS alert at most.
        assert!(answer.len() <= 7, "{answer:?}");
    }
    // The length of a first record, and nothing of it; and many of those.
    let mut crowd = Vec::new();
    for number in 0..100 {
        let mut stream = plain(if number % 2 == 0 { http } else { streams }).await;
        stream.write_all(&[22, 3, 1, 2, 0]).await.unwrap();
        crowd.push(stream);
    }
    app.is_served().await;
    App::open(secure(http).await, "app:polite", &[bearer("app:polite")]).await.unwrap().is_served().await;
    let began = Instant::now();
    for stream in &mut crowd {
        let mut answer = Vec::new();
        let _reset = soon(stream.read_to_end(&mut answer)).await;
    }
    assert!(began.elapsed() < Duration::from_secs(14), "{:?}", began.elapsed());
    app.is_served().await;
    assert!(stage.sessions() >= 1);
}

#[test]
fn a_certificate_that_cannot_be_used_is_named_and_its_key_is_not_shown() {
    let dir = tempfile::tempdir().unwrap();
    let (certificate, key) =
        (std::fs::read(data("cert.pem")).unwrap(), std::fs::read(data("key.pem")).unwrap());
    for (certificate, key, named) in [
        (None, Some(&key), "cert.pem"),
        (Some(&certificate), None, "key.pem"),
        (Some(&key), Some(&key), "cert.pem"),
        (Some(&certificate), Some(&certificate), "key.pem"),
        (Some(&Vec::new()), Some(&key), "cert.pem"),
        (Some(&vec![0xff; 100]), Some(&key), "cert.pem"),
    ] {
        for (name, content) in [("cert.pem", certificate), ("key.pem", key)] {
            let path = dir.path().join(name);
            match content {
                Some(content) => std::fs::write(path, content).unwrap(),
                None => drop(std::fs::remove_file(path)),
            }
        }
        let text = "[gateway]\nlisten = ['unix:a']\ntls.certificate = 'cert.pem'\ntls.key = 'key.pem'";
        let config =
            weir_host::loader().section::<GatewayConfig>().parse(text, "weir.toml", dir.path()).unwrap();
        let error = Gateway::bind(config.section::<GatewayConfig>().unwrap()).unwrap_err().to_string();
        assert!(error.contains(named) && !error.contains("PRIVATE"), "{error}");
    }
}
