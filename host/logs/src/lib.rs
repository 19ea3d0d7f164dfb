//! The log lines of extensions: written to `tracing` and to a bounded store, read and followed from there.
//!
//! Knows nothing of what an extension is, beyond its id.

mod store;

pub use self::store::{Level, LogLine, Logs, MAX_LINE, Source, rfc3339, rfc3339_if_any};
