//! What waits to be written to the program, in one piece.

use std::{
    borrow::Cow,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf, Bytes, BytesMut};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    net::UnixStream,
    time::timeout,
};
use weir_connection::{LINGER, MAX_WAITING, Patience};
use weir_host::{Error, attached::Part, peers::SessionEnd, traces::TraceContext};
use weir_peer::frame::{self, FromMain, TRACES_SINCE};
use weir_sockets::{make_room, write_now};

use super::Step;

/// A buffer for more bytes than these is given back once it is empty.
const KEPT: usize = 4096;

#[derive(Debug)]
pub(super) struct Output {
    waiting: BytesMut,
    /// Bytes at the beginning of `waiting` that are the rest of a frame under way.
    begun: usize,
    patience: Patience,
    /// The version of the protocol.
    version: u16,
    /// Whether the program has closed the connection. What it sent before may still be there to read.
    is_closed: bool,
}

impl Output {
    /// Nothing that waits yet. `patience` says how long the program may read nothing.
    pub(super) fn new(patience: Duration, version: u16) -> Self {
        let patience = Patience::new(patience);
        Self { waiting: BytesMut::new(), begun: 0, patience, version, is_closed: false }
    }

    pub(super) fn version(&self) -> u16 {
        self.version
    }

    /// Says that the next frame is part of this span, if the program knows such frames.
    pub(super) fn span(&mut self, span: Option<TraceContext>) {
        if let Some(span) = span.filter(|_| self.version >= TRACES_SINCE) {
            self.send(&FromMain::Trace { span });
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() < MAX_WAITING
    }

    /// Whether nobody reads what is sent.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(super) fn send(&mut self, frame: &FromMain<'_>) {
        if !self.is_closed {
            frame.encode(&mut self.waiting);
        }
    }

    /// Answers what the program began under this id. With the id 0, it wants no answer.
    pub(super) fn answer(&mut self, id: u32, outcome: Result<Bytes, Error>) {
        match outcome {
            _ if id == 0 => {}
            Ok(payload) => self.send(&FromMain::Answer { id, payload }),
            Err(error) => self.send(&FromMain::Error { id, error }),
        }
    }

    /// Writes as much as the program takes. True if that made room, or the program has closed the connection. Fails if
    /// the program has read nothing for too long.
    pub(super) fn write(&mut self, stream: &mut UnixStream, context: &mut Context<'_>) -> Step {
        let had_room = self.has_room();
        while !self.waiting.is_empty() {
            match Pin::new(&mut *stream).poll_write(context, &self.waiting) {
                Poll::Ready(Ok(written)) if written > 0 => {
                    self.wrote(written);
                    self.patience.renew();
                }
                Poll::Ready(_) => {
                    (self.waiting, self.begun, self.is_closed) = (BytesMut::new(), 0, true);
                    self.patience.renew();
                    return Ok(true);
                }
                Poll::Pending => {
                    if let Poll::Ready(limit) = self.patience.poll_over(0, context) {
                        let text = format!("the program has read nothing for {limit:?}");
                        return Err(Some(Close::new(frame::close::STALLED, text)));
                    }
                    return Ok(!had_room && self.has_room());
                }
            }
        }
        if self.waiting.capacity() > KEPT {
            self.waiting = BytesMut::new();
        }
        Ok(!had_room)
    }

    /// Drops what was written, and finds out how much of the frame under way is left.
    fn wrote(&mut self, written: usize) {
        while self.begun < written {
            // Only whole frames wait.
            self.begun += frame::size(self.waiting.get(self.begun..).unwrap_or_default());
        }
        self.begun -= written;
        self.waiting.advance(written);
    }

    /// Writes what is left, then why the session ends, within [`LINGER`].
    ///
    /// A program that does not read gets the rest of the frame under way and the reason, if the system makes room for them:
    /// for a few hundred KiB at most. It finds them where it reads again, also after Main has closed the connection.
    pub(crate) async fn finish(mut self, stream: &mut UnixStream, close: Close) {
        let rest = poll_fn(|context| {
            while !self.waiting.is_empty() {
                match ready!(Pin::new(&mut *stream).poll_write(context, &self.waiting)) {
                    Ok(written) if written > 0 => self.wrote(written),
                    _ => return Poll::Ready(false),
                }
            }
            Poll::Ready(true)
        });
        if timeout(LINGER / 2, rest).await == Ok(false) {
            return;
        }
        self.waiting.truncate(self.begun);
        close.encode(&mut self.waiting);
        make_room(&*stream);
        self.waiting.advance(write_now(&*stream, &self.waiting));
        // The program may have gone, or not read.
        let _gone = timeout(LINGER / 2, stream.write_all(&self.waiting)).await;
    }
}

/// The last frame of a session: why Main ends it.
#[derive(Debug)]
pub(crate) struct Close {
    code: &'static str,
    text: Cow<'static, str>,
}

impl Close {
    pub(crate) fn new(code: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        Self { code, text: text.into() }
    }

    /// Says how the program broke the protocol.
    pub(crate) fn protocol(how: impl ToString) -> Self {
        Self::new(frame::close::PROTOCOL, how.to_string())
    }

    pub(super) fn of(end: SessionEnd) -> Self {
        let code = match end {
            SessionEnd::Revoked => frame::close::REVOKED,
            SessionEnd::Stopping => frame::close::STOPPING,
            _ => frame::close::ENDED,
        };
        Self::new(code, end.to_string())
    }

    /// Counts the refusal of a program that has not proved a name, and logs it. The end of Main is no refusal.
    pub(crate) fn count(&self, part: &Part) {
        match self.code {
            frame::close::STOPPING => {}
            // The registry of names logs it.
            frame::close::DENIED => part.count_refused("proof"),
            code => part.refused(code, || self.text.to_string()),
        }
    }

    pub(crate) fn encode(&self, output: &mut BytesMut) {
        FromMain::Close { code: self.code, text: &self.text }.encode(output);
    }
}
