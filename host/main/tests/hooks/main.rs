//! Directories of hooks, run by real components: how each can end, from wherever it is run, and what of one
//! run is left for the next.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod changes;
mod contract;
mod entries;
mod files;
mod outcomes;
mod pool;
mod requests;
mod support;
