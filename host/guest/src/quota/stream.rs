//! A stream into a file of a counted directory.

use std::{fs::File, io, mem, sync::Arc};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

use super::Quota;

/// How many bytes are written at once, as in WASI's other file streams.
const PERMIT: usize = 64 * 1024;

/// Writes to a file as long as there is room.
pub(crate) struct CountedStream {
    quota: Quota,
    file: Arc<File>,
    /// Where the next byte goes. None for the end of the file.
    at: Option<u64>,
    state: State,
}

enum State {
    Idle,
    /// A write is under way, until all its bytes are written.
    Writing(BoxFuture<'static, io::Result<()>>),
    Failed(io::Error),
    Closed,
}

impl CountedStream {
    pub(crate) fn new(quota: Quota, file: Arc<File>, at: Option<u64>) -> Self {
        Self { quota, file, at, state: State::Idle }
    }

    /// Fails once with the error of a write. After that, fails because the stream is closed.
    fn check(&mut self) -> StreamResult<()> {
        match self.state {
            State::Idle | State::Writing(_) => Ok(()),
            State::Closed => Err(StreamError::Closed),
            State::Failed(_) => match mem::replace(&mut self.state, State::Closed) {
                State::Failed(error) => Err(StreamError::LastOperationFailed(error.into())),
                _ => Err(StreamError::Closed),
            },
        }
    }
}

async fn write_all(quota: Quota, file: Arc<File>, mut bytes: Bytes, mut at: Option<u64>) -> io::Result<()> {
    while !bytes.is_empty() {
        match quota.write(file.clone(), bytes.clone(), at).await {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                drop(bytes.split_to(written));
                at = at.map(|at| at + written as u64);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[wasmtime_wasi::async_trait]
impl OutputStream for CountedStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        match self.state {
            State::Idle => {}
            State::Closed => return Err(StreamError::Closed),
            State::Writing(_) | State::Failed(_) => {
                return Err(StreamError::trap("write without the permission of `check-write`"));
            }
        }
        let length = bytes.len() as u64;
        let writing = write_all(self.quota.clone(), self.file.clone(), bytes, self.at);
        self.at = self.at.map(|at| at.saturating_add(length));
        self.state = State::Writing(Box::pin(writing));
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.check()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.check()?;
        Ok(if matches!(self.state, State::Idle) { PERMIT } else { 0 })
    }

    async fn cancel(&mut self) {
        // Bytes already accepted are written.
        self.ready().await;
        self.state = State::Closed;
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for CountedStream {
    async fn ready(&mut self) {
        if let State::Writing(writing) = &mut self.state {
            self.state = match writing.await {
                Ok(()) => State::Idle,
                Err(error) => State::Failed(error),
            };
        }
    }
}
