//! What the fuzz targets do with their input: each a function that panics where Weir breaks a promise.
//!
//! `fuzz/targets` gives them what libFuzzer makes up; the test beside this library gives them what is kept in
//! `fuzz/corpus`, with the compiler that everything else is built with.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "this is all test code: a panic ends the run with the input at hand"
)]

mod channels;
mod control;
mod loader;
mod smith;
mod stage;
mod toml;
mod world;

use tempfile::TempDir;

pub use self::{channels::channels, control::control, loader::loader, smith::smith, toml::toml};

/// A directory for the files of one input, in memory where there is such a place.
fn scratch() -> TempDir {
    tempfile::Builder::new()
        .prefix("weir-fuzz-")
        .tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}
