//! Main, as the rest of the SDK sees it: the imports of `weir:iec` inside a component, and an in-memory
//! stand-in elsewhere.
//!
//! Both have the same inherent methods. `receive` and `respond_and_receive` may block inside a component:
//! they are called only when there is nothing else to do.

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

/// A handler's answer, as it travels.
pub(crate) type Answer = Result<Vec<u8>, WitHandlerError>;

/// The most messages that are taken from the inbox at once while others are in hand.
pub(crate) const BATCH: u32 = 32;
