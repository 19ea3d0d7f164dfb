//! Log lines of extensions: see [`Control::logs`](crate::Control::logs) and
//! [`Control::follow_logs`](crate::Control::follow_logs).

use std::sync::Arc;

use weir_supervisor::UntilEnded;

pub use weir_logs::{Level, LogLine, Source};

/// A stream of log lines.
#[derive(Debug)]
pub struct LogLines(pub(crate) UntilEnded<Arc<LogLine>>);

/// The next item of a followed log.
#[derive(Clone, Debug)]
pub enum NextLine {
    /// A line.
    Line(Arc<LogLine>),
    /// The follower was too slow and missed this many lines.
    Missed(u64),
}

impl LogLines {
    /// Waits for the next line. None once Main has ended and all earlier lines are read. Dropping the future loses no
    /// line.
    pub async fn next(&mut self) -> Option<NextLine> {
        Some(self.0.next().await?.map_or_else(NextLine::Missed, NextLine::Line))
    }
}
