//! A new version is on probation, and gives way to the one before if it does not hold.

use std::{fs, path::Path, time::Duration};

use tempfile::TempDir;
use weir_host::{
    Client, Error, Main,
    control::{ControlError, ExtensionState, Standing, VersionError, VersionsStatus},
};

use super::reload::write;

/// A device: a configuration, a component and a state directory, over any number of starts of Main.
pub(crate) struct Device(TempDir);

/// What became of requests.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) good: u64,
    pub(crate) bad: u64,
    pub(crate) trapped: u64,
    pub(crate) errors: u64,
    pub(crate) turned_away: u64,
}

impl Answers {
    pub(crate) fn add(&mut self, more: &Self) {
        let Self { good, bad, trapped, errors, turned_away } = more;
        self.good += good;
        self.bad += bad;
        self.trapped += trapped;
        self.errors += errors;
        self.turned_away += turned_away;
    }
}

impl Device {
    /// With this `update` of the extension.
    pub(crate) fn new(update: &str) -> Self {
        let device = Self(tempfile::tempdir().unwrap());
        device.configure(update, "");
        fs::create_dir(device.dir().join("data")).unwrap();
        device
    }

    pub(crate) fn dir(&self) -> &Path {
        self.0.path()
    }

    /// Writes the configuration, with more keys of the extension.
    pub(crate) fn configure(&self, update: &str, more: &str) {
        let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache");
        let text = format!(
            "[main]\nstate-dir = 'state'\ndata-dir = 'stores'\ncache-dir = '{cache}'\nrequest-timeout = '2m'\n\
             [[extension]]\nid = 'a'\npath = 'a.wasm'\nfulfills = ['updated@1']\n\
             limits.ready-timeout = '2m'\nrestart = {{ backoff = '1ms', max-backoff = '1ms' }}\n\
             grants.dirs = [{{ host = 'data', guest = '/data', mode = 'rw' }}]\n{update}\n{more}\n"
        );
        write(&self.dir().join("weir.toml"), text.as_bytes());
    }

    pub(crate) fn put(&self, name: &str) {
        write(&self.dir().join("a.wasm"), &test_guests::updated(name));
    }

    pub(crate) async fn start(&self) -> Main {
        start(self.dir()).await
    }

    /// Starts Main with a proven version `good`, which has had so many requests.
    pub(crate) async fn start_proven(&self, requests: u64) -> Main {
        self.put("good");
        let main = self.start().await;
        // What comes in the first moments is not counted.
        while versions(&main).versions.iter().all(|version| version.figures.requests() < requests) {
            assert_eq!(ask(main.client(), 60).await.good, 60);
        }
        // Its time may be over already.
        let _proven = main.control().accept_version("a").await;
        assert_eq!(standing_of(&versions(&main), 1), Some(Standing::Proven));
        main
    }
}

pub(crate) async fn start(dir: &Path) -> Main {
    let config = weir_host::load(&dir.join("weir.toml")).unwrap();
    Main::builder(config).start().await.unwrap()
}

/// Sends so many requests, one after the other.
pub(crate) async fn ask(client: &Client, requests: u64) -> Answers {
    let mut answers = Answers::default();
    for _ in 0..requests {
        match client.call("updated@1", "work", "").await {
            Ok(name) if name.starts_with(b"good") => answers.good += 1,
            Ok(_) => answers.bad += 1,
            Err(Error::Trapped) => answers.trapped += 1,
            Err(Error::Handler(_)) => answers.errors += 1,
            // A version that has failed starts again after a delay, as ever.
            Err(Error::NoProvider(_) | Error::PeerGone) => {
                answers.turned_away += 1;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Err(other) => panic!("a request was lost: {other:?}"),
        }
    }
    answers
}

/// Sends requests until this version is on probation no more, and has this standing.
pub(crate) async fn ask_until(main: &Main, version: u64, standing: Standing) -> Answers {
    let asked = ask_on_probation(main, version);
    let answers = tokio::time::timeout(super::support::PATIENCE, asked).await;
    assert_eq!(standing_of(&versions(main), version), Some(standing), "{:#?}", versions(main));
    answers.unwrap()
}

async fn ask_on_probation(main: &Main, version: u64) -> Answers {
    let mut all = Answers::default();
    while standing_of(&versions(main), version) == Some(Standing::Probation) {
        all.add(&ask(main.client(), 5).await);
    }
    all
}

pub(crate) fn versions(main: &Main) -> VersionsStatus {
    main.control().versions("a").unwrap()
}

pub(crate) fn standing_of(versions: &VersionsStatus, number: u64) -> Option<Standing> {
    versions.versions.iter().find(|version| version.number == number).map(|version| version.standing)
}

pub(crate) fn why(versions: &VersionsStatus, number: u64) -> String {
    let version = versions.versions.iter().find(|version| version.number == number);
    version.and_then(|version| version.reason.clone()).unwrap_or_default()
}

/// Waits until version 1 serves, and checks that it does so within its figures.
pub(crate) async fn serves_the_first(main: &Main) {
    let serves = async {
        while main.control().status("a").unwrap().version.map(|version| version.number) != Some(1) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let in_time = tokio::time::timeout(super::support::PATIENCE, serves).await;
    assert!(in_time.is_ok(), "{:#?}\n{:#?}", main.control().status("a"), versions(main));
    let answers = ask(main.client(), 20).await;
    assert_eq!(answers.good, 20, "{answers:?}");
}

/// Failures alone decide, because a busy machine may be slow at any moment.
const UPDATE: &str = "update = { prove-for = '1h', min-requests = 1_000_000 }";

#[tokio::test]
async fn each_bad_version_gives_way_to_the_one_before_and_the_record_says_why() {
    let errors = "prove-for = '10s', min-requests = 50, max-latency = '1000x', max-memory = '1000x'";
    let slow = "prove-for = '40s', min-requests = 20, max-memory = '1000x'";
    let leak = "prove-for = '10s', min-requests = 50, max-latency = '1000x'";
    let bad = [
        ("fiftieth", "", "it failed 2 times, and 1 may be"),
        ("errors", errors, "requests failed, and 5% may"),
        ("slow", slow, "the 99th percentile of its requests takes"),
        ("leak", leak, "its memory is"),
        ("data", "", "it failed 2 times, and 1 may be"),
    ];
    for (name, update, reason) in bad {
        let (update, requests) = match update {
            "" => (UPDATE.to_owned(), 0),
            update => (format!("update = {{ {update} }}"), 60),
        };
        let device = Device::new(&update);
        let main = device.start_proven(requests).await;
        device.put(name);
        main.control().reload_extension("a").await.unwrap();
        assert_eq!(standing_of(&versions(&main), 2), Some(Standing::Probation), "{name}");
        ask_until(&main, 2, Standing::Refused).await;
        assert!(why(&versions(&main), 2).contains(reason), "{name}: {}", why(&versions(&main), 2));
        serves_the_first(&main).await;
        main.shutdown().await.unwrap();

        // The file is still the bad one.
        let main = device.start().await;
        serves_the_first(&main).await;
        let versions = versions(&main);
        assert_eq!((versions.serving, versions.fallback), (Some(1), Some(1)), "{name}");
        assert!(versions.held_back.unwrap().starts_with("version 2 was refused: "), "{name}");
        assert_eq!(versions.changes.len(), 2, "{name}");
        main.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn a_version_that_does_not_come_up_is_not_loaded_at_the_next_start_either() {
    for overlap in ["", "reload = 'overlap'"] {
        let device = Device::new(UPDATE);
        device.configure(UPDATE, overlap);
        let main = device.start_proven(0).await;
        device.put("start");
        let error = main.control().reload_extension("a").await.unwrap_err();
        assert!(matches!(error, ControlError::NotReloaded { .. }), "{error:?}");
        assert!(why(&versions(&main), 2).starts_with("it did not come up: "), "{:?}", versions(&main));
        serves_the_first(&main).await;
        let again = main.control().reload_extension("a").await.unwrap_err().to_string();
        assert!(again.contains("version 2 was refused"), "{again}");
        main.shutdown().await.unwrap();
        for _ in 0..2 {
            let main = device.start().await;
            serves_the_first(&main).await;
            assert_eq!(main.control().status("a").unwrap().restarts, 0);
            main.shutdown().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_pinned_hash_holds_with_versions_too() {
    let device = Device::new(UPDATE);
    device.put("good");
    let pinned = "sha256 = '0000000000000000000000000000000000000000000000000000000000000000'";
    device.configure(UPDATE, pinned);
    let main = device.start().await;
    let status = main.control().status("a").unwrap();
    assert!(status.reason.as_ref().is_some_and(|reason| reason.contains("SHA-256")), "{status:?}");
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_version_that_fails_only_after_a_restart_of_main_gives_way_then() {
    let device = Device::new(UPDATE);
    let main = device.start_proven(0).await;
    device.put("again");
    main.control().reload_extension("a").await.unwrap();
    assert_eq!(ask(main.client(), 10).await.bad, 10);
    main.shutdown().await.unwrap();
    let main = device.start().await;
    serves_the_first(&main).await;
    assert!(why(&versions(&main), 2).starts_with("it did not come up: "), "{:?}", versions(&main));
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_bad_file_that_comes_while_main_is_down_gives_way_and_so_does_a_missing_one() {
    let device = Device::new(UPDATE);
    device.start_proven(0).await.shutdown().await.unwrap();
    device.put("start");
    let main = device.start().await;
    serves_the_first(&main).await;
    main.shutdown().await.unwrap();
    fs::remove_file(device.dir().join("a.wasm")).unwrap();
    let main = device.start().await;
    serves_the_first(&main).await;
    assert!(versions(&main).held_back.unwrap().contains("a.wasm"), "{:?}", versions(&main));
    device.put("good2");
    main.control().reload_extension("a").await.unwrap();
    assert_eq!(versions(&main).held_back, None);
    assert_eq!(versions(&main).serving, Some(3));
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_good_version_is_proven_after_its_time_over_restarts_of_main() {
    let device = Device::new("update = { prove-for = '2s', min-requests = 1_000_000 }");
    let main = device.start_proven(0).await;
    device.put("good2");
    main.control().reload_extension("a").await.unwrap();
    let answers = ask(main.client(), 60).await;
    assert_eq!(answers.good, 60);
    tokio::time::sleep(Duration::from_secs(1)).await;
    main.shutdown().await.unwrap();
    let main = device.start().await;
    let status = versions(&main);
    assert_eq!(standing_of(&status, 2), Some(Standing::Probation));
    assert!(status.versions[0].ran >= Duration::from_secs(1), "{status:?}");
    let answers = ask_until(&main, 2, Standing::Proven).await;
    assert_eq!((answers.bad, answers.trapped, answers.errors), (0, 0, 0));
    assert_eq!(versions(&main).versions[0].reason.as_deref(), Some("it held for 2s"));
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn an_operator_accepts_rolls_back_and_reloads_without_probation() {
    let device = Device::new(UPDATE);
    let main = device.start_proven(0).await;
    let control = main.control();
    let on_probation = control.accept_version("a").await.unwrap_err();
    assert_eq!(on_probation, VersionError::NotOnProbation("a".parse().unwrap()).into());
    let nothing = control.roll_back("a", None).await.unwrap_err();
    assert_eq!(nothing, VersionError::NothingBefore("a".parse().unwrap()).into());

    device.put("good2");
    control.reload_extension_now("a").await.unwrap();
    assert_eq!(standing_of(&versions(&main), 2), Some(Standing::Proven));
    control.roll_back("a", None).await.unwrap();
    serves_the_first(&main).await;
    assert_eq!(standing_of(&versions(&main), 2), Some(Standing::Refused));
    assert!(control.reload_extension("a").await.is_err());
    control.reload_extension_now("a").await.unwrap();
    assert_eq!(versions(&main).serving, Some(2));
    let unknown = control.roll_back("a", Some(9)).await.unwrap_err();
    assert_eq!(unknown, VersionError::Unknown("a".parse().unwrap(), 9).into());
    control.roll_back("a", Some(1)).await.unwrap();
    main.shutdown().await.unwrap();
    let main = device.start().await;
    serves_the_first(&main).await;
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_changed_stanza_is_a_version_and_its_configuration_comes_back_with_it() {
    let device = Device::new(UPDATE);
    let main = device.start_proven(0).await;
    // It cannot start with so little memory.
    device.configure(UPDATE, "limits.memory = '128 KiB'\nlimits.message-size = '4 KiB'");
    let report = main.control().reload().await.unwrap();
    assert_eq!(report.failed.len(), 1, "{report:?}");
    serves_the_first(&main).await;
    main.shutdown().await.unwrap();
    let main = device.start().await;
    serves_the_first(&main).await;
    assert_ne!(main.control().status("a").unwrap().memory_limit, 131_072);
    assert!(versions(&main).held_back.is_some());
    // What is back is no change, and what differs only in its text neither.
    device.configure(UPDATE, "# As before.");
    let report = main.control().reload().await.unwrap();
    assert_eq!((report.failed.len(), versions(&main).held_back), (0, None), "{report:?}");
    assert_eq!(versions(&main).versions.len(), 2);
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn without_an_earlier_version_a_bad_one_restarts_and_is_quarantined_as_ever() {
    let device = Device::new(UPDATE);
    device.put("fiftieth");
    let main = device.start().await;
    // Each of the five failures that quarantine it takes fifty requests.
    while main.control().status("a").unwrap().state != ExtensionState::Quarantined {
        ask(main.client(), 5).await;
    }
    assert_eq!(standing_of(&versions(&main), 1), Some(Standing::Probation));
    main.shutdown().await.unwrap();
}
