//! Log lines of extensions: written to `tracing` and to a bounded buffer, then read and followed.
//!
//! Knows only the extensions' ids.

mod logs;

pub use self::logs::{Level, LogLine, Logs, MAX_FIELD_NAME, MAX_FIELD_VALUE, MAX_FIELDS, MAX_LINE, Source};
