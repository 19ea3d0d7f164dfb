//! Directories of hooks with real components: how they end, from everywhere, and what one run leaves for the next.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bodies;
mod changes;
mod contract;
mod entries;
mod files;
mod outcomes;
mod pool;
mod requests;
mod support;
