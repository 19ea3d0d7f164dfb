//! Makes room in the state directory: what goes first, and what never goes.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::SystemTime,
};

use weir_names::ExtensionId;

use crate::{
    Versions,
    record::Record,
    state_dir::{Kept, StateDir, StateError},
};

impl Versions {
    /// Gives up what is kept until the rest has at most so many bytes: first all of extensions that are no longer
    /// configured, then proven versions that are kept only to be rolled back to, the oldest first. The version that
    /// runs and the last proven one stay, and so does one on probation, but that of the extension with a `new` one.
    /// Snapshots of data go with the versions that need them. What is known of the data itself stays.
    /// Returns how many bytes the rest has. Gives up nothing if that is not enough.
    pub(crate) fn make_room(
        &self,
        state: &StateDir,
        new: Option<&ExtensionId>,
        room: u64,
    ) -> Result<u64, StateError> {
        let sizes = state.sizes()?;
        let taken = |left: &BTreeMap<ExtensionId, Record>| -> u64 {
            self.needed_by(left).iter().filter_map(|hash| sizes.get(hash)).sum()
        };
        let left = || {
            let mut left = self.records.lock().clone();
            new.and_then(|id| left.get_mut(id)).into_iter().for_each(Record::drop_probation);
            left
        };
        let (mut planned, mut goes) = (left(), Vec::new());
        for (_, id, number) in self.spare() {
            if taken(&planned) <= room {
                break;
            }
            match number {
                None => drop(give_up(&mut planned, &id)),
                Some(number) => planned.get_mut(&id).into_iter().for_each(|record| record.remove(number)),
            }
            goes.push((id, number));
        }
        let rest = taken(&planned);
        if rest > room {
            return Ok(rest);
        }
        for (id, number) in goes {
            match number {
                None => {
                    let left = give_up(&mut self.records.lock(), &id);
                    left.map_or_else(|| state.remove(&id), |left| state.write(&id, &left))?;
                }
                Some(number) => {
                    // An operator may have rolled back to it in the meantime.
                    let given_up = self.change(&id, |record| {
                        let is_spare = record.spare().any(|entry| entry.status.number == number);
                        is_spare.then(|| {
                            record.remove(number);
                            record.clone()
                        })
                    });
                    given_up.flatten().map_or(Ok(()), |record| state.write(&id, &record))?;
                }
            }
        }
        let left = left();
        state.sweep(&self.needed_by(&left))?;
        Ok(taken(&left))
    }

    /// How many bytes cannot be given up.
    pub(crate) fn must_stay(&self, state: &StateDir) -> Result<u64, StateError> {
        let sizes = state.sizes()?;
        let mut left = self.records.lock().clone();
        for (_, id, number) in self.spare() {
            match number {
                None => drop(give_up(&mut left, &id)),
                Some(number) => left.get_mut(&id).into_iter().for_each(|record| record.remove(number)),
            }
        }
        Ok(self.needed_by(&left).iter().filter_map(|kept| sizes.get(kept)).sum())
    }

    /// What can be given up, first to go first: records of extensions that are not configured, and then versions.
    fn spare(&self) -> Vec<(Option<SystemTime>, ExtensionId, Option<u64>)> {
        let (records, configured) = (self.records.lock(), self.configured.lock());
        let mut spare = Vec::new();
        for (id, record) in &*records {
            match configured.contains(id) {
                false => spare.push((None, id.clone(), None)),
                true => spare.extend(
                    record
                        .spare()
                        .map(|entry| (Some(entry.status.since), id.clone(), Some(entry.status.number))),
                ),
            }
        }
        spare.sort();
        spare
    }

    /// What is kept for all versions that may run again.
    pub(crate) fn needed(&self) -> BTreeSet<Kept> {
        self.needed_by(&self.records.lock())
    }

    fn needed_by(&self, records: &BTreeMap<ExtensionId, Record>) -> BTreeSet<Kept> {
        records.values().flat_map(Record::kept).chain(self.foreign.iter().copied()).collect()
    }
}

/// Removes the versions of an extension. Returns what stays of its record.
fn give_up(records: &mut BTreeMap<ExtensionId, Record>, id: &ExtensionId) -> Option<Record> {
    let left = records.remove(id)?.without_versions()?;
    records.insert(id.clone(), left.clone());
    Some(left)
}
