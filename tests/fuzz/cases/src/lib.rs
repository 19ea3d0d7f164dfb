//! The fuzz targets' functions. Each panics where Weir breaks a promise.
//!
//! `tests/fuzz/targets` calls them with libFuzzer's input. The test beside this library calls them with the files
//! of `tests/fuzz/corpus`, built by the ordinary compiler.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "this is all test code: a panic ends the run with the input at hand"
)]

mod channels;
mod contracts;
mod control;
mod exports;
mod gateway;
mod loader;
mod mount;
mod packages;
mod peers;
mod signatures;
mod smith;
mod stage;
mod toml;
mod world;

use tempfile::TempDir;

pub use self::{
    channels::channels, contracts::contracts, control::control, exports::exports, gateway::gateway,
    loader::loader, mount::mount, packages::packages, peers::peers, signatures::signatures, smith::smith,
    toml::toml,
};

/// A directory for the files of one input, in memory if possible.
fn scratch() -> TempDir {
    tempfile::Builder::new()
        .prefix("weir-fuzz-")
        .tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}
