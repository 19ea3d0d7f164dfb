//! Extensions, their states and their failures.

use std::{
    collections::BTreeMap,
    fmt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use weir_names::{ContractName, ExtensionId};

use crate::{LimitHit, ServingVersion, rfc3339, rfc3339_if_any, seconds};

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
    /// A state that this version does not know, in an answer of another version of Main.
    #[serde(other)]
    Other,
}

impl ExtensionState {
    /// The state in one word, as JSON has it.
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
    /// Why it is in this state, if there is more to say.
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
    /// The version that it runs, if it has `update`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<ServingVersion>,
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
    /// Requests to it that did not fit its description. `None` if they are not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<u64>,
    /// Its limits class.
    pub class: String,
    /// Contracts it owns.
    #[serde(default)]
    pub fulfills: Vec<ContractName>,
    /// The exported interface behind each of these contracts, if the host calls its functions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exports: BTreeMap<ContractName, String>,
    /// What it serves by HTTP. `None` if it is no server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpServerStatus>,
    /// Its last failures, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureRecord>,
    /// Failures so far, by the limit that caused them; under an empty name, those of any other cause. Not in JSON.
    #[serde(skip)]
    pub failed: BTreeMap<String, u64>,
}

impl ExtensionStatus {
    /// What it is, in one word: `http` for an HTTP server, `exports` for a component whose functions are called, else
    /// `extension`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match (&self.http, self.exports.is_empty()) {
            (Some(_), _) => "http",
            (None, false) => "exports",
            (None, true) => "extension",
        }
    }
}

/// An extension as an HTTP server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct HttpServerStatus {
    /// Its path, for requests to it and below.
    pub path: String,
    /// Its own socket, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<PathBuf>,
    /// The answers that its clients got.
    pub answers: HttpAnswers,
}

/// Answers by HTTP, by the class of their status. Answers of the gateway in place of the server, such as 413 and 503, count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct HttpAnswers {
    /// Successes.
    #[serde(rename = "2xx")]
    pub successes: u64,
    /// Redirections.
    #[serde(rename = "3xx")]
    pub redirections: u64,
    /// Faults of the client.
    #[serde(rename = "4xx")]
    pub client_errors: u64,
    /// Faults of the server.
    #[serde(rename = "5xx")]
    pub server_errors: u64,
}

impl HttpAnswers {
    /// The classes, each with its number of answers.
    #[must_use]
    pub fn classes(&self) -> [(&'static str, u64); 4] {
        let Self { successes, redirections, client_errors, server_errors } = *self;
        [("2xx", successes), ("3xx", redirections), ("4xx", client_errors), ("5xx", server_errors)]
    }
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

/// One failure.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct FailureRecord {
    /// The extension's id.
    pub extension: ExtensionId,
    /// When it failed.
    #[serde(with = "rfc3339")]
    pub time: SystemTime,
    /// Why it failed.
    pub cause: String,
    /// SHA-256 of the component, in hexadecimal, if it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// What it was handling, as far as Main can tell: the first unanswered message of those delivered last, else the
    /// oldest in hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handling: Option<HandledMessage>,
    /// The requests that it had in hand, and whose callers waited, by number. They were answered with an error. Not in
    /// JSON.
    #[serde(skip)]
    pub in_hand: Arc<[MessageId]>,
    /// The limit that caused it, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitHit>,
    /// Names of the running functions, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<String>,
    /// The state of the extension after the failure.
    pub then: ExtensionState,
    /// When it restarts, if that state is [`ExtensionState::BackingOff`].
    #[serde(default, skip_serializing_if = "Option::is_none", with = "rfc3339_if_any")]
    pub next_restart: Option<SystemTime>,
}

/// A message in hand at a failure.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct HandledMessage {
    /// The message's id; for a response, the id of its request. Events have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
    /// For an event: its number in its topic. None if it was published to this extension alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// The sender's name.
    pub sender: String,
    /// For a request its contract and operation; otherwise `event` and the topic, `queue` and its name, or
    /// `response`.
    pub operation: String,
}

/// Identifies one message for as long as Main runs; never zero, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(transparent)]
pub struct MessageId(pub u64);

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
