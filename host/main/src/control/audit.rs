//! One log line for each requested change.

use std::{fmt::Display, sync::Arc};

use weir_logs::{Level, Logs, Source};
use weir_names::{ExtensionId, harmless};

/// Bytes of an outcome that the line shows.
const MAX_OUTCOME: usize = 1024;

/// A requested change. Its line is written on drop.
#[derive(Debug)]
pub(super) struct Audit<'a> {
    by: &'a str,
    order: String,
    /// The log for the line, if one extension is changed.
    extension: Option<(&'a Logs, Arc<str>)>,
    outcome: Result<String, String>,
}

impl<'a> Audit<'a> {
    /// A change of one extension, whose line stands in the log of the extension.
    pub(super) fn of(by: &'a str, order: &str, logs: &'a Logs, extension: &ExtensionId) -> Self {
        let mut audit = Self::new(by, order);
        audit.extension = Some((logs, extension.as_str().into()));
        audit
    }

    pub(super) fn new(by: &'a str, order: impl Into<String>) -> Self {
        let outcome = Err("the caller left before the end".to_owned());
        Self { by, order: order.into(), extension: None, outcome }
    }

    /// Sets the outcome for the line. Without it, the line says that the caller left.
    pub(super) fn end<T, E: Display>(&mut self, result: &Result<T, E>, done: impl FnOnce(&T) -> String) {
        self.outcome = match result {
            Ok(value) => Ok(done(value)),
            // An error of the configuration has many lines; the asker gets them all.
            Err(error) => Err(harmless(error.to_string().lines().next().unwrap_or_default(), MAX_OUTCOME)),
        };
    }
}

impl Drop for Audit<'_> {
    fn drop(&mut self) {
        let Self { by, order, extension, outcome } = self;
        let (level, outcome) = match outcome {
            Ok(outcome) => (Level::Info, outcome),
            Err(outcome) => (Level::Warn, outcome),
        };
        let text = format!("{order}: {outcome}");
        match extension {
            Some((logs, id)) => {
                let by = [("by".to_owned(), (*by).to_owned())];
                logs.write(id, level, Source::Main, &text, by.into_iter());
            }
            None if level == Level::Info => tracing::info!(target: "weir", "{text} by={by:?}"),
            None => tracing::warn!(target: "weir", "{text} by={by:?}"),
        }
    }
}
