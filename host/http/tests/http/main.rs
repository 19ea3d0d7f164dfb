//! The sender against servers that are good, slow, broken and hostile.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod addresses;
mod bodies;
mod connections;
mod limits;
mod support;
mod times;
mod tls;
