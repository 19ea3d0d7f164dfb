//! Hostile and faulty extensions.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod admission;
mod crafted;
mod memory;
mod messages;
mod output;
mod pollables;
mod processor;
mod share;
mod stage;
mod storms;
#[expect(dead_code, reason = "shared with the tests of extensions")]
#[path = "../extensions/support.rs"]
mod support;
mod surroundings;
mod turns;
mod uninterrupted;
