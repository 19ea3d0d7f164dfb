//! Lines on their way to stderr.
//!
//! A thread of its own writes them: a reader that stops reading holds up that thread and no other. Knows nothing of
//! what a line says.

use std::{
    io::{self, Write},
    mem,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use indicatif::ProgressBar;

use crate::progress;

/// Bytes that may wait; as many again may be about to be written. What comes while there is no room is lost.
const MAX_WAITING: usize = 256 * 1024;

/// How long the end of the process waits for the reader.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// What waits to be written.
#[derive(Debug, Default)]
pub(super) struct Lines {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Whole lines, each with its end.
    waiting: Vec<u8>,
    /// Lines that came after those and found no room.
    lost: u64,
    /// What the line below them is to say from now on; empty: there is to be none.
    below: Option<String>,
    is_writing: bool,
}

impl Lines {
    /// Starts the thread that writes; `lost` is the line that says how many were lost.
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

    /// Puts whole lines behind what waits, or counts them as lost. Never waits for the reader.
    pub(super) fn push(&self, lines: &[u8]) {
        let mut state = self.state();
        // Nothing goes before what was lost: the gap is said where it is.
        if state.lost > 0 || state.waiting.len().saturating_add(lines.len()) > MAX_WAITING {
            state.lost += 1;
        } else {
            state.waiting.extend_from_slice(lines);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Says something in a line below the others, which the next takes the place of. Empty: there is none any more.
    pub(super) fn show_below(&self, text: String) {
        self.state().below = Some(text);
        self.changed.notify_all();
    }

    /// Waits until all is written, or the reader has had its time.
    pub(super) fn flush(&self) {
        let is_pending = |state: &mut State| state.is_writing || state.is_waiting();
        drop(self.changed.wait_timeout_while(self.state(), FLUSH_TIMEOUT, is_pending));
    }

    /// Writes what waits, once there is something, line by line: up to 4096 bytes a pipe takes whole or not at all.
    fn write_some(
        &self,
        mut stderr: impl Write,
        lost: impl Fn(u64) -> String,
        below: &mut Option<ProgressBar>,
    ) {
        let state = self.changed.wait_while(self.state(), |state| !state.is_waiting());
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let (mut lines, count) = (mem::take(&mut state.waiting), mem::take(&mut state.lost));
        let shown = state.below.take();
        state.is_writing = true;
        drop(state);
        if count > 0 {
            lines.extend_from_slice(lost(count).as_bytes());
        }
        let mut write = || {
            for line in lines.split_inclusive(|byte| *byte == b'\n') {
                // Where nobody can read it there is nobody to tell.
                let _gone = stderr.write_all(line);
            }
        };
        match below {
            Some(below) => below.suspend(write),
            None => write(),
        }
        match shown {
            Some(text) if !text.is_empty() => below.get_or_insert_with(progress::line).set_message(text),
            Some(_) => below.take().iter().for_each(ProgressBar::finish_and_clear),
            None => {}
        }
        self.state().is_writing = false;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        // There would be room for it, but not in its place.
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
