//! TLS, with the certificates of the tests of `host/http`.

use std::{fs, path::PathBuf, sync::Arc};

use tokio_rustls::rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use crate::{
    fake::{Fake, Held, Package, answer},
    run::{Ended, Place},
};

fn data(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../host/http/tests/data")).join(name)
}

/// A registry with TLS, whose blobs are to be had there if there is such a place.
fn registry(held: Held, blobs: Option<String>) -> Fake {
    let certificates =
        CertificateDer::pem_file_iter(data("valid.pem")).unwrap().map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(data("valid.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = Arc::new(config.with_single_cert(certificates, key).unwrap());
    let redirect = move |request: &crate::fake::Request, stream: &mut dyn crate::fake::Stream| {
        let to = blobs.as_ref().filter(|_| request.target.contains("/blobs/"))?;
        Some(answer(stream, 307, &format!("Location: {to}{}\r\n", request.target), b""))
    };
    Fake::over(held, redirect, move |stream| {
        Box::new(StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream))
    })
}

#[test]
fn a_registry_is_known_by_its_certificate() {
    let (fake, place) = (registry(Package::new().held(), None), Place::new());
    let pull = |ca: &str| {
        let ca = data(ca).into_os_string().into_string().unwrap();
        place.run(&["pull", &fake.reference(), "pulled", "--ca-file", &ca])
    };
    pull("other-ca.pem").failed(3, "no TLS: invalid peer certificate");
    pull("valid.key").failed(1, "it has no certificate");
    pull("none.pem").failed(1, "cannot take the certificates of");
    assert!(place.names().is_empty());
    pull("ca.pem").ok();
}

#[test]
fn certificates_for_a_registry_are_where_podman_has_them() {
    let (fake, place) = (registry(Package::new().held(), None), Place::new());
    // Without certificates of its own, a registry on this machine is taken for one without TLS.
    place.pull(&fake.reference()).failed(1, "did not answer as a registry does");
    let folder = place.path().join(".config/containers/certs.d").join(&fake.authority);
    fs::create_dir_all(&folder).unwrap();
    fs::copy(data("other-ca.pem"), folder.join("other.crt")).unwrap();
    place.pull(&fake.reference()).failed(3, "no TLS: invalid peer certificate");
    fs::copy(data("ca.pem"), folder.join("ca.crt")).unwrap();
    place.pull(&fake.reference()).ok();
}

#[test]
fn what_begins_with_tls_does_not_go_on_without() {
    let elsewhere = Fake::honest();
    let to = format!("http://{}", elsewhere.authority);
    let (fake, place) = (registry(Package::new().held(), Some(to)), Place::new());
    let ca = data("ca.pem").into_os_string().into_string().unwrap();
    let ended = place.run(&["pull", &fake.reference(), "pulled", "--ca-file", &ca]);
    ended.failed(1, "it is plain `http`, and the answer that names it came over TLS");
    assert!(elsewhere.seen().is_empty() && place.names().is_empty());
}

#[test]
fn certificates_for_a_registry_vouch_for_no_other_host() {
    let elsewhere = registry(Package::new().held(), None);
    let to = format!("https://{}", elsewhere.authority);
    let (fake, place) = (registry(Package::new().held(), Some(to)), Place::new());
    let trust = |host: &str| {
        let folder = place.path().join(".config/containers/certs.d").join(host);
        fs::create_dir_all(&folder).unwrap();
        fs::copy(data("ca.pem"), folder.join("ca.crt")).unwrap();
    };
    trust(&fake.authority);
    let refused = format!("cannot reach `{}`: no TLS: invalid peer certificate", elsewhere.authority);
    place.pull(&fake.reference()).failed(3, &refused);
    assert!(elsewhere.seen().is_empty());
    trust(&elsewhere.authority);
    place.pull(&fake.reference()).ok();
    assert_eq!(elsewhere.seen().len(), 3);
}

#[test]
fn a_named_file_of_certificates_counts_alone_for_the_registry_and_beside_others_for_hosts_that_it_names() {
    let elsewhere = registry(Package::new().held(), None);
    let to = format!("https://{}", elsewhere.authority);
    let fake = registry(Package::new().held(), Some(to));
    let place = Place::new();
    let pull = |ca_file: &str, system: &str| {
        let mut command = place.command(&["pull", &fake.reference(), "pulled"]);
        command.env("WEIR_REGISTRY_CA_FILE", data(ca_file)).env("SSL_CERT_FILE", data(system));
        Ended::of(command.output().unwrap())
    };
    let of_registry = format!("cannot reach `{}`: no TLS", fake.authority);
    pull("other-ca.pem", "ca.pem").failed(3, &of_registry);
    assert!(elsewhere.seen().is_empty());
    pull("ca.pem", "other-ca.pem").ok();
    assert_eq!(elsewhere.seen().len(), 3);
}
