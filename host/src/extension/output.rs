//! What a guest writes: standard output and error become log lines, as `weir:iec/log` does.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::{
    cli::{IsTerminal, StdoutStream},
    p2::{OutputStream, Pollable, StreamError, StreamResult},
};

use super::abi;
use crate::logs::{Level, Logs, Source};

/// Bytes that a guest may write at once.
const PERMIT: usize = 4096;

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
        LineStream(Arc::new(Line { output: self.clone(), source, text: Mutex::default() }))
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
    text: Mutex<Vec<u8>>,
}

impl Line {
    fn append(&self, bytes: &[u8]) {
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        for &byte in bytes {
            if byte == b'\n' || text.len() >= MAX_LINE {
                self.output.line(self.source, &text);
                text.clear();
            }
            if byte != b'\n' {
                text.push(byte);
            }
        }
    }
}

/// What is left without a line feed is logged as the guest ends.
impl Drop for Line {
    fn drop(&mut self) {
        let text = self.text.get_mut().unwrap_or_else(PoisonError::into_inner);
        if !text.is_empty() {
            self.output.line(self.source, text);
        }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for LineStream {
    async fn ready(&mut self) {}
}

impl OutputStream for LineStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if bytes.len() > PERMIT {
            return Err(StreamError::trap("wrote more than was permitted"));
        }
        self.0.append(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT)
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
