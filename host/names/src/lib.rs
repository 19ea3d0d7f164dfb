//! The vocabulary of Weir: names, encodings and descriptions of payloads, errors of messages, and text that is safe
//! to show.
//!
//! Hosts and extensions share it, so it stays small. Names are checked when they are made. Knows nothing of the
//! things behind names or of permissions.

/// A `for` loop that works in a `const`.
macro_rules! each {
    ($item:pat in $list:expr => $body:block) => {
        let mut rest: &[_] = $list;
        while let [$item, tail @ ..] = rest {
            rest = tail;
            $body
        }
    };
}

pub mod codec;
mod contract;
mod description;
mod error;
#[doc(hidden)]
pub mod json;
mod name;
mod policy;
pub mod rules;
pub mod shape;
mod share;
mod text;
mod trace_context;

pub use self::{
    contract::{Contract, Operation},
    description::{Description, Item, Payload, Role},
    error::{Error, HandlerError},
    name::{
        CallGrant, ContractName, ExtensionId, HookDirName, InterfaceName, MAIN, NameError, OperationName,
        PeerName, QueueName, StoreName, Topic, TopicPattern,
    },
    policy::{Policy, QueuePolicy, RequestPolicy},
    share::{CpuShare, CpuShareError},
    text::{chain, harmless, is_harmful, log_filter, truncated},
    trace_context::{SpanId, TraceContext, TraceContextError, TraceId, TraceIdError},
};
