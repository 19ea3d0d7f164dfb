//! Of several instances, the last one tries a new version. The others follow once it has proved itself.

use std::time::Duration;

use futures_util::future::join_all;
use weir_host::{
    Main,
    control::{ControlError, Standing},
};

use super::{
    support::PATIENCE,
    versions::{Answers, Device, ask, standing_of, start, versions},
};

const IDS: [&str; 3] = ["a", "a.2", "a.3"];

/// Gives this order as soon as no instance is on its way to a version.
async fn once_free(order: impl AsyncFn() -> Result<(), ControlError>) {
    while let Err(refused) = order().await {
        assert!(matches!(refused, ControlError::Reloading(_)), "{refused}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A device whose extension has three instances, and a proven version that has had so many requests.
async fn proven(update: &str, requests: u64) -> (Device, Main) {
    let device = Device::new(update);
    device.configure(update, "instances = 3");
    let main = device.start_proven(requests).await;
    (device, main)
}

/// The versions that the instances run.
fn run(main: &Main) -> [Option<u64>; 3] {
    IDS.map(|id| main.control().status(id).unwrap().version.map(|version| version.number))
}

/// Waits until the instances run these versions and are ready.
async fn until_run(main: &Main, numbers: [u64; 3]) {
    let is_ready = |id: &&str| main.control().status(id).unwrap().state.to_string() == "ready";
    let runs = async {
        while run(main) != numbers.map(Some) || !IDS.iter().all(is_ready) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let in_time = tokio::time::timeout(PATIENCE, runs).await;
    assert!(in_time.is_ok(), "{:?} {:#?}", run(main), versions(main));
}

/// Sends so many requests, twelve at once, so that all instances work.
async fn ask_all(main: &Main, requests: u64) -> Answers {
    let answers = join_all((0..12).map(|_| ask(main.client(), requests / 12))).await;
    let mut all = Answers::default();
    answers.iter().for_each(|more| all.add(more));
    all
}

/// Sends requests until version 2 has this standing.
async fn ask_until(main: &Main, standing: Standing) -> Answers {
    let mut all = Answers::default();
    let asked = async {
        while standing_of(&versions(main), 2) == Some(Standing::Probation) {
            all.add(&ask_all(main, 24).await);
        }
    };
    let in_time = tokio::time::timeout(PATIENCE, asked).await;
    assert_eq!(standing_of(&versions(main), 2), Some(standing), "{:#?}", versions(main));
    in_time.unwrap();
    all
}

/// Figures decide, but not those that a busy machine changes.
const FIGURES: &str =
    "update = { prove-for = '32s', min-requests = 60, max-failures = 1000, max-latency = '100x' }";

/// Failures alone decide.
const FAILURES: &str = "update = { prove-for = '1h', min-requests = 1_000_000 }";

#[tokio::test]
async fn a_bad_version_is_tried_by_one_instance_and_refused_for_all() {
    for (name, update, reason) in [
        ("start", FAILURES, "it did not come up"),
        ("fiftieth", FAILURES, "it failed 2 times"),
        ("errors", FIGURES, "requests failed"),
    ] {
        let (device, main) = proven(update, if update == FIGURES { 200 } else { 0 }).await;
        device.put(name);
        let reloaded = main.control().reload_extension("a").await;
        if name == "start" {
            assert!(reloaded.unwrap_err().to_string().contains("was not reloaded"));
        } else {
            reloaded.unwrap();
            assert_eq!(versions(&main).canary, Some(2));
            assert_eq!(run(&main), [Some(1), Some(1), Some(2)], "{name}");
        }
        let answers = ask_until(&main, Standing::Refused).await;
        let version = versions(&main).versions.into_iter().find(|version| version.number == 2).unwrap();
        assert!(version.reason.as_ref().unwrap().contains(reason), "{version:#?}");
        if name == "errors" {
            // Of its own requests each fifth failed, though the others had most.
            let (failed, requests) = (version.figures.other_errors(), version.figures.requests());
            assert!(failed * 5 >= requests - 5 && failed <= answers.errors, "{failed} of {requests}");
            assert!(requests <= answers.bad + answers.errors && answers.good > 0, "{answers:?}");
        }
        until_run(&main, [1, 1, 1]).await;
        assert_eq!((versions(&main).canary, versions(&main).serving), (None, Some(1)));
        let answers = ask_all(&main, 60).await;
        assert_eq!(answers.good, 60, "{name}: {answers:?}");
        // What was refused is run by no instance after a restart.
        main.shutdown().await.unwrap();
        let main = device.start().await;
        until_run(&main, [1, 1, 1]).await;
        main.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn a_good_version_is_proven_by_the_canary_over_a_restart_and_the_others_follow() {
    let (device, main) = proven("update = { prove-for = '2s', min-requests = 1_000_000 }", 0).await;
    device.put("good2");
    main.control().reload_extension("a").await.unwrap();
    assert_eq!(run(&main), [Some(1), Some(1), Some(2)]);
    let answers = ask_all(&main, 120).await;
    assert_eq!(answers.good, 120);
    main.shutdown().await.unwrap();
    // The file is the new one, and yet only the canary runs it.
    let main = device.start().await;
    if standing_of(&versions(&main), 2) == Some(Standing::Probation) {
        assert_eq!((run(&main), versions(&main).held_back), ([Some(1), Some(1), Some(2)], None));
    }
    let answers = ask_until(&main, Standing::Proven).await;
    assert_eq!((answers.bad, answers.trapped, answers.errors, answers.turned_away), (0, 0, 0, 0));
    until_run(&main, [2, 2, 2]).await;
    assert_eq!((versions(&main).canary, versions(&main).serving), (None, Some(2)));
    let hashes = IDS.map(|id| main.control().status(id).unwrap().hash);
    assert_eq!(hashes[0], hashes[2]);
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn an_operator_accepts_or_rolls_back_a_canary_or_reloads_all_instances() {
    let (device, main) = proven(FAILURES, 0).await;
    let control = main.control();
    device.put("good2");
    control.reload_extension("a").await.unwrap();
    until_run(&main, [1, 1, 2]).await;
    // An instance that is started anew runs the version before.
    control.restart("a").await.unwrap();
    until_run(&main, [1, 1, 2]).await;
    control.roll_back("a", None).await.unwrap();
    until_run(&main, [1, 1, 1]).await;
    device.put("good3");
    once_free(async || control.reload_extension("a").await).await;
    until_run(&main, [1, 1, 3]).await;
    control.accept_version("a").await.unwrap();
    until_run(&main, [3, 3, 3]).await;
    device.put("good4");
    once_free(async || control.reload_extension_now("a").await).await;
    until_run(&main, [4, 4, 4]).await;
    assert_eq!(standing_of(&versions(&main), 4), Some(Standing::Proven));
    assert_eq!(ask_all(&main, 60).await.good, 60);
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_reload_of_the_configuration_tries_a_version_too_and_changes_all_if_they_get_other_messages() {
    let (device, main) = proven(FAILURES, 0).await;
    let control = main.control();
    device.configure(FAILURES, "instances = 3\nlimits.memory = '9 MiB'");
    let report = control.reload().await.unwrap();
    assert!(report.failed.is_empty(), "{report:#?}");
    until_run(&main, [1, 1, 2]).await;
    device.configure(FAILURES, "instances = 3\nlimits.memory = '9 MiB'\nsubscribes = ['t']");
    assert!(control.reload().await.unwrap().failed.is_empty());
    until_run(&main, [3, 3, 3]).await;
    // With one instance there is none to try it.
    control.accept_version("a").await.unwrap();
    device.put("good2");
    control.reload_extension("a").await.unwrap();
    until_run(&main, [3, 3, 4]).await;
    device.configure(FAILURES, "limits.memory = '9 MiB'\nsubscribes = ['t']");
    assert!(control.reload().await.unwrap().failed.is_empty());
    assert_eq!((versions(&main).canary, versions(&main).serving), (None, Some(4)));
    main.shutdown().await.unwrap();
    let main = start(device.dir()).await;
    assert_eq!(versions(&main).serving, Some(4));
    main.shutdown().await.unwrap();
}
