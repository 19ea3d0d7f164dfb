//! Writes each line of an extension to `tracing` and to the bounded buffer for `weir logs` and embedders.
//!
//! Also makes lines harmless: escapes control characters and cuts lengths.

mod kept;

use std::{sync::Arc, time::SystemTime};

use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::broadcast;
use weir_names::harmless;
use weir_reports::rfc3339;

use self::kept::Kept;

/// Lines that a slow follower may lag behind.
const FOLLOWER_LINES: usize = 256;

/// Bytes of a line's text; longer text is cut.
pub const MAX_LINE: usize = 4096;
/// Bytes of a field's name; a longer name is cut.
pub const MAX_FIELD_NAME: usize = 64;
/// Bytes of a field's value; a longer value is cut.
pub const MAX_FIELD_VALUE: usize = 1024;
/// Fields of a line; further fields are left out.
pub const MAX_FIELDS: usize = 32;
/// Bytes of all names and values of a line's fields; fields beyond that are left out.
const MAX_FIELD_BYTES: usize = 4096;

/// The importance of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// To follow a request through the code.
    Trace,
    /// For the extension's developer.
    Debug,
    /// For the operator.
    Info,
    /// A problem that was handled.
    Warn,
    /// A problem that was not handled.
    Error,
}

/// The origin of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// `weir:iec/log`.
    Log,
    /// The extension's standard output.
    Stdout,
    /// The extension's standard error.
    Stderr,
    /// Main, about the extension.
    Main,
}

/// A line of an extension, or of Main about it. Contains no control characters.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct LogLine {
    /// When Main received it.
    #[serde(serialize_with = "rfc3339::serialize")]
    pub time: SystemTime,
    /// The extension's id.
    pub extension: Arc<str>,
    /// The importance.
    pub level: Level,
    /// The origin.
    pub source: Source,
    /// The text, cut to about 4096 bytes.
    pub message: String,
    /// At most 32 named values, with at most 4096 bytes of names and values together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<(String, String)>,
}

/// The last lines of all extensions, and their followers.
#[derive(Debug)]
pub struct Logs {
    kept: Mutex<Kept>,
    followers: broadcast::Sender<Arc<LogLine>>,
}

impl Default for Logs {
    fn default() -> Self {
        Self { kept: Mutex::default(), followers: broadcast::channel(FOLLOWER_LINES).0 }
    }
}

impl Logs {
    /// Writes a line to `tracing`, the buffer and all followers.
    pub fn write(
        &self,
        extension: &Arc<str>,
        level: Level,
        source: Source,
        message: &str,
        fields: impl Iterator<Item = (String, String)>,
    ) {
        let line = Arc::new(LogLine {
            time: SystemTime::now(),
            extension: extension.clone(),
            level,
            source,
            message: harmless(message, MAX_LINE),
            fields: harmless_fields(fields),
        });
        trace(&line);
        let mut kept = self.kept.lock();
        kept.add(line.clone());
        // Fails only without followers.
        let _nobody = self.followers.send(line);
    }

    /// The kept lines and a stream of all later ones. A reader that falls more than 256 lines behind misses some.
    pub fn follow(&self) -> (Vec<Arc<LogLine>>, broadcast::Receiver<Arc<LogLine>>) {
        let kept = self.kept.lock();
        (kept.in_order(), self.followers.subscribe())
    }
}

/// The first fields that the bounds allow, escaped and cut.
fn harmless_fields(fields: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let mut bytes = 0;
    fields
        .take(MAX_FIELDS)
        .map(|(name, value)| (harmless(&name, MAX_FIELD_NAME), harmless(&value, MAX_FIELD_VALUE)))
        .take_while(|(name, value)| {
            bytes += name.len() + value.len();
            bytes <= MAX_FIELD_BYTES
        })
        .collect()
}

fn trace(line: &LogLine) {
    let LogLine { extension, source, message, fields, .. } = line;
    let fields = fields.iter().map(|(name, value)| format!(" {name}={value:?}")).collect::<String>();
    macro_rules! emit {
        ($level:ident) => {
            tracing::event!(
                target: "weir::extension",
                tracing::Level::$level,
                extension = &**extension,
                source = ?source,
                "{message}{fields}"
            )
        };
    }
    match line.level {
        Level::Trace => emit!(TRACE),
        Level::Debug => emit!(DEBUG),
        Level::Info => emit!(INFO),
        Level::Warn => emit!(WARN),
        Level::Error => emit!(ERROR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_come_to_too_many_bytes_are_left_out() {
        let value = "x".repeat(2 * MAX_FIELD_VALUE);
        let fields = harmless_fields((0..MAX_FIELDS).map(|number| (number.to_string(), value.clone())));
        assert_eq!(fields.len(), 3);
        assert!(fields.iter().all(|(_, value)| value.len() <= MAX_FIELD_VALUE + '…'.len_utf8()));
    }

    #[test]
    fn a_follower_misses_no_line_between_those_kept_and_the_next() {
        let logs = Logs::default();
        let write = |text| logs.write(&"a".into(), Level::Info, Source::Log, text, std::iter::empty());
        write("before");
        let (kept, mut next) = logs.follow();
        write("after");
        assert_eq!(kept.len(), 1);
        assert_eq!(kept[0].message, "before");
        assert_eq!(next.try_recv().unwrap().message, "after");
    }
}
