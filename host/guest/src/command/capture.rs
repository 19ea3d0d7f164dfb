//! A command's output, kept for its caller.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};
use weir_config::{LimitHit, LimitName};

use crate::exit::OverLimit;

/// Bytes that a guest may write at once: `write-zeroes` allocates as many.
const PERMIT: usize = 4096;

/// One output of a command; clones share it.
#[derive(Clone, Debug)]
pub(super) struct Capture {
    /// Bytes that earlier commands wrote.
    before: usize,
    /// Bytes that all of them may write.
    allowed: usize,
    written: Arc<Mutex<BytesMut>>,
}

impl Capture {
    /// Takes up to `allowed` bytes less those `before`. A command that writes more is ended.
    pub(super) fn new(before: usize, allowed: usize) -> Self {
        Self { before, allowed, written: Arc::default() }
    }

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
