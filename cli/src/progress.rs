//! A line on a terminal during long work: what it is, and the time so far.
//!
//! Draws nothing if stderr is no terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Interval at which the time is drawn.
pub(crate) const TICK: Duration = Duration::from_secs(1);

pub(crate) fn during<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let line = line();
    line.set_message(what.to_owned());
    line.enable_steady_tick(TICK);
    let done = work();
    line.finish_and_clear();
    done
}

pub(crate) fn line() -> ProgressBar {
    let style = ProgressStyle::with_template("{elapsed:>4} {wide_msg}");
    ProgressBar::new_spinner().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
}
