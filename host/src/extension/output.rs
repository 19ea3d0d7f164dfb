//! What a guest writes: standard output and error become log lines, as `weir:iec/log` does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::{
    cli::{IsTerminal, StdoutStream},
    p2::{OutputStream, Pollable, StreamError, StreamResult},
};

use super::abi;
use crate::logs::{Level, Logs, Source};

/// Bytes that a guest may write before it lets others run: each line of them is work for the host.
const PERMIT: usize = 1024;

/// Bytes after which a line ends, whether or not it has a line feed.
const MAX_LINE: usize = 4096;

/// Writes log lines under one extension's id.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    extension: Arc<str>,
    logs: Arc<Logs>,
}

impl Output {
    pub(crate) fn new(extension: Arc<str>, logs: Arc<Logs>) -> Self {
        Self { extension, logs }
    }

    pub(super) fn log(&self, level: Level, message: &str, fields: impl Iterator<Item = (String, String)>) {
        self.logs.write(&self.extension, level, Source::Log, message, fields);
    }

    /// A stream whose lines are logged.
    pub(super) fn stream(&self, source: Source) -> LineStream {
        LineStream(Arc::new(Line {
            output: self.clone(),
            source,
            written: Mutex::new(Written { text: Vec::new(), permit: PERMIT }),
        }))
    }

    fn line(&self, source: Source, text: &[u8]) {
        let level = if source == Source::Stderr { Level::Warn } else { Level::Info };
        let text = String::from_utf8_lossy(text);
        let text = text.strip_suffix('\r').unwrap_or(&text);
        self.logs.write(&self.extension, level, source, text, std::iter::empty());
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

/// One of a guest's two streams; all handles to it share the line.
#[derive(Clone, Debug)]
pub(super) struct LineStream(Arc<Line>);

/// Gathers what is written into lines.
#[derive(Debug)]
struct Line {
    output: Output,
    source: Source,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    /// The line so far.
    text: Vec<u8>,
    /// Bytes that may still be written before others run.
    permit: usize,
}

impl Line {
    /// Appends, if so much is permitted. Empty lines say nothing and are left out.
    fn append(&self, bytes: &[u8]) -> bool {
        let mut written = self.written();
        let Some(permit) = written.permit.checked_sub(bytes.len()) else { return false };
        written.permit = permit;
        for &byte in bytes {
            let ends = byte == b'\n' || written.text.len() >= MAX_LINE;
            if ends && !written.text.is_empty() {
                self.output.line(self.source, &written.text);
                written.text.clear();
            }
            if byte != b'\n' {
                written.text.push(byte);
            }
        }
        true
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is left without a line feed is logged as the guest ends.
impl Drop for Line {
    fn drop(&mut self) {
        let written = self.written.get_mut().unwrap_or_else(PoisonError::into_inner);
        if !written.text.is_empty() {
            self.output.line(self.source, &written.text);
        }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for LineStream {
    async fn ready(&mut self) {
        if self.0.written().permit == 0 {
            tokio::task::yield_now().await;
            self.0.written().permit = PERMIT;
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
        Ok(self.0.written().permit)
    }
}

impl IsTerminal for LineStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LineStream {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }

    /// WASI 0.2 alone is linked, and that asks for `p2_stream`.
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }
}
