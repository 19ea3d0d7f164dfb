//! A guest's output: what it writes to standard output, standard error and `weir:iec/log` becomes log lines.

mod rate;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::io::AsyncWrite;
use wasmtime_wasi::{
    cli::{IsTerminal, StdoutStream},
    p2::{OutputStream, Pollable, StreamError, StreamResult},
};
use weir_logs::{Level, Logs, Source};
use weir_metrics::Usage;
use weir_schedule::end_slice;

use self::rate::Rate;
use super::abi;

/// How many bytes a guest may write before others run, because each line costs the host work.
const PERMIT: usize = 1024;

/// How many bytes of a line are kept: one more than is shown, so that the log can tell that a line was cut.
const MAX_LINE: usize = weir_logs::MAX_LINE + 1;

/// Writes log lines under one extension's id, within its rate. Clones share the rate.
#[derive(Clone, Debug)]
pub struct Output(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    extension: Arc<str>,
    logs: Arc<Logs>,
    rate: Mutex<Rate>,
    usage: Arc<Usage>,
}

impl Output {
    /// Makes an output of at most `rate` lines a second.
    pub fn new(extension: Arc<str>, logs: Arc<Logs>, rate: u32, usage: Arc<Usage>) -> Self {
        let rate = Mutex::new(Rate::new(rate, Instant::now()));
        Self(Arc::new(Shared { extension, logs, rate, usage }))
    }

    pub(super) fn log(&self, level: Level, message: &str, fields: impl Iterator<Item = (String, String)>) {
        if self.may_write() {
            self.0.logs.write(&self.0.extension, level, Source::Log, message, fields);
        }
    }

    /// Reports the lines that were dropped since the last report, if any were.
    pub(super) fn report_dropped(&self) {
        let dropped = self.0.rate.lock().take_dropped(Instant::now());
        self.say_dropped(dropped);
    }

    /// Whether another line is within the rate. Counts the line, and reports lines that were dropped before, if a
    /// report is due.
    fn may_write(&self) -> bool {
        let now = Instant::now();
        let mut rate = self.0.rate.lock();
        let is_within = rate.take(now);
        let dropped = if rate.is_report_due(now) { rate.take_dropped(now) } else { 0 };
        drop(rate);
        self.say_dropped(dropped);
        if is_within {
            self.0.usage.log_rate.add(now, 1);
        } else {
            self.0.usage.log_dropped.fetch_add(1, Ordering::Relaxed);
        }
        is_within
    }

    fn say_dropped(&self, lines: u64) {
        if lines > 0 {
            let text = format!(
                "over `log-rate` of {} lines a second: {lines} dropped",
                self.0.rate.lock().per_second
            );
            self.say(Level::Warn, &text);
        }
    }

    /// Writes a line of Main about the extension, which does not count against the rate.
    pub(super) fn say(&self, level: Level, text: &str) {
        self.say_with(level, text, std::iter::empty());
    }

    pub(super) fn say_with(&self, level: Level, text: &str, fields: impl Iterator<Item = (String, String)>) {
        self.0.logs.write(&self.0.extension, level, Source::Main, text, fields);
    }

    pub(super) fn stream(&self, source: Source) -> LineStream {
        LineStream(Arc::new(Line {
            output: self.clone(),
            source,
            written: Mutex::new(Written { text: Vec::new(), is_cut: false, permit: PERMIT }),
        }))
    }

    fn line(&self, source: Source, text: &[u8]) {
        if !self.may_write() {
            return;
        }
        let level = if source == Source::Stderr { Level::Warn } else { Level::Info };
        let text = String::from_utf8_lossy(text);
        let text = text.strip_suffix('\r').unwrap_or(&text);
        self.0.logs.write(&self.0.extension, level, source, text, std::iter::empty());
    }
}

impl From<abi::Level> for Level {
    fn from(level: abi::Level) -> Self {
        match level {
            abi::Level::Trace => Self::Trace,
            abi::Level::Debug => Self::Debug,
            abi::Level::Info => Self::Info,
            abi::Level::Warn => Self::Warn,
            abi::Level::Error => Self::Error,
        }
    }
}

/// A guest's standard output or standard error. Clones share the unfinished line.
#[derive(Clone, Debug)]
pub(super) struct LineStream(Arc<Line>);

#[derive(Debug)]
struct Line {
    output: Output,
    source: Source,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    /// The unfinished line, as far as it came.
    text: Vec<u8>,
    /// Whether this line was cut and logged already, so that its rest is left out.
    is_cut: bool,
    /// How many bytes may still be written before others run.
    permit: usize,
}

impl Line {
    /// Appends bytes and logs finished lines. Skips empty lines and cuts long ones. Returns false, and does nothing, if
    /// the permit is too small.
    fn append(&self, bytes: &[u8]) -> bool {
        let mut written = self.written.lock();
        let Some(permit) = written.permit.checked_sub(bytes.len()) else { return false };
        written.permit = permit;
        for &byte in bytes {
            let ends = byte == b'\n';
            if !ends && !written.is_cut {
                written.text.push(byte);
            }
            if (ends || written.text.len() == MAX_LINE) && !written.text.is_empty() {
                self.output.line(self.source, &written.text);
                written.text.clear();
                written.is_cut = true;
            }
            written.is_cut &= !ends;
        }
        true
    }
}

/// Logs an unfinished line when the guest ends, but not during a panic: a second panic, say in a `tracing` subscriber,
/// would end Main.
impl Drop for Line {
    fn drop(&mut self) {
        let written = self.written.get_mut();
        if !written.text.is_empty() && !std::thread::panicking() {
            self.output.line(self.source, &written.text);
        }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for LineStream {
    async fn ready(&mut self) {
        if self.0.written.lock().permit == 0 {
            end_slice().await;
            self.0.written.lock().permit = PERMIT;
        }
    }
}

impl OutputStream for LineStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if self.0.append(&bytes) { Ok(()) } else { Err(StreamError::trap("wrote more than was permitted")) }
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(self.0.written.lock().permit)
    }
}

/// An output of a guest, which is no terminal.
pub(super) struct GuestOutput<S>(pub(super) S);

impl<S> IsTerminal for GuestOutput<S> {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl<S: OutputStream + Clone + Sync> StdoutStream for GuestOutput<S> {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.0.clone())
    }

    /// Never used, because only WASI 0.2 is linked, which asks for `p2_stream`.
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }
}
