//! A command's output, kept for its caller.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};
use weir_config::{LimitHit, LimitName};

use crate::exit::OverLimit;

/// How many bytes a guest may write at once. `write-zeroes` allocates as many.
const PERMIT: usize = 4096;

/// Standard output or standard error of a command. Clones share what was written.
#[derive(Clone, Debug)]
pub(super) struct Capture {
    /// How many bytes earlier commands wrote.
    before: usize,
    /// How many bytes all commands together may write.
    allowed: usize,
    written: Arc<Mutex<BytesMut>>,
}

impl Capture {
    /// Makes an output that takes `allowed` bytes minus the bytes `before`. A command that writes more is ended.
    pub(super) fn new(before: usize, allowed: usize) -> Self {
        Self { before, allowed, written: Arc::default() }
    }

    /// Returns what was written, and keeps none of it.
    pub(super) fn take(&self) -> Bytes {
        self.written.lock().split().freeze()
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Capture {
    async fn ready(&mut self) {}
}

impl OutputStream for Capture {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let mut written = self.written.lock();
        let before = self.before + written.len();
        let (used, left) = (before + bytes.len(), self.allowed.saturating_sub(before));
        written.extend_from_slice(bytes.get(..left).unwrap_or(&bytes));
        if used <= self.allowed {
            return Ok(());
        }
        let hit = LimitHit::new(LimitName::OUTPUT, used as u64, self.allowed as u64);
        Err(StreamError::Trap(OverLimit(hit).into()))
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT)
    }
}
