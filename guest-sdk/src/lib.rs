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
mod host;
mod link;
pub mod log;
mod manifest;
mod names;
mod program;
pub mod raw;
mod serve;
mod tasks;
#[cfg(not(target_family = "wasm"))]
pub mod testing;

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
};
