//! JSON-RPC 2.0 as values and as text. Does no I/O, and knows nothing of sessions.
//!
//! [`parse()`] reads what an app sent, and borrows from it. The `write` functions put one message at the end of a string.
//! Payloads and ids pass as the text that they are: no JSON is taken apart that need not be. All input is hostile, that
//! of apps as well as the payloads of extensions.

mod error;
#[doc(hidden)]
pub mod fuzzing;
mod id;
mod parse;
mod payload;
mod write;

pub(crate) use self::{
    error::{Refusal, RpcError, SAID_MAX},
    id::Id,
    parse::{Incoming, Message, Request, cancelled, object, params, parse},
    payload::{payload, payload_value},
    write::{
        Envelope, write_alias_event, write_cancel, write_ended, write_error, write_event, write_lost,
        write_refusal, write_request, write_result, write_value,
    },
};

/// Methods that an app can call whatever its grants are.
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

#[cfg(test)]
mod tests;
