//! Records that cannot be read, and what extensions do meanwhile.

use weir_names::{ExtensionId, chain};

use crate::{
    Versions,
    state_dir::{StateDir, StateError},
};

/// Why a record cannot be read.
#[derive(Clone, Debug)]
pub(crate) struct Unreadable {
    pub(crate) why: String,
    /// Whether the disk may give it later. If not, a newer Weir has written it.
    pub(crate) may_pass: bool,
}

impl From<&StateError> for Unreadable {
    fn from(error: &StateError) -> Self {
        Self { why: chain(error), may_pass: !matches!(error, StateError::Newer { .. }) }
    }
}

impl Versions {
    /// Says why the record of an extension cannot be read, if it cannot.
    pub(crate) fn unreadable(&self, id: &ExtensionId) -> Option<Unreadable> {
        self.unreadable.lock().get(id).cloned()
    }

    /// Reads the record of an extension again, if it could not be read for a while. Blocks on files.
    pub(crate) fn read_again(&self, id: &ExtensionId) {
        let Some(state) = self.state.as_ref().filter(|_| self.unreadable(id).is_some_and(|it| it.may_pass))
        else {
            return;
        };
        let _writing = self.writing.lock();
        match state.record(id) {
            Ok(record) => {
                self.records.lock().insert(id.clone(), record);
                self.read_late.lock().insert(id.clone());
            }
            // It was removed.
            Err(StateError::NotAuthentic(_)) if !state.has_record(id) => {}
            Err(_) => return,
        }
        self.unreadable.lock().remove(id);
        self.forget_data(state);
    }

    /// Whether the record of an extension could not be read at first, and keeps data that a version without a number would
    /// lose: it may have been chosen without the record.
    pub(crate) fn was_read_late(&self, id: &ExtensionId) -> bool {
        self.read_late.lock().contains(id) && self.change(id, |record| record.data.keeps()) == Some(true)
    }

    /// Forgets the older data that is kept of extensions of which versions have run that their records do not know.
    pub(crate) fn forget_data(&self, state: &StateDir) {
        // If they cannot be listed, nothing else can be done with the directory either.
        for id in state.marked().unwrap_or_default() {
            if self.unreadable(&id).is_some() {
                continue;
            }
            let forgotten = state.mark_of(&id).map(|unknown| {
                let since = unknown.and_then(|unknown| unknown.data.since);
                self.begin_if_later(&id, since.as_deref());
                self.change(&id, |record| {
                    record.data.unknown_ran(since.as_deref());
                    // What is in the stores now was written since then.
                    record.data.give_up_restore();
                    record.clone()
                })
            });
            let written =
                forgotten.and_then(|record| record.map_or(Ok(()), |record| state.write(&id, &record)));
            if let Err(error) = written.and_then(|()| state.unmark(&id)) {
                tracing::error!(extension = %id, "it is not written down that its data has changed: {}", chain(&error));
            }
        }
    }
}
