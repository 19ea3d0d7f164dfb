//! Log lines of extensions: see [`Control::logs`](crate::Control::logs) and
//! [`Control::follow_logs`](crate::Control::follow_logs).

use std::sync::Arc;

use weir_supervisor::UntilEnded;

pub use weir_logs::{Level, LogLine, Source};

/// Log lines as they come.
#[derive(Debug)]
pub struct LogLines(UntilEnded<Arc<LogLine>>);

/// What a follower of log lines gets.
#[derive(Clone, Debug)]
pub enum NextLine {
    /// A line.
    Line(Arc<LogLine>),
    /// The follower was too slow: as many lines passed unseen.
    Missed(u64),
}

impl LogLines {
    pub(crate) fn new(lines: UntilEnded<Arc<LogLine>>) -> Self {
        Self(lines)
    }

    /// The next line; none once Main has ended and all that came before has been read. Dropping the
    /// future loses none.
    pub async fn next(&mut self) -> Option<NextLine> {
        Some(self.0.next().await?.map_or_else(NextLine::Missed, NextLine::Line))
    }
}
