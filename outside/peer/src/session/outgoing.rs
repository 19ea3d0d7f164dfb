//! What waits to be written, as bytes. Frames of many tasks become one write.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::BytesMut;
use tokio::sync::Notify;
use weir_names::Error;

use super::mailbox::until;
use crate::frame::FromPeer;

/// Bytes that may wait before senders wait, too. Enough for a write to be worth its system call many times over.
const FULL: usize = 256 * 1024;

/// What waits to be written.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    state: Mutex<State>,
    filled: Notify,
    freed: Notify,
}

#[derive(Debug, Default)]
struct State {
    buffer: BytesMut,
    has_ended: bool,
}

impl Outgoing {
    /// Waits until less than [`FULL`] waits to be written.
    ///
    /// # Errors
    /// [`Error::PeerGone`] once the session has ended.
    pub(crate) async fn room(&self) -> Result<(), Error> {
        let look = || match &*self.lock() {
            State { has_ended: true, .. } => Some(Err(Error::PeerGone)),
            State { buffer, .. } => (buffer.len() < FULL).then_some(Ok(())),
        };
        until(&self.freed, look).await
    }

    pub(crate) fn is_full(&self) -> bool {
        self.lock().buffer.len() >= FULL
    }

    /// Puts a frame at the end, or drops it if the session has ended. A frame that a program can make without end goes
    /// after a wait for [`room`](Self::room); for the others something else bounds how many there can be.
    pub(crate) fn push(&self, frame: &FromPeer<'_>) {
        self.push_all([Some(frame)]);
    }

    /// Puts frames at the end with nothing between them, or drops them if the session has ended.
    pub(crate) fn push_all<'f, const N: usize>(&self, frames: [Option<&FromPeer<'f>>; N]) {
        let mut state = self.lock();
        if !state.has_ended {
            let was_empty = state.buffer.is_empty();
            frames.into_iter().flatten().for_each(|frame| frame.encode(&mut state.buffer));
            drop(state);
            if was_empty {
                self.filled.notify_one();
            }
        }
    }

    /// Waits until something waits to be written, and swaps all of it with `empty`. False once the session has ended
    /// and all is taken.
    pub(crate) async fn take(&self, empty: &mut BytesMut) -> bool {
        let look = || {
            let mut state = self.lock();
            if state.buffer.is_empty() {
                return state.has_ended.then_some(false);
            }
            std::mem::swap(&mut state.buffer, empty);
            drop(state);
            self.freed.notify_waiters();
            Some(true)
        };
        until(&self.filled, look).await
    }

    /// Takes no more frames. Those that wait can still be taken.
    pub(crate) fn end(&self) {
        self.lock().has_ended = true;
        self.filled.notify_one();
        self.freed.notify_waiters();
    }

    /// The capacity to keep in a buffer that has been written.
    pub(crate) const KEPT: usize = 2 * FULL;

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
