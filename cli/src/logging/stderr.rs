//! The queue of lines for stderr.
//!
//! Its own thread writes them, so a slow reader blocks no other thread. It knows nothing of what lines say.

use std::{
    io::{self, Write},
    mem, thread,
    time::Duration,
};

use indicatif::ProgressBar;
use parking_lot::{Condvar, Mutex};

use crate::output;

/// The most bytes that wait. The writer thread may hold as many again. Further lines are lost.
const MAX_WAITING: usize = 256 * 1024;

/// How long a flush waits until all lines are written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Lines {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Whole lines with their line feeds.
    waiting: Vec<u8>,
    /// The number of lines that were lost after those in `waiting`. A text of several lines counts as one.
    lost: u64,
    /// The next text to show below the log. An empty text removes the one that is shown.
    below: Option<String>,
    is_writing: bool,
}

impl Lines {
    /// Starts the writer thread. `lost` makes the line that counts lost lines.
    pub(super) fn write_to_stderr(
        &'static self,
        lost: impl Fn(u64) -> String + Send + 'static,
    ) -> io::Result<()> {
        let write = move || {
            let mut below = None;
            loop {
                self.write_some(&io::stderr(), &lost, &mut below);
            }
        };
        thread::Builder::new().name("weir-log".to_owned()).spawn(write).map(|_ends_with_the_process| ())
    }

    /// Queues whole lines, or counts them as lost. Never waits for the reader.
    pub(super) fn push(&self, lines: &[u8]) {
        let mut state = self.state.lock();
        // After a loss, later lines are lost, too. Otherwise the gap would show in the wrong place.
        if state.lost > 0 || state.waiting.len().saturating_add(lines.len()) > MAX_WAITING {
            state.lost += 1;
        } else {
            state.waiting.extend_from_slice(lines);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Shows a text below the lines; the next text replaces it. An empty text removes it.
    pub(super) fn show_below(&self, text: String) {
        self.state.lock().below = Some(text);
        self.changed.notify_all();
    }

    /// Waits until all is written, or `FLUSH_TIMEOUT` is over.
    pub(super) fn flush(&self) {
        let is_pending = |state: &mut State| state.is_writing || state.is_waiting();
        self.changed.wait_while_for(&mut self.state.lock(), is_pending, FLUSH_TIMEOUT);
    }

    /// Waits for lines or a text below them, and writes them. Lines are written one by one, since a pipe takes up to
    /// 4096 bytes whole or not at all.
    fn write_some(
        &self,
        mut stderr: impl Write,
        lost: impl Fn(u64) -> String,
        below: &mut Option<ProgressBar>,
    ) {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| !state.is_waiting());
        let (mut lines, count) = (mem::take(&mut state.waiting), mem::take(&mut state.lost));
        let shown = state.below.take();
        state.is_writing = true;
        drop(state);
        if count > 0 {
            lines.extend_from_slice(lost(count).as_bytes());
        }
        let mut write = || {
            for line in lines.split_inclusive(|byte| *byte == b'\n') {
                // If stderr is closed, there is no place for the error.
                let _gone = stderr.write_all(line);
            }
        };
        match below {
            Some(below) => below.suspend(write),
            None => write(),
        }
        match shown {
            Some(text) if !text.is_empty() => {
                below.get_or_insert_with(output::progress_line).set_message(text)
            }
            Some(_) => below.take().iter().for_each(ProgressBar::finish_and_clear),
            None => {}
        }
        self.state.lock().is_writing = false;
        self.changed.notify_all();
    }
}

impl State {
    fn is_waiting(&self) -> bool {
        !self.waiting.is_empty() || self.lost > 0 || self.below.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(lines: &Lines) -> String {
        let mut written = Vec::new();
        lines.write_some(&mut written, |count| format!("{count} lost\n"), &mut None);
        String::from_utf8(written).unwrap()
    }

    #[test]
    fn what_finds_no_room_is_counted_where_it_is_missing() {
        let lines = Lines::default();
        let long = format!("{}\n", "x".repeat(MAX_WAITING / 2));
        lines.push(b"first\n");
        lines.push(long.as_bytes());
        lines.push(long.as_bytes());
        // The line would fit, but the gap comes first.
        lines.push(b"after the gap\n");
        assert_eq!(written(&lines), format!("first\n{long}2 lost\n"));
        lines.push(b"later\n");
        assert_eq!(written(&lines), "later\n");
    }

    #[test]
    fn a_flush_ends_though_nobody_reads() {
        let lines = Lines::default();
        lines.push(b"first\n");
        lines.flush();
        assert_eq!(written(&lines), "first\n");
        lines.flush();
    }
}
