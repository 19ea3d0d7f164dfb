//! The versions of extensions with `update`: which one runs, which one is proven, and what is kept of them on disk.
//!
//! A version is a component with the stanza that it runs under. [`Versions::choose`] is asked before each load, at the
//! start of Main as at a reload, so that what was refused once is not loaded again. The supervisor tells what a version
//! on probation does, and asks whether it holds. Decisions are made in memory at once; [`Versions::save`] writes them
//! down. Knows nothing of instances, and runs nothing.

mod choose;
mod crossing;
mod data;
mod form;
mod generation;
mod judge;
mod record;
mod refused;
mod room;
mod state_dir;
#[cfg(test)]
mod tests;
mod unreadable;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    path::PathBuf,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use parking_lot::Mutex;
use weir_config::{ArtifactHash, ExtensionConfig, UpdateConfig};
use weir_names::{ExtensionId, chain};
use weir_reports::{ServingVersion, Standing, VersionChange, VersionFigures, VersionsStatus};

pub use self::{
    choose::{Chosen, Found},
    crossing::{DataHindrance, DataOwner, OwnData},
    data::Crossing,
    form::{Form, FormError},
    refused::{proven, refused},
};
use crate::{
    choose::original,
    record::{Entry, Record},
    state_dir::{Kept, StateDir, StateError},
    unreadable::Unreadable,
};

/// How long a decision waits for others to be written down, before it is only kept in memory.
const BUSY: Duration = Duration::from_secs(10);

/// The versions of all extensions with `update`.
#[derive(Debug, Default)]
pub struct Versions {
    /// Where records and components are kept. Without it, both are kept in memory.
    state: Option<StateDir>,
    records: Mutex<BTreeMap<ExtensionId, Record>>,
    /// Components in memory, if there is no directory.
    components: Mutex<HashMap<ArtifactHash, Bytes>>,
    /// The extensions that are configured now.
    configured: Mutex<BTreeSet<ExtensionId>>,
    /// Extensions whose records cannot be read, and must not be written.
    unreadable: Mutex<BTreeMap<ExtensionId, Unreadable>>,
    /// Extensions whose records were written by somebody else, and are made anew.
    forgotten: BTreeMap<ExtensionId, String>,
    /// What versions in unreadable records may need.
    foreign: BTreeSet<Kept>,
    /// What decides whether a version may come back.
    may_run: MayRun,
    /// The components of which this Main has noted last that they run without a number.
    marked: Mutex<BTreeMap<ExtensionId, ArtifactHash>>,
    /// What extensions keep in stores. Set once.
    own_data: OnceLock<Box<dyn OwnData>>,
    /// Extensions whose records could not be read at first. What was chosen without them does not run over what they keep.
    read_late: Mutex<BTreeSet<ExtensionId>>,
    /// Extensions whose restores are over, and whose marks beside the stores are to be removed.
    over: Mutex<BTreeSet<ExtensionId>>,
    /// Held while a mark is made or removed, which takes the time of the disk.
    marking: Mutex<()>,
    /// Whether another Main uses the directory, and has made those marks.
    is_in_use: bool,
    /// Versions whose data could not be prepared: until when they wait, and why.
    hindered: Mutex<HashMap<(ExtensionId, u64), (Instant, String)>>,
    /// Held while files are written, so that the latest record is the last one written.
    writing: Mutex<()>,
}

/// Decides whether the kept component of a version may run, or says why not, and which ones are revoked. Nothing decides
/// until it is set, and all may run.
#[derive(Default)]
struct MayRun(OnceLock<(Box<Decide>, Box<IsRevoked>)>);

type Decide = dyn Fn(&ExtensionConfig) -> Result<(), String> + Send + Sync;

type IsRevoked = dyn Fn(ArtifactHash, Option<&str>) -> bool + Send + Sync;

impl MayRun {
    fn check(&self, config: &ExtensionConfig) -> Result<(), String> {
        self.0.get().map_or(Ok(()), |(decide, _)| decide(config))
    }

    fn is_revoked(&self, hash: ArtifactHash, signature: Option<&str>) -> bool {
        self.0.get().is_some_and(|(_, is_revoked)| is_revoked(hash, signature))
    }
}

impl fmt::Debug for MayRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MayRun")
    }
}

/// Why an order about versions cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VersionError {
    /// The extension has no versions.
    #[error("no versions of `{0}` are kept: it has no `update`, or has not run yet")]
    None(ExtensionId),
    /// There is no such version.
    #[error("`{0}` has no version {1}: `weir versions {0}` lists them")]
    Unknown(ExtensionId, u64),
    /// The version is not proven.
    #[error("version {1} of `{0}` is not proven: only proven versions can come back")]
    NotProven(ExtensionId, u64),
    /// The version runs already.
    #[error("`{0}` runs version {1}: name another one to go back to")]
    Runs(ExtensionId, u64),
    /// There is no earlier proven version.
    #[error("`{0}` has no other proven version to go back to")]
    NothingBefore(ExtensionId),
    /// No version is on probation.
    #[error("no version of `{0}` is on probation")]
    NotOnProbation(ExtensionId),
    /// The version cannot read the data that is there.
    #[error("{why}. With --data-too the data of {taken} comes back, and what was written since is lost")]
    Data {
        /// Why.
        why: String,
        /// When the data that it can read was kept.
        taken: String,
    },
    /// The version cannot read the data that is there, and no older data is kept for it.
    #[error("{0}, and no snapshot is kept for it: only a version that can read it can run")]
    NoSnapshot(String),
    /// The state could not be written.
    #[error("the decision is not written down, and holds until Main ends: {0}")]
    NotSaved(String),
}

impl Versions {
    /// Opens the records in `main.state-dir`, of at most `size` bytes of components. Where that is not possible, or
    /// without a directory, versions are kept in memory; warns of each record that cannot be used.
    #[must_use]
    pub fn open(dir: Option<PathBuf>, size: u64) -> Self {
        let Some(dir) = dir else { return Self::default() };
        let opened = StateDir::open(dir, size).and_then(|state| Ok((state.records()?, state)));
        let (found, state) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                tracing::error!("versions are kept in memory, and lost at the end: {}", chain(&error));
                let is_in_use = matches!(error, StateError::InUse { .. });
                return Self { is_in_use, ..Self::default() };
            }
        };
        let (mut records, mut unreadable, mut forgotten) =
            (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (id, record) in found {
            match record {
                Ok(record) => drop(records.insert(id, record)),
                Err(error @ StateError::NotAuthentic(_)) => {
                    tracing::error!(extension = %id, "its versions are forgotten: {error}");
                    forgotten.insert(id, error.to_string());
                }
                Err(error) => {
                    tracing::error!(extension = %id, "its versions are not kept: {}", chain(&error));
                    unreadable.insert(id, Unreadable::from(&error));
                }
            }
        }
        let can_read_all = unreadable.is_empty();
        let (records, unreadable) = (records.into(), unreadable.into());
        let mut versions = Self { records, unreadable, forgotten, ..Self::default() };
        if !can_read_all {
            // If they cannot be listed, nothing can be removed either.
            let known = versions.needed();
            let kept = state.sizes().unwrap_or_default().into_keys();
            versions.foreign = kept.filter(|kept| !known.contains(kept)).collect();
        }
        versions.forget_data(&state);
        versions.state = Some(state);
        versions
    }

    /// Lets `decide` find out whether a kept component may run, before a version comes back. It blocks on files. Of a
    /// version that `is_revoked`, by its component and signature, others may be older.
    pub fn decide_by(
        &self,
        decide: impl Fn(&ExtensionConfig) -> Result<(), String> + Send + Sync + 'static,
        is_revoked: impl Fn(ArtifactHash, Option<&str>) -> bool + Send + Sync + 'static,
    ) {
        // Only the first ones count, and Main sets them once.
        let _set = self.may_run.0.set((Box::new(decide), Box::new(is_revoked)));
    }

    /// Tells which extensions are configured from now on. What is kept of others is the first to go for want of room.
    pub fn configure(&self, ids: impl IntoIterator<Item = ExtensionId>) {
        *self.configured.lock() = ids.into_iter().collect();
    }

    /// Notes that the instance with this configuration runs this version and is ready. `is_canary` is what was
    /// [chosen](Chosen::is_canary) for it. Returns whether it is the canary still.
    pub fn serves(&self, config: &ExtensionConfig, number: u64, is_canary: bool) -> bool {
        // A single instance tries its versions itself.
        let tries = config.canary.as_ref().is_none_or(|canary| *canary == config.id);
        let serves = |record: &mut Record| record.serves(number, is_canary, tries);
        self.change(original(config), serves).unwrap_or_default()
    }

    /// Whether only the canary runs this component with this configuration, and this instance waits for the outcome.
    #[must_use]
    pub fn is_tried_elsewhere(&self, config: &ExtensionConfig, hash: ArtifactHash) -> bool {
        let is_tried = |record: &mut Record| {
            record.canary.is_some() && record.find(hash, config).map(|it| it.status.number) == record.canary
        };
        config.canary.as_ref().is_some_and(|canary| *canary != config.id)
            && self.change(original(config), is_tried).unwrap_or_default()
    }

    /// What is known of a version.
    #[must_use]
    pub fn standing(&self, id: &ExtensionId, number: u64) -> Option<Standing> {
        self.change(id, |record| record.get(number).map(|entry| entry.status.standing)).flatten()
    }

    /// How long a version on probation runs until it is next looked at. None if it is not on probation.
    #[must_use]
    pub fn next_look(&self, id: &ExtensionId, number: u64, update: &UpdateConfig) -> Option<Duration> {
        let records = self.records.lock();
        let status = &records.get(id)?.get(number)?.status;
        (status.standing == Standing::Probation).then(|| judge::next_look(update.prove_for, status.ran))
    }

    /// Adds what a version did while it ran for this time.
    pub fn count(&self, id: &ExtensionId, number: u64, ran: Duration, figures: &VersionFigures) {
        self.change(id, |record| record.count(number, ran, figures));
    }

    /// Counts a failure of a version on probation.
    pub fn count_failure(&self, id: &ExtensionId, number: u64) {
        self.change(id, |record| record.count_failure(number));
    }

    /// Judges a version on probation. Returns the change, if it is refused or proven from now on.
    pub fn judge(&self, id: &ExtensionId, number: u64, update: &UpdateConfig) -> Option<VersionChange> {
        self.change(id, |record| {
            let status = &record.get(number)?.status;
            if status.standing != Standing::Probation {
                return None;
            }
            let (ran, now) = (status.ran, SystemTime::now());
            match record.fault(number, update) {
                Some(reason) => {
                    record.want_data(update);
                    record.decide(number, Standing::Refused, reason, now)
                }
                None if ran >= update.prove_for => {
                    let held = format!("it held for {}", humantime::format_duration(update.prove_for));
                    record.decide(number, Standing::Proven, held, now)
                }
                None => None,
            }
        })?
    }

    /// Refuses a version on probation that did not come up, if another one can come back. Returns the change.
    pub fn refuse(
        &self,
        id: &ExtensionId,
        number: u64,
        update: &UpdateConfig,
        reason: &str,
    ) -> Option<VersionChange> {
        self.change(id, |record| {
            record.fallback_of(number)?;
            if record.get(number)?.status.standing != Standing::Probation {
                return None;
            }
            record.want_data(update);
            record.decide(number, Standing::Refused, reason.to_owned(), SystemTime::now())
        })?
    }

    /// Takes the version on probation for proven, for this reason.
    ///
    /// # Errors
    ///
    /// Fails if there is none.
    pub fn accept(&self, id: &ExtensionId, reason: &str) -> Result<VersionChange, VersionError> {
        let accepted = self.change(id, |record| {
            record
                .on_probation()
                .and_then(|number| {
                    record.decide(number, Standing::Proven, reason.to_owned(), SystemTime::now())
                })
                .ok_or_else(|| VersionError::NotOnProbation(id.clone()))
        });
        accepted.ok_or_else(|| VersionError::None(id.clone()))?
    }

    /// Refuses the version on probation, or else the one that serves. Makes the proven version `to` come back, or else
    /// the latest proven one before it, or a later one if there is none. If that one cannot read the data that is there,
    /// it is to be restored if `data_too`.
    ///
    /// # Errors
    ///
    /// Fails if there is no such version, it is not proven, or it cannot read the data, and then that is not to be
    /// restored or is not kept.
    pub fn roll_back(
        &self,
        id: &ExtensionId,
        to: Option<u64>,
        data_too: bool,
        reason: &str,
    ) -> Result<VersionChange, VersionError> {
        let rolled_back = self.change(id, |record| {
            let from = record.on_probation().or(record.serving).or(record.fallback);
            let from = from.ok_or_else(|| VersionError::None(id.clone()))?;
            let to = match to {
                Some(to) => match record.get(to).map(|entry| entry.status.standing) {
                    None => return Err(VersionError::Unknown(id.clone(), to)),
                    Some(_) if to == from && record.reads(to) => {
                        return Err(VersionError::Runs(id.clone(), to));
                    }
                    Some(Standing::Proven) => to,
                    Some(_) => return Err(VersionError::NotProven(id.clone(), to)),
                },
                // It has served, and waits for its data, since the one after it was never ready.
                None if !record.reads(from) => from,
                None => {
                    let proven = |entry: &&Entry| entry.status.standing == Standing::Proven;
                    let others = record.entries.iter().filter(proven).map(|entry| entry.status.number);
                    // An earlier one if there is one, and the latest of them.
                    let before = others.filter(|number| *number != from).max_by_key(|it| (*it < from, *it));
                    before.ok_or_else(|| VersionError::NothingBefore(id.clone()))?
                }
            };
            if record.get(from).is_none() {
                return Err(VersionError::Unknown(id.clone(), from));
            }
            let wanted = record.restored_for(to, data_too)?;
            record.comes_back(to);
            record.data.wanted = wanted;
            // What wrote the data was never ready. It is refused now, or was before.
            let from = if to == from { record.latest_probation().unwrap_or(from) } else { from };
            if to == from {
                return record.changes.back().cloned().ok_or_else(|| VersionError::Runs(id.clone(), to));
            }
            record
                .decide(from, Standing::Refused, reason.to_owned(), SystemTime::now())
                .ok_or_else(|| VersionError::Unknown(id.clone(), from))
        });
        rolled_back.ok_or_else(|| VersionError::None(id.clone()))?
    }

    /// Writes down what is known of an extension's versions. Blocks on files.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written. It holds all the same until Main ends.
    pub fn save(&self, id: &ExtensionId) -> Result<(), VersionError> {
        // First, because the rest may fail, and what was put aside must not return then.
        self.remove_mark(id);
        let Some(_writing) = self.writing.try_lock_for(BUSY) else {
            return Err(VersionError::NotSaved("the disk is busy with the versions of others".to_owned()));
        };
        self.write(id).map_err(|error| VersionError::NotSaved(chain(&error)))
    }

    /// The versions of an extension. None if none are known.
    #[must_use]
    pub fn status(&self, id: &ExtensionId, update: &UpdateConfig) -> Option<VersionsStatus> {
        let records = self.records.lock();
        let record = records.get(id)?;
        Some(VersionsStatus {
            extension: id.clone(),
            serving: record.serving,
            canary: record.canary,
            fallback: record.fallback,
            held_back: record.held_back.clone(),
            prove_for: update.prove_for,
            is_kept: self.state.is_some(),
            versions: record.entries.iter().rev().map(|entry| entry.status.clone()).collect(),
            changes: record.changes.clone(),
            data: record.data.status(),
        })
    }

    /// The version that an instance of an extension runs, in short. Without its number, the one that serves.
    #[must_use]
    pub fn serving(&self, id: &ExtensionId, number: Option<u64>) -> Option<ServingVersion> {
        let records = self.records.lock();
        let record = records.get(id)?;
        let status = &record.get(number.or(record.serving)?)?.status;
        let is_held_back = record.held_back.is_some();
        Some(ServingVersion { number: status.number, standing: status.standing, is_held_back })
    }

    /// Changes a record, if there is one.
    fn change<T>(&self, id: &ExtensionId, change: impl FnOnce(&mut Record) -> T) -> Option<T> {
        self.records.lock().get_mut(id).map(change)
    }

    /// Writes a record, if there is one. Called with [`writing`](Self::writing) locked.
    fn write(&self, id: &ExtensionId) -> Result<(), StateError> {
        let Some(record) = self.change(id, |record| record.clone()) else { return Ok(()) };
        match &self.state {
            Some(state) => {
                state.write(id, &record)?;
                // The record is on the disk: what else takes room is looked at again with the next one.
                if let Err(error) = state.sweep(&self.needed()) {
                    tracing::warn!("what is not needed is not removed: {}", chain(&error));
                }
                Ok(())
            }
            None => {
                let needed = self.needed();
                self.components.lock().retain(|hash, _| needed.contains(&Kept::Component(*hash)));
                Ok(())
            }
        }
    }
}

/// A step of a change at which a power cut may come. With the environment variable `WEIR_FAULT_POINT` set to a number,
/// the process is killed at the fault point with that number, from 1. Only in a build with debug assertions, for tests.
fn fault_point() {
    static REACHED: AtomicU64 = AtomicU64::new(1);
    if cfg!(debug_assertions)
        && let Some(number) = std::env::var_os("WEIR_FAULT_POINT")
        && *number == *REACHED.fetch_add(1, Ordering::Relaxed).to_string()
    {
        std::process::abort();
    }
}
