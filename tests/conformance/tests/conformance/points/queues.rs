//! Jobs that the guest puts and takes.

use weir_host::control::ExtensionState;

use crate::{
    language::Language,
    stage::{GUEST, Stage, restart, until},
};

const JOBS: &str = "conformance-jobs";

pub(super) async fn put(language: &Language) {
    let stage = Stage::new(language).await;
    assert_eq!(stage.told("put", "conformance-out 0 two  words").await, "ok");
    let job = stage.main.client().queue("conformance-out").unwrap().take().await.unwrap();
    assert_eq!((&*job.sender(), &**job.payload()), (GUEST, &b"two  words"[..]));
    job.done();
    let refused = stage.told("put", "conformance-jobs 0 x").await;
    assert!(refused.starts_with("error permission-denied "), "{refused}");
}

pub(super) async fn job_done(language: &Language) {
    let mut stage = Stage::new(language).await;
    for job in ["one", "two  words"] {
        stage.put(JOBS, job).await;
        assert_eq!(stage.heard("worked").await, job);
    }
    until(|| stage.queue(JOBS).done == 2).await;
}

/// A dead letter, after two deliveries and so many failures of the guest.
async fn dies(stage: &Stage, job: &str, failures: usize) {
    stage.put(JOBS, job).await;
    let dead = stage.main.client().queue("conformance-dead").unwrap().take().await.unwrap();
    assert_eq!(&**dead.payload(), job.as_bytes());
    dead.done();
    assert_eq!(stage.queue(JOBS).done, 0);
    // The job is dead before Main says that the guest has failed. After that it starts again.
    until(|| stage.main.control().status(GUEST).unwrap().failures.len() == failures).await;
    stage.reached(ExtensionState::Ready).await;
    assert_eq!(stage.told("echo", "on").await, "on");
}

pub(super) async fn job_given_back(language: &Language) {
    let stage = Stage::new(language).await;
    dies(&stage, "fail", 0).await;
    assert_eq!(stage.main.control().status(GUEST).unwrap().failures.len(), 0);
}

pub(super) async fn job_died_with(language: &Language) {
    let stage = Stage::with(language, restart).await;
    dies(&stage, "die", 2).await;
    assert_eq!(stage.main.control().status(GUEST).unwrap().failures.len(), 2);
}

pub(super) async fn take_one_job(language: &Language) {
    let stage = Stage::new(language).await;
    assert_eq!(stage.told("take", "conformance-more 50").await, "error timeout");
    for job in ["one", "two"] {
        stage.put("conformance-more", job).await;
    }
    assert_eq!(stage.told("take", "conformance-more 20000").await, "ok one");
    until(|| stage.queue("conformance-more").done == 1).await;
    assert_eq!(stage.queue("conformance-more").waiting, 1);
}
