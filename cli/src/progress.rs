//! A line on a terminal while something takes long: what that is, and the time that it has taken.
//!
//! Nothing is drawn where stderr is no terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often the time is drawn.
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// Draws what is done until it is done.
pub(crate) fn during<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let line = line();
    line.set_message(what.to_owned());
    line.enable_steady_tick(TICK);
    let done = work();
    line.finish_and_clear();
    done
}

/// A line that is drawn whenever it changes.
pub(crate) fn line() -> ProgressBar {
    let style = ProgressStyle::with_template("{elapsed:>4} {wide_msg}");
    ProgressBar::new_spinner().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
}
