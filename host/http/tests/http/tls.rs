//! Certificates: which ones are trusted, and for which host.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

use super::support::*;
use weir_http::{HttpConfig, HttpError, HttpSender};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

async fn server(certificate: &str) -> Server {
    let chain = vec![CertificateDer::from_pem_file(data(certificate)).unwrap()];
    let key = PrivateKeyDer::from_pem_file(data("valid.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Server::raw(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let service = service_fn(|_| async { Ok::<_, std::convert::Infallible>(text("secret")) });
            let _ended = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        }
    })
    .await
}

fn bench(ca_file: &str) -> Bench {
    let bench = Bench::with(|config| config.ca_file = Some(data(ca_file)));
    bench.names.set("secure.test", &[&["127.0.0.1"]]);
    bench.names.set("other.test", &[&["127.0.0.1"]]);
    bench
}

#[tokio::test]
async fn a_certificate_that_is_trusted_serves_its_names_and_addresses() {
    let (bench, server) = (bench("ca.pem"), server("valid.pem").await);
    let port = server.address.port();
    for host in ["secure.test", "127.0.0.1"] {
        let url = format!("https://{host}:{port}");
        let guest = bench.guest(&[grant_at(&url, &["loopback"])]);
        for _ in 0..3 {
            assert_eq!(guest.fetch(&url).await.unwrap().1, "secret", "{url}");
        }
    }
    assert_eq!(server.accepted(), 2);
}

#[tokio::test]
async fn every_other_certificate_is_refused() {
    for (trusted, certificate, host) in [
        ("other-ca.pem", "valid.pem", "secure.test"),
        ("ca.pem", "expired.pem", "secure.test"),
        ("ca.pem", "valid.pem", "other.test"),
    ] {
        let (bench, server) = (bench(trusted), server(certificate).await);
        let url = format!("https://{host}:{}", server.address.port());
        let guest = bench.guest(&[grant_at(&url, &["loopback"])]);
        let refused = guest.fetch(&url).await.unwrap_err();
        assert!(matches!(refused, HttpError::Certificate(_)), "{trusted} {certificate} {host}: {refused:?}");
        bench.connections(0, 0).await;
    }
}

#[tokio::test]
async fn a_server_without_tls_is_not_spoken_to_in_plain() {
    let (bench, server) = (bench("ca.pem"), Server::echo().await);
    let url = format!("https://secure.test:{}", server.address.port());
    let guest = bench.guest(&[grant_at(&url, &["loopback"])]);
    let refused = guest.fetch(&url).await.unwrap_err();
    assert!(matches!(refused, HttpError::Tls(_)), "{refused:?}");
}

#[test]
fn a_file_without_certificates_is_refused_at_the_start() {
    let refused = |path: PathBuf| {
        let mut config = HttpConfig::default();
        config.ca_file = Some(path);
        HttpSender::new(&config, Arc::new(|_| ()))
            .unwrap_err()
            .to_string()
            .replace(env!("CARGO_MANIFEST_DIR"), "DIR")
    };
    let said = ["none.pem", "valid.key"].map(|name| refused(data(name))).join("\n");
    insta::assert_snapshot!(said, @r"
    the certificates of `http.ca-file`, `DIR/tests/data/none.pem`, cannot be used: I/O error: No such file or directory (os error 2)
    the certificates of `http.ca-file`, `DIR/tests/data/valid.key`, cannot be used: it has no certificate
    ");
}
