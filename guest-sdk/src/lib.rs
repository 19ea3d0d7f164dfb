#![doc = include_str!("../README.md")]

#[expect(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::unwrap_used,
    reason = "generated from `wit/iec.wit`"
)]
#[rustfmt::skip]
mod bindings;
pub mod codec;
mod context;
mod contract;
mod error;
mod event;
mod extension;
pub mod hook;
mod host;
mod link;
pub mod log;
mod manifest;
mod names;
mod program;
mod queue;
pub mod raw;
mod serve;
mod tasks;
#[cfg(not(target_family = "wasm"))]
pub mod testing;
mod topic;

/// Sockets, timers and streams for async code inside a component.
///
/// What goes on beside the handlers belongs into [`Extension::background`] and not into
/// `wstd::runtime::spawn`: the extension does not know of what is spawned there, so that it stands
/// still while no handler waits, and `main` does not return before it has ended.
#[cfg(target_family = "wasm")]
pub use wstd;

pub use self::{
    codec::Empty,
    context::{CallOptions, Context},
    contract::{Contract, Operation},
    error::{Error, HandlerError},
    event::{Event, Receipt},
    extension::Extension,
    manifest::{Dir, Manifest},
    queue::{Job, JobId, Queue},
    topic::{AsTopic, Topic},
};
