//! Versions through a device's life: with a state directory, and in memory.

mod canary;
mod orders;
mod signed;

use std::{io::Write, path::Path, sync::Arc};

use sha2::{Digest, Sha256};
use tempfile::TempDir;
use weir_config::{ComponentSource, ExtensionConfig, Loader};
use weir_reports::VersionStatus;

use super::*;

const TEN_SECONDS: Duration = Duration::from_secs(10);

/// Main on a device: the versions, and the directory that outlives a restart.
pub(crate) struct Device {
    dir: Option<TempDir>,
    size: u64,
    pub(crate) versions: Versions,
}

impl Device {
    pub(crate) fn with_room(size: u64) -> Self {
        let mut device =
            Self { dir: Some(tempfile::tempdir().unwrap()), size, versions: Versions::default() };
        device.restart();
        device
    }

    pub(crate) fn on_disk() -> Self {
        Self::with_room(1 << 30)
    }

    pub(crate) fn in_memory() -> Self {
        let versions = Versions::open(None, 0);
        versions.configure(["a".parse().unwrap()]);
        Self { dir: None, size: 0, versions }
    }

    fn both() -> [Self; 2] {
        [Self::on_disk(), Self::in_memory()]
    }

    /// A path in the state directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.as_ref().unwrap().path().join("state").join(name)
    }

    /// Ends Main and starts it again. In memory, nothing would be left of the versions.
    pub(crate) fn restart(&mut self) {
        let Some(dir) = &self.dir else { return };
        // The old one is dropped first, and with it the lock.
        self.versions = Versions::default();
        self.versions = Versions::open(Some(dir.path().join("state")), self.size);
        self.versions.configure(["a", "b"].map(|id| id.parse().unwrap()));
    }

    fn choose(&self, config: &Arc<ExtensionConfig>, component: u8, again: bool) -> Chosen {
        let copy = |to: &mut dyn Write| to.write_all(&bytes(component)).map_err(|error| error.to_string());
        let chosen = self.versions.choose(config, Ok(hash(component)), copy, &unread, again);
        if let Some(number) = chosen.number {
            self.versions.serves(config, number, chosen.is_canary);
        }
        chosen
    }

    /// Runs this component under this configuration.
    pub(crate) fn run(&self, config: &Arc<ExtensionConfig>, component: u8) -> Chosen {
        self.choose(config, component, false)
    }

    /// Runs this component until it is proven.
    pub(crate) fn prove(&self, config: &Arc<ExtensionConfig>, component: u8) -> u64 {
        let number = self.run(config, component).number.unwrap();
        self.versions.accept(&config.id, "it is good").unwrap();
        self.versions.save(&config.id).unwrap();
        number
    }

    /// Runs this component, which does not come up.
    pub(crate) fn fail(&self, config: &Arc<ExtensionConfig>, component: u8) -> VersionChange {
        let number = self.run(config, component).number.unwrap();
        let change =
            self.versions.refuse(&config.id, number, &UpdateConfig::default(), "it trapped").unwrap();
        self.versions.save(&config.id).unwrap();
        change
    }

    pub(crate) fn status(&self) -> VersionsStatus {
        self.versions.status(&a(), &UpdateConfig::default()).unwrap()
    }

    pub(crate) fn version(&self, number: u64) -> VersionStatus {
        self.status().versions.into_iter().find(|version| version.number == number).unwrap()
    }

    /// The numbers of the versions that have this standing, latest first.
    pub(crate) fn numbers(&self, standing: Standing) -> Vec<u64> {
        let versions = self.status().versions.into_iter();
        versions.filter(|version| version.standing == standing).map(|version| version.number).collect()
    }
}

/// Extensions without stores: nothing is asked of their components.
pub(crate) fn unread(_: &ExtensionConfig) -> Result<(ArtifactHash, Form), String> {
    unreachable!("it has no stores")
}

pub(crate) fn a() -> ExtensionId {
    "a".parse().unwrap()
}

pub(crate) fn hash(component: u8) -> ArtifactHash {
    ArtifactHash::from_bytes(Sha256::digest(bytes(component)).into())
}

/// A component of 1000 bytes.
pub(crate) fn bytes(component: u8) -> Vec<u8> {
    vec![component; 1000]
}

/// An extension as Main gets it from a file.
pub(crate) fn extension(id: &str, more: &str) -> Arc<ExtensionConfig> {
    parsed(&format!("[[extension]]\nid = '{id}'\npath = '{id}.wasm'\nupdate.prove-for = '10s'\n{more}"))
}

fn parsed(text: &str) -> Arc<ExtensionConfig> {
    all_parsed(text).remove(0).into()
}

fn all_parsed(text: &str) -> Vec<ExtensionConfig> {
    Loader::new().parse(text, "weir.toml", Path::new("/etc/weir")).unwrap().into_parts().1
}

fn contents(component: &ComponentSource) -> Vec<u8> {
    match component {
        ComponentSource::Path(path) => std::fs::read(path).unwrap(),
        ComponentSource::Bytes(bytes) => bytes.to_vec(),
    }
}

/// Asserts that this version runs, from what is kept of this component, in place of the configured one.
#[track_caller]
pub(crate) fn assert_held_back(chosen: &Chosen, number: u64, component: u8) {
    assert!(chosen.held_back.is_some() && chosen.not_kept.is_none(), "{chosen:?}");
    assert_eq!((chosen.number, chosen.hash), (Some(number), Some(hash(component))));
    assert_eq!(contents(&chosen.config.component), bytes(component));
    assert_eq!(chosen.config.sha256, Some(hash(component)));
    assert_eq!(chosen.config.plugin_dir, None);
}

/// Asserts that the configured version runs under this number.
#[track_caller]
pub(crate) fn assert_runs(chosen: &Chosen, configured: &Arc<ExtensionConfig>, number: u64) {
    assert_eq!((chosen.number, &chosen.held_back, &chosen.not_kept), (Some(number), &None, &None));
    assert!(Arc::ptr_eq(&chosen.config, configured));
}

#[test]
fn an_extension_without_update_runs_as_configured_and_has_no_number() {
    for device in Device::both() {
        let config = parsed("[[extension]]\nid = 'a'\npath = 'a.wasm'");
        let chosen = device.run(&config, 1);
        assert!(Arc::ptr_eq(&chosen.config, &config));
        assert_eq!((chosen.number, chosen.held_back, chosen.not_kept), (None, None, None));
        assert_eq!(device.versions.status(&a(), &UpdateConfig::default()), None);
        assert_eq!(device.versions.accept(&a(), ""), Err(VersionError::None(a())));
        assert_eq!(device.versions.roll_back(&a(), None, false, ""), Err(VersionError::None(a())));
    }
}

#[test]
fn the_first_version_is_on_probation_and_stays_for_want_of_another() {
    for device in Device::both() {
        let config = extension("a", "");
        assert_runs(&device.run(&config, 1), &config, 1);
        assert_eq!(device.version(1).standing, Standing::Probation);
        assert_eq!(device.versions.refuse(&a(), 1, &UpdateConfig::default(), "it trapped"), None);
        assert_eq!(device.versions.roll_back(&a(), None, false, ""), Err(VersionError::NothingBefore(a())));
        assert_eq!(device.version(1).standing, Standing::Probation);
        let change = device.versions.accept(&a(), "it is good").unwrap();
        assert_eq!((change.version, change.serves, change.standing), (1, 1, Standing::Proven));
        assert_eq!(device.version(1).standing, Standing::Proven);
        assert_eq!(device.versions.accept(&a(), ""), Err(VersionError::NotOnProbation(a())));
    }
}

#[test]
fn a_refused_version_is_held_back_until_it_is_to_run_again() {
    for mut device in Device::both() {
        let config = extension("a", "");
        assert_eq!(device.prove(&config, 1), 1);
        let change = device.fail(&config, 2);
        assert_eq!((change.version, change.serves, change.standing), (2, 1, Standing::Refused));
        for _ in 0..2 {
            let chosen = device.run(&config, 2);
            assert_held_back(&chosen, 1, 1);
            assert_eq!(chosen.held_back.unwrap(), "version 2 was refused: it trapped");
            let serving = device.versions.serving(&a(), Some(1)).unwrap();
            assert_eq!(serving, ServingVersion { number: 1, standing: Standing::Proven, is_held_back: true });
            device.restart();
        }
        assert_runs(&device.choose(&config, 2, true), &config, 2);
        let version = device.version(2);
        assert_eq!((version.standing, version.failures, version.reason), (Standing::Probation, 0, None));
        device.restart();
        assert_runs(&device.run(&config, 2), &config, 2);
    }
}

#[test]
fn a_proven_component_runs_under_its_number_again_and_a_new_one_has_the_next() {
    for mut device in Device::both() {
        let config = extension("a", "");
        device.prove(&config, 1);
        device.fail(&config, 2);
        device.run(&config, 2);
        assert_runs(&device.run(&config, 3), &config, 3);
        assert_eq!(device.status().held_back, None);
        device.restart();
        assert_runs(&device.run(&config, 3), &config, 3);
        assert_runs(&device.run(&config, 1), &config, 1);
        let serving = device.versions.serving(&a(), Some(1)).unwrap();
        assert_eq!(serving, ServingVersion { number: 1, standing: Standing::Proven, is_held_back: false });
    }
}

#[test]
fn what_is_accepted_is_the_version_that_serves() {
    for device in Device::both() {
        let config = extension("a", "");
        device.prove(&config, 1);
        device.prove(&config, 2);
        device.run(&config, 3);
        device.run(&config, 4);
        assert_eq!(device.numbers(Standing::Probation), [4]);
        // The operator puts the first component back, and version 4 runs no longer.
        device.run(&config, 1);
        assert_eq!(device.versions.accept(&a(), ""), Err(VersionError::NotOnProbation(a())));
        assert_eq!(device.status().fallback, Some(1));
    }
}

#[test]
fn another_configuration_is_another_version_and_comes_back_with_its_component() {
    for mut device in Device::both() {
        let old = extension("a", "limits.memory = '8 MiB'\nconfig.level = 'low'");
        let new = extension(
            "a",
            "limits.memory = '9 MiB'\nconfig.level = 'high'\nrestart.policy = 'never'\nupdate.max-failures = 3",
        );
        device.prove(&old, 1);
        assert_runs(&device.run(&new, 1), &new, 2);
        device.versions.refuse(&a(), 2, &UpdateConfig::default(), "it trapped").unwrap();
        device.versions.save(&a()).unwrap();
        device.restart();
        let chosen = device.run(&new, 1);
        assert_held_back(&chosen, 1, 1);
        assert_eq!(chosen.config.limits.memory, 8 << 20);
        assert_eq!(chosen.config.config["level"], "low");
        assert_eq!(chosen.config.update, new.update);
        // What only the supervisor uses is of no version.
        assert_eq!(chosen.config.restart, new.restart);
        assert_runs(&device.run(&old, 1), &old, 1);
    }
}

#[test]
fn what_no_instance_sees_makes_no_other_version() {
    for device in Device::both() {
        let table = "[[extension]]\nid = 'a'\npath = 'a.wasm'\nupdate = {}\nlimits = { memory = '8 MiB' }";
        device.run(&parsed(table), 1);
        for same in [
            "# A comment.\n[[extension]]\npath = \"a.wasm\"\nid = 'a'\nlimits.memory = 8_388_608\nupdate = {}".to_owned(),
            format!("{table}\nrestart.policy = 'never'\nreload = 'overlap'\nautostart = false"),
            table.replace("{}", "{ prove-for = '2h', max-failures = 3 }"),
            format!("{table}\ninstances = 3"),
            format!("{table}\n[[extension]]\nid = 'b'\npath = 'b.wasm'"),
        ] {
            assert_eq!(device.run(&parsed(&same), 1).number, Some(1), "{same}");
        }
        assert_eq!(device.run(&parsed(&format!("{table}\nwants = ['c@1']")), 1).number, Some(2));
    }
}

#[test]
fn a_copy_runs_the_version_of_its_original() {
    for device in Device::both() {
        let original = extension("a", "");
        let copy =
            all_parsed("[[extension]]\nid = 'a'\npath = 'a.wasm'\nupdate = {}\ninstances = 2").remove(1);
        assert_runs(&device.run(&original, 1), &original, 1);
        let copy = Arc::new(copy);
        assert_runs(&device.run(&copy, 1), &copy, 1);
        device.versions.accept(&a(), "").unwrap();
        device.fail(&original, 2);
        let chosen = device.run(&copy, 2);
        assert_held_back(&chosen, 1, 1);
        assert_eq!((&chosen.config.id, &chosen.config.copy_of), (&copy.id, &copy.copy_of));
    }
}

#[test]
fn copies_that_load_at_once_run_the_same_new_version() {
    let device = Device::in_memory();
    let config = extension("a", "");
    for round in 1..=50 {
        let start = std::sync::Barrier::new(4);
        let load = || {
            start.wait();
            device.run(&config, round).number
        };
        let numbers: BTreeSet<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(load)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(numbers, BTreeSet::from([Some(round.into())]));
    }
}

#[test]
fn the_proven_version_runs_while_the_component_cannot_be_read() {
    for mut device in Device::both() {
        let config = extension("a", "");
        let unreadable = |device: &Device| {
            let found: Result<ArtifactHash, _> = Err("`a.wasm` is not there".to_owned());
            device.versions.choose(
                &config,
                found,
                |_| unreachable!("there is nothing to copy"),
                &unread,
                false,
            )
        };
        let nothing = unreadable(&device);
        assert!(Arc::ptr_eq(&nothing.config, &config));
        assert_eq!((nothing.number, nothing.held_back), (None, None));
        device.prove(&config, 1);
        device.run(&config, 2);
        device.restart();
        let chosen = unreadable(&device);
        assert_held_back(&chosen, 1, 1);
        assert_eq!(chosen.held_back.unwrap(), "`a.wasm` is not there");
        assert_runs(&device.run(&config, 2), &config, 2);
    }
}

#[test]
fn a_version_is_proven_once_it_has_run_long_enough_across_restarts() {
    let mut device = Device::on_disk();
    let config = extension("a", "");
    let update = config.update.clone().unwrap();
    device.run(&config, 1);
    let six = Duration::from_millis(6_500);
    let figures =
        VersionFigures { memory: 7, failed: [("handler".to_owned(), 2)].into(), ..Default::default() };
    for (so_far, memory) in [(six, 7), (six * 2, 8)] {
        assert_eq!(device.versions.judge(&a(), 1, &update), None);
        let figures = VersionFigures { memory, ..figures.clone() };
        device.versions.count(&a(), 1, six, &figures);
        device.versions.save(&a()).unwrap();
        device.restart();
        assert_eq!((device.version(1).ran, device.version(1).figures.memory), (so_far, memory));
    }
    let change = device.versions.judge(&a(), 1, &update).unwrap();
    assert_eq!((change.standing, change.failed, change.memory), (Standing::Proven, 4, 8));
    assert_eq!(change.reason, "it held for 10s");
    assert_eq!(device.versions.judge(&a(), 1, &update), None);
    assert_eq!(device.versions.next_look(&a(), 1, &update), None);
    device.versions.count(&a(), 1, six, &figures);
    device.versions.count_failure(&a(), 1);
    let version = device.version(1);
    assert_eq!((version.ran, version.failures, version.figures.failed["handler"]), (six * 2, 0, 6));
    assert_eq!(device.status().changes, [change]);
}

#[test]
fn a_version_that_fails_too_often_is_refused_even_at_the_end_of_its_time() {
    for device in Device::both() {
        let config = extension("a", "update.max-failures = 1");
        let update = config.update.clone().unwrap();
        device.prove(&config, 1);
        device.run(&config, 2);
        device.versions.count(&a(), 2, Duration::from_secs(5), &VersionFigures::default());
        assert_eq!(device.versions.next_look(&a(), 2, &update), Some(Duration::from_millis(1_250)));
        device.versions.count_failure(&a(), 2);
        assert_eq!(device.versions.judge(&a(), 2, &update), None);
        device.versions.count_failure(&a(), 2);
        device.versions.count(&a(), 2, TEN_SECONDS, &VersionFigures::default());
        let change = device.versions.judge(&a(), 2, &update).unwrap();
        assert_eq!((change.version, change.serves, change.standing), (2, 1, Standing::Refused));
        assert_held_back(&device.run(&config, 2), 1, 1);
    }
}

#[test]
fn without_another_version_failures_do_not_refuse() {
    for device in Device::both() {
        let config = extension("a", "");
        device.run(&config, 1);
        (0..9).for_each(|_| device.versions.count_failure(&a(), 1));
        assert_eq!(device.versions.judge(&a(), 1, config.update.as_ref().unwrap()), None);
        assert_eq!(device.version(1).standing, Standing::Probation);
    }
}

#[test]
fn the_version_that_is_refused_last_is_never_forgotten_first() {
    for device in Device::both() {
        let config = extension("a", "");
        device.prove(&config, 1);
        device.prove(&config, 2);
        (3..=18).for_each(|component| drop(device.fail(&config, component)));
        device.run(&config, 2);
        device.versions.roll_back(&a(), None, false, "it is too loud").unwrap();
        assert_held_back(&device.run(&config, 2), 1, 1);
    }
}

#[test]
fn what_is_known_stays_bounded_and_numbers_go_on() {
    for mut device in Device::both() {
        let config = extension("a", "");
        device.prove(&config, 0);
        (1..=100).for_each(|component| drop(device.fail(&config, component)));
        assert_eq!(device.numbers(Standing::Refused), (86..=101).rev().collect::<Vec<_>>());
        assert_eq!(device.status().fallback, Some(1));
        (101..=200)
            .for_each(|component| assert_eq!(device.prove(&config, component), u64::from(component) + 1));
        device.restart();
        assert_eq!(device.numbers(Standing::Proven), [201, 200, 199]);
        assert_eq!((device.status().versions.len(), device.status().changes.len()), (19, 32));
        assert_eq!(device.run(&config, 201).number, Some(202));
        let kept = device.versions.components.lock().len();
        assert!(device.dir.is_some() || kept == 4, "{kept} components");
    }
}

#[test]
fn what_is_decided_while_a_component_is_copied_is_not_lost_when_that_fails() {
    for device in Device::both() {
        let config = extension("a", "");
        device.prove(&config, 1);
        device.run(&config, 2);
        let copy = |_: &mut dyn Write| {
            device.versions.refuse(&a(), 2, &UpdateConfig::default(), "it trapped").unwrap();
            Err("it changed meanwhile".to_owned())
        };
        assert_held_back(&device.versions.choose(&config, Ok(hash(3)), copy, &unread, false), 1, 1);
        assert_eq!(device.numbers(Standing::Refused), [2]);
        assert_held_back(&device.run(&config, 2), 1, 1);
    }
}
