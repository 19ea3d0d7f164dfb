//! The protocol between Weir's Main process and the programs beside it, its peers: `docs/peer-protocol.md`.
//!
//! [`frame`] is the codec that both sides share. Knows nothing of grants, routes or what a contract means.

pub mod frame;
