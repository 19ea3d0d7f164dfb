//! What the guest has beside channels.

use std::{fs, time::Instant};

use crate::{language::Language, stage::Stage};

pub(super) async fn configuration(language: &Language) {
    let stage = Stage::new(language).await;
    assert_eq!(stage.told("config", "key").await, "ok of the operator");
    assert_eq!(stage.told("config", "other").await, "none");
}

pub(super) async fn environment(language: &Language) {
    let stage = Stage::new(language).await;
    assert_eq!(stage.told("env", "CONFORMANCE").await, "ok of the operator");
    assert_eq!(stage.told("env", "HOME").await, "none");
}

pub(super) async fn directory(language: &Language) {
    let stage = Stage::new(language).await;
    assert_eq!(stage.told("write", "/data/made two  words").await, "ok");
    assert_eq!(fs::read_to_string(stage.dir.path().join("made")).unwrap(), "two  words");
    fs::write(stage.dir.path().join("given"), "of the operator").unwrap();
    assert_eq!(stage.told("read", "/data/given").await, "ok of the operator");
    for path in ["/data/none", "/etc/passwd", "/data/../etc/passwd"] {
        let refused = stage.told("read", path).await;
        assert!(refused.starts_with("error"), "{path}: {refused}");
    }
}

pub(super) async fn timer(language: &Language) {
    let mut stage = Stage::new(language).await;
    let start = Instant::now();
    assert_eq!(stage.told("sleep", "120").await, "");
    assert!(start.elapsed().as_millis() >= 120, "{:?}", start.elapsed());
    assert_eq!(stage.heard("slept").await, "120");
}
