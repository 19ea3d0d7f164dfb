//! JSON-RPC 2.0 as values and as text. Does no I/O, and knows nothing of sessions.
//!
//! [`parse()`] reads what an app sent, and borrows from it. The `write` functions put one message at the end of a string.
//! Payloads and ids pass as the text that they are: no JSON is taken apart that need not be. All input is hostile, that
//! of apps as well as the payloads of extensions.

mod error;
#[doc(hidden)]
pub mod fuzzing;
mod parse;
mod payload;
mod write;

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::value::RawValue;

pub(crate) use self::{
    error::{Refusal, RpcError, SAID_MAX},
    parse::{Incoming, Message, Request, cancelled, object, params, parse},
    payload::{payload, payload_value},
    write::{
        Envelope, write_alias_event, write_cancel, write_ended, write_error, write_event, write_lost,
        write_refusal, write_request, write_result, write_value,
    },
};

/// Methods that every app has. The grants decide about the topics, queues and contracts that it names to them.
pub(crate) const BUILT_IN: [&str; 10] = [
    "contracts.serve",
    "events.publish",
    "events.subscribe",
    "events.unsubscribe",
    "queues.done",
    "queues.put",
    "queues.return",
    "queues.take",
    "rpc.cancel",
    "rpc.discover",
];

/// Most bytes of an id as JSON. It is kept until its request is answered.
const ID_MAX: usize = 256;

/// The id of an app's request: a string, a number or null, byte for byte as it came.
///
/// Two spellings of one string are two ids: an app that cancels a request writes its id as before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Id(Cow<'static, str>);

impl Id {
    /// The id of an answer to a message without a readable id.
    pub(crate) const NULL: Self = Self(Cow::Borrowed("null"));

    /// Completes "`id` is not".
    const SHAPE: &str = "a string, a number or null, of at most 256 bytes";

    /// The id that this JSON is. `None` if the value cannot be an id.
    fn of(json: &RawValue) -> Option<Self> {
        let json = json.get();
        let is_id = matches!(json.bytes().next(), Some(b'"' | b'-' | b'0'..=b'9')) && json.len() <= ID_MAX;
        if json == "null" { Some(Self::NULL) } else { is_id.then(|| Self(Cow::Owned(json.to_owned()))) }
    }

    fn of_number(number: u32) -> Self {
        Self(Cow::Owned(number.to_string()))
    }

    /// The id as JSON.
    pub(crate) fn json(&self) -> &str {
        &self.0
    }
}

/// Reads an id among parameters.
impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = <&RawValue>::deserialize(deserializer)?;
        Self::of(json).ok_or_else(|| D::Error::custom(format_args!("the id is not {}", Self::SHAPE)))
    }
}

#[cfg(test)]
mod tests;
