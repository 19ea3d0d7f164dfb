//! Main, as the rest of the SDK sees it: the imports of `weir:iec` inside a component, an in-memory
//! stand-in elsewhere.
//!
//! Both have the same inherent methods. `receive` and `respond_and_receive` are only used when there
//! is nothing else to do, so that inside a component they may block.

#[cfg(not(target_family = "wasm"))]
pub(crate) mod memory;
#[cfg(target_family = "wasm")]
mod wasm;

#[cfg(not(target_family = "wasm"))]
pub(crate) use self::memory::{Host, Inbox};
#[cfg(target_family = "wasm")]
pub(crate) use self::wasm::{Host, Inbox};
pub(crate) use crate::bindings::weir::iec::{
    channel::{Event, Job, Message, MessageId, Peer, Request, Response},
    events::Receipt as WitReceipt,
    types::{Error as WitError, HandlerError as WitHandlerError, Options},
};

/// What a handler answers, as it travels.
pub(crate) type Answer = Result<Vec<u8>, WitHandlerError>;

/// How many messages are taken at once where others are in hand already.
pub(crate) const BATCH: u32 = 32;
