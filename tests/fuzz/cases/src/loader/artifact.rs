//! Signed artifacts, changed after signing.

use std::{fs, sync::LazyLock};

use weir_host::{
    component::{self, Compilation, SigningKey},
    config::{Limits, Traces, TrustedKey},
};

use super::{ARTIFACT_SIZE, changed, check, small_component};
use crate::scratch;

// Made for this test. The same in every run, so that findings can be repeated.
const TRUSTED: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB
-----END PRIVATE KEY-----
";
const OTHER: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIAICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIC
-----END PRIVATE KEY-----
";

/// Loaded if unchanged, refused otherwise.
pub(super) fn check_trusted(changes: &[u8]) {
    static SIGNED: LazyLock<Vec<u8>> = LazyLock::new(|| signed_by(TRUSTED));
    let artifact = changed(&SIGNED, changes);
    let checked = check(&artifact, ARTIFACT_SIZE);
    assert_eq!(checked.is_ok(), artifact == *SIGNED, "{checked:?}");
}

/// Refused, changed or not.
pub(super) fn check_other(changes: &[u8]) {
    static SIGNED: LazyLock<Vec<u8>> = LazyLock::new(|| signed_by(OTHER));
    let artifact = changed(&SIGNED, changes);
    assert!(check(&artifact, ARTIFACT_SIZE).is_err(), "it was loaded");
}

pub(super) fn trusted_key() -> TrustedKey {
    static KEY: LazyLock<TrustedKey> = LazyLock::new(|| key(TRUSTED).trusted_key());
    *KEY
}

fn signed_by(pem: &str) -> Vec<u8> {
    let dir = scratch();
    let path = dir.path().join("small.wasm");
    fs::write(&path, small_component()).unwrap();
    component::compile(&path, None, &Limits::default(), Traces::default(), &Compilation::InProcess, &key(pem))
        .unwrap()
}

fn key(pem: &str) -> SigningKey {
    SigningKey::from_pem(pem).unwrap()
}
