//! Each case of `weir:iec/types.error`: raised, and read by the guest.

use crate::{
    language::Language,
    stage::{GUEST, Stage, guest},
};

/// A call of `other@1`, which does as it is told.
async fn told_to(stage: &Stage, command: &str) -> String {
    stage.calls(&format!("other@1 run - 0 {command}")).await
}

fn has(outcome: &str, case: &str, text: &str) {
    let is = outcome.strip_prefix(&format!("error {case} ")).is_some_and(|rest| rest.contains(text));
    assert!(is, "`{outcome}` is not `{case}` with `{text}`");
}

pub(super) async fn error_permission_denied(language: &Language) {
    let stage = Stage::new(language).await;
    has(&stage.calls("secret@1 run - 0 x").await, "permission-denied", "`secret@1`");
}

pub(super) async fn error_unknown_contract(language: &Language) {
    let stage = Stage::new(language).await;
    has(&stage.calls("nobody@1 run - 0 x").await, "unknown-contract", "nobody@1");
}

pub(super) async fn error_no_provider(language: &Language) {
    let stage = Stage::new(language).await;
    stage.main.control().stop("other").await.unwrap();
    has(&told_to(&stage, "echo").await, "no-provider", "other");
}

pub(super) async fn error_not_ready(language: &Language) {
    let stage = Stage::new(language).await;
    stage.other("interrupted out of paper").await.unwrap();
    has(&told_to(&stage, "echo").await, "not-ready", "out of paper");
}

pub(super) async fn error_timeout(language: &Language) {
    let stage = Stage::new(language).await;
    assert_eq!(stage.calls("tester@1 pass - 50 x").await, "error timeout");
}

pub(super) async fn error_overloaded(language: &Language) {
    let stage = Stage::new(language).await;
    stage.put("conformance-out", "fills it").await;
    assert_eq!(stage.told("put", "conformance-out 0 x").await, "error overloaded conformance-out");
}

pub(super) async fn error_peer_gone(language: &Language) {
    let stage = Stage::new(language).await;
    assert_eq!(told_to(&stage, "exit 3").await, "error peer-gone");
}

pub(super) async fn error_trapped(language: &Language) {
    let stage = Stage::new(language).await;
    assert_eq!(told_to(&stage, "trap").await, "error trapped");
}

pub(super) async fn error_limit_exceeded(language: &Language) {
    let mut stage = Stage::with(language, |config| guest(config).limits.in_flight = 2).await;
    for number in 0..3 {
        assert_eq!(stage.told("send", &format!("tester@1 pass - 0 {number}")).await, "ok");
    }
    assert_eq!(stage.heard("response").await, "error limit-exceeded in-flight 3 2");
    // One after the other: two answers at once may come in either order.
    for answer in ["ok 0", "ok 1"] {
        stage.gate.open(1);
        assert_eq!(stage.heard("response").await, answer);
    }
}

/// The other waits for the guest in a blocking call, while the guest would wait for room in the other's inbox.
pub(super) async fn error_would_deadlock(language: &Language) {
    let stage = Stage::new(language).await;
    stage.other("subscribe conformance.out.full").await.unwrap();
    let publish = "call conformance@1 publish conformance.out.full again";
    let calls = format!("all call tester@1 pass; {publish}");
    let answer = stage.other(&calls);
    let meanwhile = async {
        stage.gate.arrived(1).await;
        stage.main.client().publish_to("other", "conformance.out.full", "fills it").await.unwrap();
        stage.gate.open(1);
    };
    let (answer, ()) = tokio::join!(answer, meanwhile);
    assert_eq!(answer.unwrap().trim(), format!("error would-deadlock {GUEST} other {GUEST}"));
}

pub(super) async fn error_too_large(language: &Language) {
    let stage = Stage::new(language).await;
    assert_eq!(told_to(&stage, &"x".repeat(5000)).await, "error too-large 5000 4096");
}

pub(super) async fn error_invalid(language: &Language) {
    let stage = Stage::new(language).await;
    has(&stage.calls("tester@1 none - 0 x").await, "invalid", "none");
    has(&stage.told("publish", "conformance..out x").await, "invalid", "conformance..out");
}

pub(super) async fn error_handler(language: &Language) {
    let stage = Stage::new(language).await;
    assert_eq!(told_to(&stage, "error it is cold").await, "error handler refused it is cold");
}
