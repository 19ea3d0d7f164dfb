//! Failures of extensions.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use weir_names::ExtensionId;

use crate::{ExtensionState, LimitHit, MessageId, rfc3339, rfc3339_if_any};

/// One failure.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct FailureRecord {
    /// The extension's id.
    pub extension: ExtensionId,
    /// When it failed.
    #[serde(with = "rfc3339")]
    pub time: SystemTime,
    /// Why.
    pub cause: String,
    /// SHA-256 of the component, in hexadecimal, if it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// What it was handling, as far as Main can tell: the first unanswered message of those delivered last, else the
    /// oldest in hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handling: Option<HandledMessage>,
    /// The limit that caused it, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitHit>,
    /// Names of the running functions, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<String>,
    /// The state of the extension after it.
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
