//! The history of one extension, with the asker of each change.

use std::{borrow::Cow, collections::VecDeque, sync::Arc, time::SystemTime};

use serde::{Deserialize, Serialize};
use weir_reports::{ExtensionState, Standing, rfc3339};

/// How many entries a history keeps.
const KEPT: usize = 100;

/// One entry of an extension's history.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[non_exhaustive]
pub struct HistoryEntry {
    /// When the event happened.
    #[serde(with = "rfc3339")]
    pub time: SystemTime,
    /// The event.
    #[serde(flatten)]
    pub event: HistoryEvent,
}

/// An event in an extension's history.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum HistoryEvent {
    /// A change was requested.
    Asked {
        /// `start`, `stop`, `restart` or `reload`.
        order: Cow<'static, str>,
        /// The asker: a process on the control socket, as in `uid 0, pid 4212`; a signal; or `main`, the program
        /// itself.
        by: Arc<str>,
    },
    /// The state changed, or another version entered it.
    State {
        /// The state.
        state: ExtensionState,
        /// SHA-256 of the serving component, in hexadecimal.
        #[serde(skip_serializing_if = "Option::is_none")]
        hash: Option<String>,
        /// Why the state changed, unless the failure before this entry says so.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The extension failed.
    Failed {
        /// Why it failed.
        cause: String,
        /// SHA-256 of the component, in hexadecimal, if it was read.
        #[serde(skip_serializing_if = "Option::is_none")]
        hash: Option<String>,
    },
    /// A version of the extension was proven or refused.
    Version {
        /// The version.
        version: u64,
        /// What Main knows of it from then on.
        standing: Standing,
        /// The version that serves from then on.
        serves: u64,
        /// Why.
        reason: String,
    },
    /// An event that this version does not know, in the answer of another version of Main.
    #[serde(other)]
    Other,
}

#[derive(Debug, Default)]
pub(super) struct History(VecDeque<HistoryEntry>);

impl History {
    /// Adds an event, in place of the oldest if the history is full. If the failure just before it gives the same
    /// reason as a state, the reason of the state is left out.
    pub(super) fn add(&mut self, mut event: HistoryEvent) {
        if let HistoryEvent::State { reason, .. } = &mut event
            && let Some(HistoryEvent::Failed { cause, .. }) = self.0.back().map(|last| &last.event)
        {
            reason.take_if(|reason| reason == cause);
        }
        if self.0.len() >= KEPT {
            self.0.pop_front();
        }
        self.0.push_back(HistoryEntry { time: SystemTime::now(), event });
    }

    pub(super) fn entries(&self) -> Vec<HistoryEntry> {
        self.0.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_hundred_are_kept_and_a_failure_is_told_once() {
        let mut history = History::default();
        for number in 0..KEPT {
            history.add(HistoryEvent::Failed { cause: number.to_string(), hash: None });
        }
        let backing_off = |reason: &str| HistoryEvent::State {
            state: ExtensionState::BackingOff,
            hash: None,
            reason: Some(reason.to_owned()),
        };
        history.add(backing_off("99"));
        history.add(backing_off("another"));
        let entries = history.entries();
        let first = HistoryEvent::Failed { cause: "2".to_owned(), hash: None };
        assert_eq!((entries.len(), &entries[0].event), (KEPT, &first));
        let told = HistoryEvent::State { state: ExtensionState::BackingOff, hash: None, reason: None };
        assert_eq!(entries[KEPT - 2].event, told);
        assert_eq!(entries[KEPT - 1].event, backing_off("another"));
    }
}
