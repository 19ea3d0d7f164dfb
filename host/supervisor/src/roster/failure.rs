//! What is kept of a failure.

use std::time::SystemTime;

use serde::Serialize;
use weir_bus::MessageId;
use weir_config::LimitHit;
use weir_logs::{rfc3339, rfc3339_if_any};
use weir_names::ExtensionId;

use super::ExtensionState;

/// What is known of one failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct FailureRecord {
    /// The extension's id.
    pub extension: ExtensionId,
    /// When it failed.
    #[serde(serialize_with = "rfc3339")]
    pub time: SystemTime,
    /// Why.
    pub cause: String,
    /// SHA-256 of the component, in hexadecimal, where it came so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// What it was handling, as far as Main can tell: the first message of those that it was given last and has not
    /// answered, else the oldest that it had in hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handling: Option<HandledMessage>,
    /// The limit that it hit, where that is why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitHit>,
    /// Names of the functions that were running, innermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<String>,
    /// What came of it: the state that the extension is in since.
    pub then: ExtensionState,
    /// When it is started again, where that is [`ExtensionState::BackingOff`].
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rfc3339_if_any")]
    pub next_restart: Option<SystemTime>,
}

/// A message that an extension was handling when it failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HandledMessage {
    /// The message's id; of a response, that of the request. None of an event, which has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
    /// Of an event, its sequence number in its topic. None of one that was published to this extension alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// Who sent it.
    pub sender: String,
    /// Of a request, its contract and operation; `event` and the topic, `queue` and the queue's name, or `response`.
    pub operation: String,
}
