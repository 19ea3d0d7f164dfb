//! What is known of an extension's data: which versions can read it, and which older data is kept. Pure: it has neither
//! clock nor disk.

use serde::{Deserialize, Serialize};
use weir_config::UpdateConfig;
use weir_reports::{DataSnapshot, DataStatus, Standing};

use crate::{
    VersionError,
    form::{Form, is_later},
    record::Record,
};

/// What is known of the data of one extension.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct Data {
    /// The oldest version that can read what is in the stores, by all versions that may have written there.
    pub(crate) since: Option<String>,
    /// What was in the stores before a version changed its form, oldest first.
    pub(crate) snapshots: Vec<DataSnapshot>,
    /// The version that a snapshot is to be restored for, at its next start.
    pub(crate) wanted: Option<u64>,
    /// What is being restored. Until it is done, the stores may hold a part of it.
    pub(crate) due: Option<Due>,
    /// What was in the stores before the last restore, until the version that came back is ready.
    pub(crate) aside: Option<Aside>,
    /// The [generation](crate::generation) of the stores that the restore is for.
    pub(crate) generation: Option<String>,
}

/// A restore that has begun.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Due {
    pub(crate) snapshot: DataSnapshot,
    /// Whether it is what was put aside that returns.
    pub(crate) is_undone: bool,
}

/// What was in the stores before a restore.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Aside {
    pub(crate) snapshot: DataSnapshot,
    /// The version that came back with the restored data.
    pub(crate) back: u64,
}

impl Data {
    pub(crate) fn status(&self) -> Option<DataStatus> {
        (*self != Self::default()).then(|| DataStatus {
            since: self.since.clone(),
            snapshots: self.snapshots.clone(),
            put_aside: self.aside.as_ref().map(|aside| aside.snapshot.clone()),
        })
    }

    /// The hashes of all that is kept.
    pub(crate) fn hashes(&self) -> impl Iterator<Item = &str> {
        let due = self.due.iter().map(|due| &due.snapshot);
        let all = self.snapshots.iter().chain(due).chain(self.aside.iter().map(|aside| &aside.snapshot));
        all.map(|snapshot| &*snapshot.hash)
    }

    /// Whether older data is kept, or what was put aside.
    pub(crate) fn keeps(&self) -> bool {
        self.hashes().next().is_some()
    }

    /// Whether a restore has begun, or has not been followed by a version that was ready.
    pub(crate) fn is_between(&self) -> bool {
        self.due.is_some() || self.aside.is_some()
    }

    /// Gives up a restore that has begun, and what was put aside.
    pub(crate) fn give_up_restore(&mut self) {
        (self.due, self.aside, self.generation) = (None, None, None);
    }

    /// Notes that a version ran which has no number, and may have written what it states. Older data belongs to nothing
    /// any more. A restore that has begun, and what was put aside, may be all that is left of newer data, and stay.
    pub(crate) fn unknown_ran(&mut self, since: Option<&str>) {
        (self.snapshots, self.wanted) = (Vec::new(), None);
        self.raise(since);
    }

    /// Notes that a version may have written what only this one and later ones can read.
    pub(crate) fn raise(&mut self, since: Option<&str>) {
        if is_later(since, self.since.as_deref()) {
            self.since = since.map(ToOwned::to_owned);
        }
    }

    /// Notes that the restore is done.
    pub(crate) fn restored(&mut self) {
        let Some(due) = self.due.take() else { return };
        self.since = due.snapshot.since;
        self.wanted = None;
        if due.is_undone {
            self.give_up_restore();
        }
    }
}

/// What is to be done with the data before a version runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// Nothing.
    Nothing,
    /// What it may write is written down. Other instances may run meanwhile.
    Noted,
    /// The data is kept or restored, while no instance of the extension runs.
    Alone,
}

impl Record {
    /// What a version says of its data. One of which nothing is known says nothing.
    fn form(&self, number: u64) -> Form {
        self.get(number).and_then(|entry| entry.form.clone()).unwrap_or_default()
    }

    /// Whether a version can read what is in the stores. One of which nothing is known may not be able to.
    pub(crate) fn reads(&self, number: u64) -> bool {
        self.can_read(number, self.data.since.as_deref())
    }

    fn can_read(&self, number: u64, since: Option<&str>) -> bool {
        since.is_none() || self.form(number).reads(since)
    }

    /// Whether a version that can come back could read what is in the stores, but not what a version of this form
    /// writes.
    pub(crate) fn loses(&self, form: &Form, number: Option<u64>) -> bool {
        let since = form.data_since.as_deref();
        is_later(since, self.data.since.as_deref())
            && self.entries.iter().any(|entry| {
                let other = entry.status.number;
                entry.status.standing != Standing::Refused
                    && Some(other) != number
                    && self.reads(other)
                    && !self.can_read(other, since)
            })
    }

    /// Whether a version may write what fewer versions can read than what is in the stores.
    pub(crate) fn raises(&self, number: u64) -> bool {
        is_later(self.form(number).data_since.as_deref(), self.data.since.as_deref())
    }

    /// Whether what was put aside returns with a version of this form: the one that it was put aside for has not been
    /// ready.
    pub(crate) fn undoes(&self, form: &Form, number: Option<u64>) -> bool {
        self.data
            .aside
            .as_ref()
            .is_some_and(|aside| Some(aside.back) != number && form.reads(aside.snapshot.since.as_deref()))
    }

    pub(crate) fn undoes_as(&self, number: u64) -> bool {
        self.undoes(&self.form(number), Some(number))
    }

    /// What is to be done with the data before a version of this form runs.
    pub(crate) fn crossing(&self, form: &Form, number: Option<u64>) -> Crossing {
        let since = self.data.since.as_deref();
        if self.data.due.is_some()
            || self.undoes(form, number)
            || !form.reads(since)
            || self.loses(form, number)
        {
            Crossing::Alone
        } else if is_later(form.data_since.as_deref(), since) {
            Crossing::Noted
        } else {
            Crossing::Nothing
        }
    }

    /// What is to be done with the data before this version runs.
    pub(crate) fn crossing_of(&self, number: u64) -> Crossing {
        self.crossing(&self.form(number), Some(number))
    }

    /// Whether a version of this form runs without the version that comes back beside it: its data changes while it is
    /// alone, or the other one cannot read what is there or will be.
    pub(crate) fn is_apart(&self, form: &Form, number: Option<u64>) -> bool {
        let reads = |back: u64| self.reads(back) && self.can_read(back, form.data_since.as_deref());
        self.crossing(form, number) == Crossing::Alone
            || self.proven_fallback().is_some_and(|back| !reads(back.status.number))
    }

    /// The latest snapshot that a version can read.
    pub(crate) fn snapshot_for(&self, number: u64) -> Option<&DataSnapshot> {
        let mut latest = self.data.snapshots.iter().rev();
        latest.find(|snapshot| self.can_read(number, snapshot.since.as_deref()))
    }

    /// Says why a new version of this form cannot run with what is in the stores, if it cannot.
    pub(crate) fn cannot_run(&self, form: &Form) -> Option<String> {
        let since = self.data.since.as_deref();
        let undoes = self.undoes(form, None);
        (!undoes && !form.reads(since)).then(|| unreadable("it", form.version.as_deref(), since))
    }

    /// Whether a restore has begun with which a version can read what is in the stores.
    pub(crate) fn is_restored_for(&self, number: u64) -> bool {
        let mut due = self.data.due.iter().filter(|due| !due.is_undone);
        due.any(|due| self.can_read(number, due.snapshot.since.as_deref()))
    }

    /// Says why a version cannot run with what is in the stores, if it cannot.
    pub(crate) fn cannot_read(&self, number: u64) -> Option<String> {
        if self.reads(number) {
            return None;
        }
        let own = self.form(number).version;
        Some(unreadable(&format!("version {number}"), own.as_deref(), self.data.since.as_deref()))
    }

    /// Returns the version that the data is to be restored for if this one comes back, or why it cannot come back.
    pub(crate) fn restored_for(&self, number: u64, data_too: bool) -> Result<Option<u64>, VersionError> {
        match (self.cannot_read(number), self.snapshot_for(number)) {
            (Some(why), None) => Err(VersionError::NoSnapshot(why)),
            (Some(why), Some(snapshot)) if !data_too => {
                let taken = humantime::format_rfc3339_seconds(snapshot.taken).to_string();
                Err(VersionError::Data { why, taken })
            }
            (Some(_), Some(_)) => Ok(Some(number)),
            (None, _) => Ok(None),
        }
    }

    /// Notes that the data is to be restored for the version that comes back by itself, if the operator allows that.
    pub(crate) fn want_data(&mut self, update: &UpdateConfig) {
        let back = self.proven_fallback().map(|entry| entry.status.number);
        self.data.wanted = back.filter(|back| update.data_too && !self.reads(*back));
    }

    /// Notes that a version is ready with what is in the stores. What was put aside is given up, for whichever version it
    /// was: from now on the stores have the latest. Returns whether something has changed.
    pub(crate) fn came_back(&mut self, number: u64) -> bool {
        // One that was refused serves only until the restore that was asked for.
        let is_refused = self.get(number).is_some_and(|entry| entry.status.standing == Standing::Refused);
        let had_wish = self.data.wanted.take_if(|_| !is_refused).is_some();
        // An instance that has got its number while it ran may have written before.
        let (raises, form) = (self.raises(number), self.form(number));
        self.data.raise(form.data_since.as_deref());
        if self.data.due.is_some() {
            return had_wish || raises;
        }
        let was_aside = self.data.aside.is_some();
        if was_aside {
            self.data.give_up_restore();
            self.prune_data();
        }
        had_wish || raises || was_aside
    }

    /// Drops the snapshots that no version needs which can come back.
    pub(crate) fn prune_data(&mut self) {
        // What was put aside may return, and then an older snapshot is needed again.
        if self.data.is_between() {
            return;
        }
        let comes_back = self.entries.iter().filter(|entry| entry.status.standing != Standing::Refused);
        let blind = comes_back.map(|entry| entry.status.number).filter(|number| !self.reads(*number));
        let needed: Vec<_> = blind.filter_map(|number| self.snapshot_for(number)).cloned().collect();
        self.data.snapshots.retain(|snapshot| needed.contains(snapshot));
    }
}

fn unreadable(what: &str, own: Option<&str>, since: Option<&str>) -> String {
    let own = own.unwrap_or("of an unknown version");
    format!(
        "{what} ({own}) cannot read the extension's data, which is for {} and later",
        since.unwrap_or_default()
    )
}
