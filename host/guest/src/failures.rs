//! Bounds on the failures of single calls that are recorded.

use std::time::Duration;

use tokio::time::Instant;
use weir_logs::Level;

use crate::output::Output;

/// The failures that are recorded in a second.
const IN_A_SECOND: u32 = 10;

/// Bounds the failures that are recorded: whoever knows a call that fails could fill the log, and push out all others.
#[derive(Default)]
pub(crate) struct Failures {
    began: Option<Instant>,
    taken: u32,
    left_out: u64,
}

impl Failures {
    /// Whether another failure is recorded. The others are counted, and said later.
    pub(crate) fn take(&mut self, output: &Output) -> bool {
        if self.began.is_none_or(|began| began.elapsed() >= Duration::from_secs(1)) {
            self.say_left_out(output);
            (self.began, self.taken) = (Some(Instant::now()), 0);
        }
        let is_recorded = self.taken < IN_A_SECOND;
        if is_recorded {
            self.taken += 1;
        } else {
            self.left_out += 1;
        }
        is_recorded
    }

    pub(crate) fn say_left_out(&mut self, output: &Output) {
        let left_out = std::mem::take(&mut self.left_out);
        if left_out > 0 {
            output.say(Level::Warn, &format!("{left_out} further requests failed, and are not on record"));
        }
    }
}
