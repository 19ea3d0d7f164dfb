//! Extensions and their states.

use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use weir_names::{ContractName, ExtensionId};

use crate::{FailureRecord, rfc3339, seconds};

/// The state of an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ExtensionState {
    /// Configured, and not started: it waits for a start or for what it requires.
    Loaded,
    /// Its program is loading, compiling or running, and not ready yet.
    Starting,
    /// It serves.
    Ready,
    /// It runs, and says that it cannot serve for now.
    Interrupted,
    /// It was told to stop, and finishes what it has in hand.
    Draining,
    /// It ended as it should.
    Stopped,
    /// It ended as it should not, or what it requires does not run. It starts by itself only when that requirement
    /// runs.
    Failed,
    /// It failed, and restarts after a delay.
    BackingOff,
    /// It failed too often, and waits for a restart by the operator.
    Quarantined,
    /// A word of another version of Main, in its answer.
    #[serde(other)]
    Other,
}

impl ExtensionState {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Loaded => "loaded",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Interrupted => "interrupted",
            Self::Draining => "draining",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::BackingOff => "backing-off",
            Self::Quarantined => "quarantined",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for ExtensionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One extension at one moment.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ExtensionStatus {
    /// Its id.
    pub id: ExtensionId,
    /// Its state.
    pub state: ExtensionState,
    /// Why, if there is more to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it entered this state.
    #[serde(with = "rfc3339")]
    pub since: SystemTime,
    /// What is compiled while it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compiling: Option<BeingCompiled>,
    /// SHA-256, in hexadecimal, of the component that it runs or restarts with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Starts after the first.
    pub restarts: u64,
    /// Wall-clock time on the worker thread, over all its instances.
    #[serde(rename = "cpu-seconds", with = "seconds")]
    pub cpu: Duration,
    /// Its part of the last second on the worker thread, from 0 to 1.
    #[serde(default)]
    pub cpu_share: f64,
    /// Bytes of its linear memory.
    pub memory: u64,
    /// Bytes that its linear memory may have.
    pub memory_limit: u64,
    /// Waiting messages.
    pub inbox_messages: u64,
    /// Bytes of the waiting messages.
    pub inbox_bytes: u64,
    /// Messages received.
    pub received: u64,
    /// Requests and events sent.
    pub sent: u64,
    /// Messages to it that found no room.
    pub shed: u64,
    /// Its answers after the deadline.
    pub late: u64,
    /// Requests to it that did not fit its description. None: they are not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<u64>,
    /// Its limits class.
    pub class: String,
    /// Contracts it owns.
    #[serde(default)]
    pub fulfills: Vec<ContractName>,
    /// Its last failures, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureRecord>,
    /// Failures so far, by the limit that caused them; under an empty name, those of any other cause. Not in JSON.
    #[serde(skip)]
    pub failed: BTreeMap<String, u64>,
}

/// A component that is being compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct BeingCompiled {
    /// Bytes of the component.
    pub bytes: u64,
    /// When compiling began.
    #[serde(with = "rfc3339")]
    pub since: SystemTime,
}
