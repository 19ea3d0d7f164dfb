//! Log lines of extensions: written to `tracing` and to a bounded store, then read and followed.
//!
//! Knows only the extensions' ids.

mod store;

pub use self::store::{Level, LogLine, Logs, MAX_FIELD_NAME, MAX_FIELD_VALUE, MAX_FIELDS, MAX_LINE, Source};
