//! The data of an extension whose versions do not all read what the others write: a store that is a file, which is
//! replaced byte by byte.

mod aside;
mod instances;
mod power;
mod unknown;

use std::{fs, path::PathBuf, sync::Arc};

use weir_config::{ArtifactHash, ComponentSource, StoreGrant, UpdateConfig};
use weir_reports::{DataStatus, Standing};

use super::*;
use crate::{
    Chosen, Form, VersionError,
    state_dir::Kept,
    tests::{Device, a, assert_held_back, assert_runs, bytes, extension, hash},
};

#[derive(Debug)]
struct FileData(PathBuf);

impl OwnData for FileData {
    fn dir(&self) -> Option<&Path> {
        self.0.parent()
    }

    fn copy_to(&self, _: &DataOwner, to: &mut dyn Write) -> Result<(), String> {
        to.write_all(&fs::read(&self.0).map_err(|error| error.to_string())?)
            .map_err(|error| error.to_string())
    }

    fn put_back(&self, _: &DataOwner, from: &mut dyn Read) -> Result<(), String> {
        fs::write(&self.0, "").map_err(|error| error.to_string())?;
        let mut found = Vec::new();
        from.read_to_end(&mut found).map_err(|error| error.to_string())?;
        let (half, _) = found.split_at(found.len() / 2);
        fs::write(&self.0, half).map_err(|error| error.to_string())?;
        fault_point();
        fs::write(&self.0, &found).map_err(|error| error.to_string())
    }
}

/// A device with an extension that has stores.
struct Home {
    device: Device,
    config: Arc<ExtensionConfig>,
}

/// Component `n` is of version `n.0.0`. From 10 on, older versions than itself cannot read what it writes.
fn form(component: u8) -> Form {
    let version = format!("{component}.0.0");
    Form::new(Some(&version), (component >= 10).then_some(&*version)).unwrap()
}

fn looked_at(configured: u8) -> impl Fn(&ExtensionConfig) -> Result<(ArtifactHash, Form), String> {
    move |config| {
        let component = match &config.component {
            ComponentSource::Path(path) => fs::read(path).map_or(configured, |bytes| bytes[0]),
            ComponentSource::Bytes(bytes) => bytes[0],
        };
        Ok((hash(component), form(component)))
    }
}

fn choose(versions: &Versions, config: &Arc<ExtensionConfig>, component: u8, again: bool) -> Chosen {
    let copy = |to: &mut dyn Write| to.write_all(&bytes(component)).map_err(|error| error.to_string());
    versions.choose(config, Ok(hash(component)), copy, &looked_at(component), again)
}

fn with_stores() -> Arc<ExtensionConfig> {
    let mut config = extension("a", "");
    Arc::make_mut(&mut config).grants.stores =
        vec![StoreGrant::from("notes".parse::<weir_names::StoreName>().unwrap())];
    config
}

impl Home {
    fn with_room(size: u64) -> Self {
        let home = Self { device: Device::with_room(size), config: with_stores() };
        home.attach();
        home.write("old");
        home
    }

    /// Version 1, of component 1, is proven and has written `old`.
    fn new() -> Self {
        let home = Self::with_room(1 << 20);
        home.serve(1);
        home.accept();
        home
    }

    /// Version 2 has written `new`, which is put aside: version 1 is on its way back, with `old`.
    fn between() -> Self {
        let home = Self::new();
        home.update();
        home.roll_back(true).unwrap();
        home.cross(1).unwrap();
        home
    }

    fn attach(&self) {
        let path = self.data();
        self.device.versions.set_own_data(Box::new(FileData(path)));
    }

    fn data(&self) -> PathBuf {
        self.device.path("").parent().unwrap().join("data")
    }

    fn restart(&mut self) {
        self.device.restart();
        self.attach();
    }

    fn write(&self, text: &str) {
        fs::write(self.data(), text).unwrap();
    }

    fn read(&self) -> String {
        fs::read_to_string(self.data()).unwrap()
    }

    fn cross(&self, number: u64) -> Result<(), DataHindrance> {
        self.device.versions.cross(&self.config, Some(number), hash(0), &looked_at(0))
    }

    /// Runs what is chosen for this component until it is ready.
    fn serve(&self, component: u8) -> Chosen {
        let chosen = choose(&self.device.versions, &self.config, component, false);
        self.cross(chosen.number.unwrap()).unwrap();
        self.is_ready(chosen.number.unwrap());
        chosen
    }

    fn is_ready(&self, number: u64) {
        self.device.versions.serves(&self.config, number, false);
        self.device.versions.came_back(&self.config, number);
        self.device.versions.save(&a()).unwrap();
    }

    /// What is to be done before a component runs without a number.
    fn unknown(&self, component: u8) -> Crossing {
        self.device.versions.crossing(&self.config, None, Some(hash(component)))
    }

    fn cross_unknown(&self, component: u8) -> Result<(), DataHindrance> {
        self.device.versions.cross(&self.config, None, hash(component), &looked_at(component))
    }

    fn accept(&self) {
        self.device.versions.accept(&a(), "it is good").unwrap();
        self.device.versions.save(&a()).unwrap();
    }

    /// Serves version 2, which writes `new`.
    fn update(&self) {
        self.serve(10);
        self.write("new");
    }

    fn roll_back(&self, data_too: bool) -> Result<(), VersionError> {
        let rolled_back = self.device.versions.roll_back(&a(), None, data_too, "an operator").map(drop);
        self.device.versions.save(&a()).unwrap();
        rolled_back
    }

    fn status(&self) -> DataStatus {
        self.device.status().data.unwrap_or(DataStatus { since: None, snapshots: vec![], put_aside: None })
    }

    /// The files of data that are kept.
    fn kept(&self) -> usize {
        let names = fs::read_dir(self.device.path("")).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("weir-data-")).count()
    }
}

#[test]
fn versions_that_all_read_the_data_are_none_of_its_business() {
    let home = Home::new();
    let chosen = choose(&home.device.versions, &home.config, 2, false);
    let crossing =
        |config: &ExtensionConfig| home.device.versions.crossing(config, chosen.number, chosen.hash);
    assert_eq!(crossing(&home.config), Crossing::Nothing);
    assert_eq!((home.device.status().data, home.kept()), (None, 0));
    // Without stores nothing is asked, whatever a component says.
    let plain = extension("a", "");
    assert_eq!(crossing(&plain), Crossing::Nothing);
}

#[test]
fn the_data_is_kept_before_its_form_changes_and_comes_back_only_if_that_is_asked_for() {
    let mut home = Home::new();
    home.update();
    let DataStatus { since, snapshots, put_aside } = home.status();
    assert_eq!((since.as_deref(), snapshots.len(), put_aside, home.kept()), (Some("10.0.0"), 1, None, 1));
    assert_eq!((snapshots[0].bytes, snapshots[0].before, &snapshots[0].since), (3, 2, &None));
    home.restart();
    let refused = home.roll_back(false).unwrap_err();
    assert!(matches!(&refused, VersionError::Data { .. }), "{refused}");
    assert!(refused.to_string().contains("--data-too"), "{refused}");
    assert_eq!(home.device.status().serving, Some(2));
    home.roll_back(true).unwrap();
    home.restart();
    let chosen = choose(&home.device.versions, &home.config, 10, false);
    assert_held_back(&chosen, 1, 1);
    home.cross(1).unwrap();
    assert_eq!(home.read(), "old");
    assert_eq!(home.status().put_aside.unwrap().bytes, 3);
    // It is not restored twice.
    home.write("older");
    home.restart();
    home.cross(1).unwrap();
    assert_eq!(home.read(), "older");
    home.is_ready(1);
    assert_eq!((home.device.status().data, home.kept()), (None, 0));
}

#[test]
fn what_has_written_nothing_gives_way_without_a_question() {
    let home = Home::new();
    home.serve(10);
    home.device.versions.refuse(&a(), 2, &UpdateConfig::default(), "it trapped").unwrap();
    home.serve(10);
    assert_eq!((home.device.status().serving, home.read().as_str()), (Some(1), "old"));
    assert_eq!((home.device.status().data, home.kept()), (None, 0));
}

#[test]
fn by_itself_a_version_comes_back_past_its_data_only_where_that_is_allowed() {
    for data_too in [false, true] {
        let mut home = Home::new();
        home.update();
        let mut update = UpdateConfig::default();
        update.data_too = data_too;
        home.device.versions.refuse(&a(), 2, &update, "it trapped").unwrap();
        home.device.versions.save(&a()).unwrap();
        home.restart();
        assert_held_back(&choose(&home.device.versions, &home.config, 10, false), 1, 1);
        let crossed = home.cross(1);
        assert_eq!(crossed.is_ok(), data_too, "{crossed:?}");
        assert_eq!(home.read(), if data_too { "old" } else { "new" });
        if let Err(held) = crossed {
            assert!(held.is_held && held.reason.contains("`weir rollback a 1 --data-too`"), "{held}");
            home.roll_back(true).unwrap();
            home.cross(1).unwrap();
            assert_eq!(home.read(), "old");
        }
    }
}

#[test]
fn a_wish_that_did_not_come_true_is_forgotten() {
    let home = Home::new();
    home.update();
    home.roll_back(true).unwrap();
    assert!(home.device.versions.stays(&a()));
    assert!(home.cross(1).unwrap_err().is_held);
    home.roll_back(true).unwrap();
    // The version before starts again before it ends, and that changes nothing.
    home.cross(2).unwrap();
    home.is_ready(2);
    assert_eq!(home.device.versions.cannot_read(&home.config, 1), None);
    // An operator runs it all the same.
    choose(&home.device.versions, &home.config, 10, true);
    assert!(home.cross(1).unwrap_err().is_held);
    assert_eq!(home.read(), "new");
}

#[test]
fn an_older_file_in_place_does_not_run_on_newer_data() {
    let home = Home::new();
    home.update();
    home.accept();
    for component in [1, 5] {
        let chosen = choose(&home.device.versions, &home.config, component, false);
        assert_held_back(&chosen, 2, 10);
        assert!(chosen.held_back.unwrap().contains("cannot read the extension's data"), "{component}");
    }
    // Not even without probation.
    assert_held_back(&choose(&home.device.versions, &home.config, 1, true), 2, 10);
    assert_eq!(home.read(), "new");
}

#[test]
fn a_lost_or_damaged_snapshot_is_given_up_by_name_and_what_is_there_stays() {
    let losses: [fn(PathBuf); 2] =
        [|path| fs::remove_file(path).unwrap(), |path| fs::write(path, "odd").unwrap()];
    for lose in losses {
        let home = Home::new();
        home.update();
        let name = format!("weir-data-{}", home.status().snapshots[0].hash);
        lose(home.device.path(&name));
        home.roll_back(true).unwrap();
        let held = home.cross(1).unwrap_err();
        assert!(held.is_held && held.reason.contains(&name), "{held}");
        assert_eq!((home.read().as_str(), home.status().snapshots.len()), ("new", 0));
        assert!(matches!(home.roll_back(true), Err(VersionError::NoSnapshot(_))));
    }
}

#[test]
fn a_version_whose_data_cannot_be_kept_does_not_run_and_the_one_before_does() {
    // The two components take all but two bytes.
    let home = Home::with_room(2002);
    home.serve(1);
    home.accept();
    let chosen = choose(&home.device.versions, &home.config, 10, false);
    assert_runs(&chosen, &home.config, 2);
    let passes = home.cross(2).unwrap_err();
    assert!(!passes.is_held && passes.reason.contains("`main.state-size` is"), "{passes}");
    // It is not tried at once, as the one before can run.
    let instead = choose(&home.device.versions, &home.config, 10, false);
    assert_held_back(&instead, 1, 1);
    home.cross(1).unwrap();
    assert_eq!((home.read().as_str(), home.device.status().data, home.kept()), ("old", None, 0));
    assert!(
        fs::read_dir(home.device.path(""))
            .unwrap()
            .all(|entry| { !entry.unwrap().file_name().to_string_lossy().starts_with(".weir-state-") })
    );
}

#[test]
fn without_a_directory_the_form_of_the_data_does_not_change() {
    let device = Device::in_memory();
    let (versions, config) = (&device.versions, with_stores());
    assert_eq!(choose(versions, &config, 1, false).number, Some(1));
    versions.serves(&config, 1, false);
    versions.accept(&a(), "it is good").unwrap();
    choose(versions, &config, 10, false);
    let error = versions.cross(&config, Some(2), hash(10), &looked_at(10)).unwrap_err();
    assert!(error.reason.contains("`main.state-dir`"), "{error}");
}

#[test]
fn snapshots_go_with_the_versions_that_need_them() {
    let home = Home::new();
    home.update();
    home.accept();
    for component in 11..=14 {
        home.serve(component);
        home.write(&component.to_string());
        home.accept();
        assert!(home.kept() <= 3, "{component}: {:?}", home.status());
        assert_eq!(home.status().snapshots.len(), home.kept());
    }
    let needed = home.device.versions.needed();
    assert_eq!(needed.iter().filter(|kept| matches!(kept, Kept::Data(_))).count(), home.kept());
}

#[test]
fn versions_are_compared_by_precedence() {
    let reads = |version: &str, since| Form::new(Some(version), None).unwrap().reads(Some(since));
    assert!(reads("1.2.0", "1.2.0") && reads("1.10.0", "1.9.0") && reads("1.2.0+b1", "1.2.0+b2"));
    assert!(!reads("1.2.0-rc.1", "1.2.0") && reads("1.2.0", "1.2.0-rc.1"));
    assert!(!reads("seven", "0.0.1"));
    assert!(Form::new(Some("seven"), None).unwrap().reads(None));
    for (version, since) in
        [(Some("1.2.0"), "1.3.0"), (Some("1.2.0"), "1.x"), (None, "1.2.0"), (Some("x"), "1.0.0")]
    {
        assert!(Form::new(version, Some(since)).is_err(), "{version:?} {since}");
    }
    let long = format!("1.2.0-{}", "a".repeat(64));
    assert!(Form::new(Some(&long), Some(&long)).is_err());
}

#[test]
fn a_version_that_is_not_ready_yet_is_refused_by_a_way_back_past_its_data() {
    let home = Home::new();
    let number = choose(&home.device.versions, &home.config, 10, false).number.unwrap();
    home.cross(number).unwrap();
    home.write("new");
    let change = home.device.versions.roll_back(&a(), None, true, "an operator").unwrap();
    assert_eq!((change.version, change.standing, change.serves), (number, Standing::Refused, 1));
    home.cross(1).unwrap();
    assert_eq!(home.read(), "old");
}

#[test]
fn the_version_before_one_that_was_never_ready_can_have_its_data_back() {
    for (to, restarts) in [(None, false), (Some(1), true)] {
        let mut home = Home::new();
        let number = choose(&home.device.versions, &home.config, 10, false).number.unwrap();
        home.cross(number).unwrap();
        home.write("new");
        home.device.versions.refuse(&a(), number, &UpdateConfig::default(), "it trapped").unwrap();
        home.device.versions.save(&a()).unwrap();
        if restarts {
            home.restart();
        }
        assert!(home.cross(1).unwrap_err().is_held);
        let roll_back = |data_too| home.device.versions.roll_back(&a(), to, data_too, "an operator");
        assert!(matches!(roll_back(false), Err(VersionError::Data { .. })));
        assert_eq!(roll_back(true).unwrap().serves, 1);
        home.cross(1).unwrap();
        home.is_ready(1);
        assert_eq!((home.read().as_str(), home.device.numbers(Standing::Proven)), ("old", vec![1]));
        assert!(matches!(roll_back(true), Err(VersionError::Runs(..) | VersionError::NothingBefore(_))));
    }
}
