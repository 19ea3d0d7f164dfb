//! `weir-nats`: a bridge between the Main processes of a fleet, over NATS.
//!
//! It is a peer of the Main on its machine, and a client of a NATS server. `docs/bridge-nats.md` has every key of its file,
//! and what crosses how.
//!
//! Knows nothing of Main but the peer protocol.

mod bridge;
pub mod config;
mod contracts;
mod events;
mod jobs;
mod link;
mod secrets;
mod sessions;
mod shared;
pub mod subject;
mod wire;

pub use self::{bridge::run, secrets::check_files};
