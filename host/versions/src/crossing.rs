//! From the data of one version to that of another, before an instance runs: what is there is kept, and what was there
//! is restored.
//!
//! Each step is on the disk before the next begins. A step that was cut off is made again, from its begin.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    fmt,
    io::{self, BufReader, Read, Write},
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use weir_config::{ArtifactHash, ExtensionConfig};
use weir_names::{ExtensionId, StoreName, chain};
use weir_reports::DataSnapshot;

use crate::{
    Unreadable, Versions,
    choose::{Look, original},
    data::{Aside, Crossing, Due},
    fault_point,
    record::Record,
    state_dir::{Hashing, StateError},
};

/// How long a version is not chosen again, if another one can run, after its data could not be prepared.
const HINDERED: Duration = Duration::from_secs(60);

/// An extension with data of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataOwner {
    /// The extension.
    pub id: ExtensionId,
    /// The stores where it may have data. Those that are shared have none of its own.
    pub stores: BTreeSet<StoreName>,
}

/// What extensions keep in stores of their own.
pub trait OwnData: fmt::Debug + Send + Sync {
    /// The directory of the stores, if they have one.
    fn dir(&self) -> Option<&Path>;

    /// Writes all that an extension has in its stores, always in the same order. Blocks.
    ///
    /// # Errors
    ///
    /// Says why it cannot be read or written.
    fn copy_to(&self, owner: &DataOwner, to: &mut dyn Write) -> Result<(), String>;

    /// Replaces all that an extension has in its stores by what [`copy_to`](Self::copy_to) has written. It is on the disk
    /// when this returns. After a failure, and when it was cut off, it can be made again. Blocks.
    ///
    /// # Errors
    ///
    /// Says why it cannot be read or written.
    fn put_back(&self, owner: &DataOwner, from: &mut dyn Read) -> Result<(), String>;
}

/// Why a version does not run with the data that is there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct DataHindrance {
    /// Why.
    pub reason: String,
    /// Whether it takes an order of an operator to change that.
    pub is_held: bool,
}

impl DataHindrance {
    fn held(reason: String) -> Self {
        Self { reason, is_held: true }
    }

    pub(crate) fn passes(reason: String) -> Self {
        Self { reason, is_held: false }
    }
}

impl From<StateError> for DataHindrance {
    fn from(error: StateError) -> Self {
        Self::passes(format!("the extension's data cannot be kept: {}", chain(&error)))
    }
}

impl Versions {
    /// What [`cross`](Self::cross) is to do before an instance with this configuration runs: this version, or without a
    /// number a component with this hash. Decides of instances, too: what changes the data is no canary, and does not
    /// start beside the version before.
    #[must_use]
    pub fn crossing(
        &self,
        config: &ExtensionConfig,
        number: Option<u64>,
        hash: Option<ArtifactHash>,
    ) -> Crossing {
        let id = original(config);
        if !has_stores(config) {
            return Crossing::Nothing;
        }
        if let Some(number) = number {
            let crossing = self.change(id, |record| record.crossing_of(number)).unwrap_or(Crossing::Nothing);
            // The other Main may have made a mark.
            return if self.is_in_use && crossing == Crossing::Nothing { Crossing::Noted } else { crossing };
        }
        // What it writes is known once its manifest is read.
        if hash.is_some() && self.marked.lock().get(id).copied() == hash {
            return Crossing::Nothing;
        }
        if self.unreadable(id).is_some() {
            return Crossing::Noted;
        }
        match self.change(id, |record| record.data.keeps()) {
            Some(true) => Crossing::Alone,
            Some(false) => Crossing::Noted,
            // Its manifest may be why it has no number.
            None if config.update.is_some() || self.is_in_use => Crossing::Noted,
            None => Crossing::Nothing,
        }
    }

    /// Says why a version could not run with the data that is there, unless that is to be restored for it.
    #[must_use]
    pub fn cannot_read(&self, config: &ExtensionConfig, number: u64) -> Option<String> {
        let cannot = |record: &mut Record| {
            let is_wanted = record.data.wanted == Some(number) || record.is_restored_for(number);
            record.cannot_read(number).filter(|_| !is_wanted && !record.undoes_as(number))
        };
        has_stores(config).then(|| self.change(original(config), cannot)).flatten().flatten()
    }

    /// Prepares the data for an instance with this configuration that runs this version, or without a number a component
    /// with this hash, of which `look` reads what it says of its data. Does what [`crossing`](Self::crossing) says, and the
    /// caller sees to it that no instance of the extension runs meanwhile if it says so. Blocks on files.
    ///
    /// # Errors
    ///
    /// Says why the version must not run. Nothing is lost.
    pub fn cross(
        &self,
        config: &ExtensionConfig,
        number: Option<u64>,
        hash: ArtifactHash,
        look: Look<'_>,
    ) -> Result<(), DataHindrance> {
        let id = original(config);
        if !has_stores(config) {
            return Ok(());
        }
        if self.is_in_use {
            self.check_mark(id)?;
        }
        let crossed = match number {
            Some(number) => self.cross_to(&self.owner(config), number),
            None if config.update.is_some() && self.was_read_late(id) => {
                Err(DataHindrance::passes("the record of its versions can be read by now".to_owned()))
            }
            None => self.cross_to_unknown(config, hash, look),
        };
        if let Some(number) = number {
            let key = (id.clone(), number);
            let mut hindered = self.hindered.lock();
            match &crossed {
                Err(DataHindrance { reason, is_held: false }) => {
                    hindered.retain(|_, (until, _)| *until > Instant::now());
                    hindered.insert(key, (Instant::now() + HINDERED, reason.clone()));
                }
                _ => drop(hindered.remove(&key)),
            }
        }
        crossed
    }

    /// Says why a version could not be prepared of late.
    pub(crate) fn hindrance(&self, id: &ExtensionId, number: u64) -> Option<String> {
        let hindered = self.hindered.lock();
        let (until, reason) = hindered.get(&(id.clone(), number))?;
        (*until > Instant::now()).then(|| format!("version {number} could not start: {reason}"))
    }

    /// Notes that an instance with this configuration, which runs this version, is ready. Returns whether that is to be
    /// written down: what was put aside is given up, and so is the wish to restore older data.
    pub fn came_back(&self, config: &ExtensionConfig, number: u64) -> bool {
        if !has_stores(config) {
            return false;
        }
        let id = original(config);
        let came_back = |record: &mut Record| {
            let was_between = record.data.is_between();
            (record.came_back(number), was_between && !record.data.is_between())
        };
        let (has_changed, is_over) = self.change(id, came_back).unwrap_or_default();
        if is_over {
            self.over.lock().insert(id.clone());
        }
        has_changed
    }

    /// Notes that a version does not come back after all. Returns whether that is to be written down.
    pub fn stays(&self, id: &ExtensionId) -> bool {
        self.change(id, |record| record.data.wanted.take().is_some()).unwrap_or_default()
    }

    fn cross_to(&self, owner: &DataOwner, number: u64) -> Result<(), DataHindrance> {
        let id = &owner.id;
        self.marked.lock().remove(id);
        self.know_again(id)?;
        let asks =
            |ask: fn(&Record, u64) -> bool| self.change(id, |record| ask(record, number)).unwrap_or_default();
        // Before a restore that was begun for another version: it need not be possible any more.
        if asks(Record::undoes_as) {
            self.undo(id)?;
        }
        self.finish(owner)?;
        if asks(|record, number| !record.reads(number)) {
            self.go_back(owner, number)?;
        }
        if asks(Record::raises) {
            self.go_forward(owner, number)?;
        }
        Ok(())
    }

    /// Notes that a component runs without a number: what it says that it writes is known from now on.
    fn cross_to_unknown(
        &self,
        config: &ExtensionConfig,
        hash: ArtifactHash,
        look: Look<'_>,
    ) -> Result<(), DataHindrance> {
        let owner = &self.owner(config);
        let id = &owner.id;
        let (found, form) = look(config).map_err(DataHindrance::passes)?;
        if found != hash {
            return Err(DataHindrance::passes("its component has changed while it was read".to_owned()));
        }
        if let Some(Unreadable { why, may_pass }) = self.unreadable(id) {
            if may_pass {
                return Err(DataHindrance::passes(format!(
                    "what is known of its data cannot be read: {why}"
                )));
            }
            self.mark(id, form.data_since.as_deref())?;
        } else {
            self.begin_if_later(id, form.data_since.as_deref());
            self.know_again(id)?;
            if self.change(id, |record| record.undoes(&form, None)).unwrap_or_default() {
                self.undo(id)?;
            }
            self.finish(owner)?;
            if let Some(aside) = self.change(id, |record| record.data.aside.clone()).flatten() {
                let taken = humantime::format_rfc3339_seconds(aside.snapshot.taken);
                return Err(DataHindrance::held(format!(
                    "its data of {taken} is put aside until a version is ready, and would be lost: give it `update` again"
                )));
            }
            self.alter(id, |record| record.data.unknown_ran(form.data_since.as_deref()))?;
        }
        self.marked.lock().insert(id.clone(), hash);
        Ok(())
    }

    /// Begins the record of an extension that has none, if it is to say which versions can read its data.
    pub(crate) fn begin_if_later(&self, id: &ExtensionId, since: Option<&str>) {
        if since.is_some() && !self.forgotten.contains_key(id) {
            self.records.lock().entry(id.clone()).or_default();
        }
    }

    /// Notes beside a record that cannot be read that a version runs which it does not know, and what that may write.
    fn mark(&self, id: &ExtensionId, since: Option<&str>) -> Result<(), DataHindrance> {
        let Some(state) = &self.state else { return Ok(()) };
        let _writing = self.writing.lock();
        let mut unknown = state.mark_of(id)?.unwrap_or_default();
        unknown.data.raise(since);
        Ok(state.mark(id, &unknown)?)
    }

    /// The extension, with the stores that this configuration may reach, or that of any version that is known.
    fn owner(&self, config: &ExtensionConfig) -> DataOwner {
        let granted = |config: &ExtensionConfig| -> BTreeSet<StoreName> {
            config.grants.stores.iter().map(|grant| grant.name.clone()).collect()
        };
        let (id, mut stores) = (original(config).clone(), granted(config));
        let stanzas = self.change(&id, |record| {
            record.entries.iter().filter_map(|entry| entry.stanza.clone()).collect::<Vec<_>>()
        });
        let known = stanzas.unwrap_or_default().into_iter().filter_map(|stanza| stanza.config().ok());
        stores.extend(known.flat_map(|config| granted(&config)));
        DataOwner { id, stores }
    }

    /// Begins to restore what was put aside.
    fn undo(&self, id: &ExtensionId) -> Result<(), DataHindrance> {
        Ok(self.alter(id, |record| {
            let aside = record.data.aside.as_ref();
            record.data.due = aside.map(|aside| Due { snapshot: aside.snapshot.clone(), is_undone: true });
        })?)
    }

    /// Keeps what is there, if a version that can come back could read only that. From now on, the version may have
    /// written.
    fn go_forward(&self, owner: &DataOwner, number: u64) -> Result<(), DataHindrance> {
        let id = &owner.id;
        let asked = self.change(id, |record| {
            let form = record.get(number)?.form.clone()?;
            Some((record.loses(&form, Some(number)), form.data_since))
        });
        let Some((loses, since)) = asked.flatten() else { return Ok(()) };
        if !loses {
            return Ok(self.alter(id, |record| record.data.since = since)?);
        }
        self.keep_data(owner, number, |record, snapshot| {
            record.data.snapshots.push(snapshot);
            record.data.since = since;
            record.prune_data();
        })
    }

    /// Restores what a version can read, if that was asked for, or nothing has been written since.
    fn go_back(&self, owner: &DataOwner, number: u64) -> Result<(), DataHindrance> {
        let id = &owner.id;
        let known = self.change(id, |record| {
            let why = record.cannot_read(number).unwrap_or_default();
            (why, record.snapshot_for(number).cloned(), record.data.wanted == Some(number))
        });
        let Some((why, snapshot, is_wanted)) = known else { return Ok(()) };
        let Some(snapshot) = snapshot else {
            return Err(DataHindrance::held(format!(
                "{why}, and no snapshot is kept for it: put a version there that can"
            )));
        };
        let mut present = Hashing::new(io::sink(), u64::MAX);
        self.own_data()?.copy_to(owner, &mut present).map_err(DataHindrance::passes)?;
        if present.hash().to_string() == snapshot.hash {
            return Ok(self.alter(id, |record| {
                (record.data.since, record.data.wanted) = (snapshot.since, None);
                record.prune_data();
            })?);
        }
        if !is_wanted {
            let taken = humantime::format_rfc3339_seconds(snapshot.taken);
            return Err(DataHindrance::held(format!(
                "{why}: `weir rollback {id} {number} --data-too` restores that of {taken}, and what was written since is lost"
            )));
        }
        if self.open_snapshot(&snapshot)?.is_none() {
            self.alter(id, |record| {
                record.data.wanted = None;
                record.data.snapshots.retain(|other| *other != snapshot);
            })?;
            return Err(DataHindrance::held(format!("{why}, and {}", lost(&snapshot))));
        }
        let generation = self.generation(id)?;
        let begin = |record: &mut Record, aside| {
            record.data.generation = generation;
            record.data.aside = Some(Aside { snapshot: aside, back: number });
            record.data.due = Some(Due { snapshot, is_undone: false });
            record.data.wanted = None;
        };
        // What was put aside stays until a version has come back: what is there is from a way back that failed.
        match self.change(id, |record| record.data.aside.clone()).flatten() {
            Some(aside) => self.alter(id, |record| begin(record, aside.snapshot))?,
            None => self.keep_data(owner, number, begin)?,
        }
        self.finish(owner)
    }

    /// Makes the restore that has begun, if there is one.
    fn finish(&self, owner: &DataOwner) -> Result<(), DataHindrance> {
        let id = &owner.id;
        let Some(due) = self.change(id, |record| record.data.due.clone()).flatten() else { return Ok(()) };
        let Some(file) = self.open_snapshot(&due.snapshot)? else { return self.give_up(owner, &due) };
        fault_point();
        self.own_data()?
            .put_back(owner, &mut Stepwise(BufReader::new(file)))
            .map_err(DataHindrance::passes)?;
        fault_point();
        tracing::warn!(
            extension = %id,
            "its data is that of {} again",
            humantime::format_rfc3339_seconds(due.snapshot.taken)
        );
        Ok(self.alter(id, |record| record.data.restored())?)
    }

    /// Gives up a restore whose snapshot is lost. What was put aside returns, if it is there.
    fn give_up(&self, owner: &DataOwner, due: &Due) -> Result<(), DataHindrance> {
        let id = &owner.id;
        let lost = lost(&due.snapshot);
        tracing::error!(extension = %id, "its data is not restored: {lost}");
        self.alter(id, |record| {
            let data = &mut record.data;
            data.snapshots.retain(|other| *other != due.snapshot);
            data.due = match &data.aside {
                Some(aside) if !due.is_undone => {
                    Some(Due { snapshot: aside.snapshot.clone(), is_undone: true })
                }
                _ => None,
            };
            if due.is_undone {
                data.give_up_restore();
                data.since.clone_from(&due.snapshot.since);
            }
        })?;
        if !due.is_undone {
            self.finish(owner)?;
        }
        Err(DataHindrance::held(format!("its data is not restored: {lost}")))
    }

    fn open_snapshot(&self, snapshot: &DataSnapshot) -> Result<Option<std::fs::File>, DataHindrance> {
        let state = self.state.as_ref().ok_or_else(no_state_dir)?;
        let Ok(hash) = snapshot.hash.parse() else { return Ok(None) };
        Ok(state.open_data(hash)?)
    }

    /// Keeps what is in the stores now, and changes the record by that.
    fn keep_data(
        &self,
        owner: &DataOwner,
        number: u64,
        change: impl FnOnce(&mut Record, DataSnapshot),
    ) -> Result<(), DataHindrance> {
        let id = &owner.id;
        let (state, own_data) = (self.state.as_ref().ok_or_else(no_state_dir)?, self.own_data()?);
        let written = state.write_data(self.must_stay(state)?, |to| own_data.copy_to(owner, to))?;
        let (hash, bytes) = (written.hash, written.bytes);
        let since = self.change(id, |record| record.data.since.clone()).flatten();
        let snapshot =
            DataSnapshot { hash: hash.to_string(), bytes, taken: SystemTime::now(), since, before: number };
        // Held until the record names it, so that it is not swept.
        let _writing = self.writing.lock();
        state.place_data(written, |room| self.make_room(state, None, room))?;
        Ok(self.alter_alone(id, |record| change(record, snapshot))?)
    }

    pub(crate) fn own_data(&self) -> Result<&dyn OwnData, DataHindrance> {
        let none = || DataHindrance::passes("this Main has no stores".to_owned());
        self.own_data.get().map(|own_data| &**own_data).ok_or_else(none)
    }

    /// Changes what a record says of the data, and writes it down. Changes nothing if that fails.
    pub(crate) fn alter(&self, id: &ExtensionId, change: impl FnOnce(&mut Record)) -> Result<(), StateError> {
        let _writing = self.writing.lock();
        self.alter_alone(id, change)
    }

    fn alter_alone(&self, id: &ExtensionId, change: impl FnOnce(&mut Record)) -> Result<(), StateError> {
        let changed = self.change(id, |record| {
            let before = record.data.clone();
            change(record);
            let is_over = before.is_between() && !record.data.is_between();
            (before, record.data.wanted, is_over)
        });
        let written = self.write(id);
        if let (Ok(()), Some((.., true))) = (&written, &changed) {
            self.over.lock().insert(id.clone());
            self.remove_mark(id);
        }
        if let (Err(_), Some((before, wanted, _))) = (&written, changed) {
            self.change(id, |record| {
                // An operator may have wished for something meanwhile.
                let new_wish = record.data.wanted.filter(|_| record.data.wanted != wanted);
                record.data = before;
                record.data.wanted = new_wish.or(record.data.wanted);
            });
        }
        written
    }
}

/// Whether an extension with this configuration may reach stores.
pub(crate) fn has_stores(config: &ExtensionConfig) -> bool {
    !config.grants.stores.is_empty()
}

fn no_state_dir() -> DataHindrance {
    DataHindrance::passes("its data must be kept first, which needs `main.state-dir`".to_owned())
}

fn lost(snapshot: &DataSnapshot) -> String {
    let taken = humantime::format_rfc3339_seconds(snapshot.taken);
    format!("the snapshot of {taken} is lost or damaged: `weir-data-{}`", snapshot.hash)
}

/// Reads with a fault point at each read.
struct Stepwise<R>(R);

impl<R: Read> Read for Stepwise<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        fault_point();
        self.0.read(buffer)
    }
}
