//! What waits to be written to the app, and why the gateway ends the WebSocket.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Sink, SinkExt};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{self, Message, Utf8Bytes, error::ProtocolError, protocol::CloseFrame};
use weir_connection::{LINGER, MAX_WAITING, Patience};
use weir_host::peers::{Session, SessionEnd};

use super::Step;
use crate::{
    methods::Methods,
    outbox::{Body, Next, Outbox},
    rpc,
    shared::Ending,
    stream::Flow,
    websocket::{WebSocket, drain},
};

/// Bytes that a waiting text counts beside its own: its place in the queue, and unused capacity of its buffer.
const OVERHEAD: usize = 128;

/// Once a piece has this many bytes, the socket writes it before it gets more messages.
const PIECE: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Output {
    waiting: VecDeque<Message>,
    /// What the messages in `waiting` count, as [`held`] says.
    bytes: usize,
    /// The message that the caller of [`text`](Self::text) is writing.
    text: String,
    /// An event that is sent next, after the notice of the events that were lost before it.
    event: Option<Utf8Bytes>,
    /// Whether the socket has bytes that it has not written yet.
    is_flushing: bool,
    patience: Patience,
    flow: Arc<Flow>,
}

impl Output {
    /// `patience`: how long the app may read nothing.
    pub(super) fn new(patience: Duration, flow: Arc<Flow>) -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            text: String::new(),
            event: None,
            is_flushing: false,
            patience: Patience::new(patience),
            flow,
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.bytes < MAX_WAITING
    }

    /// The empty text of a message, which [`end_text`](Self::end_text) sends.
    pub(super) fn text(&mut self) -> &mut String {
        &mut self.text
    }

    pub(super) fn end_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        self.send(text);
    }

    pub(super) fn send(&mut self, text: String) {
        let message = Message::text(text);
        self.bytes += held(&message);
        self.waiting.push_back(message);
    }

    pub(super) fn ping(&mut self) {
        self.waiting.push_back(Message::Ping(Bytes::new()));
    }

    /// Has the next [`write`](Self::write) flush the socket, which has an answer of its own to write, such as a pong.
    pub(super) fn flush(&mut self) {
        self.is_flushing = true;
    }

    /// Writes as much as the app takes. True if that made room for further messages.
    pub(super) fn write(
        &mut self,
        socket: &mut WebSocket,
        outbox: &Outbox,
        session: &Session,
        context: &mut Context<'_>,
    ) -> Step {
        let had_room = self.has_room();
        session.count_events(0, outbox.take_uncounted());
        let mut socket = Pin::new(socket);
        loop {
            if self.is_flushing {
                match socket.as_mut().poll_flush(context) {
                    Poll::Ready(Ok(())) => {
                        self.is_flushing = false;
                        self.patience.renew();
                    }
                    Poll::Ready(Err(_)) => return Err(None),
                    Poll::Pending => {
                        if self.patience.poll_over(self.flow.written(), context).is_ready() {
                            return Err(Some(Close::STALLED));
                        }
                        break;
                    }
                }
            }
            let (mut piece, mut events) = (0, 0);
            while piece < PIECE {
                match socket.as_mut().poll_ready(context) {
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(_)) => return Err(None),
                    Poll::Pending => break,
                }
                let Some((message, is_event)) = self.next(outbox) else { break };
                piece += message.len();
                events += u64::from(is_event);
                if socket.as_mut().start_send(message).is_err() {
                    return Err(None);
                }
                self.is_flushing = true;
            }
            session.count_events(events, 0);
            if !self.is_flushing {
                break;
            }
        }
        Ok(!had_room && self.has_room())
    }

    /// Writes the messages that wait, but no events, and then `close`, within [`LINGER`]. Without a `close` the app has
    /// ended the WebSocket, and only what the socket holds is written.
    ///
    /// An app that does not read gets the rest of the message under way and the reason, if the system has room for a few
    /// hundred KiB. It can read them later, even after the gateway has closed the connection.
    pub(super) async fn finish(mut self, socket: &mut WebSocket, close: Option<Close>) {
        let Some(close) = close else {
            // The answer to the app's close frame waits in the socket, which would refuse another frame.
            let _gone = timeout(LINGER, socket.flush()).await;
            return;
        };
        let rest = async {
            while let Some(message) = self.waiting.pop_front() {
                socket.feed(message).await?;
            }
            socket.flush().await
        };
        if let Ok(Err(_gone)) = timeout(LINGER / 2, rest).await {
            return;
        }
        self.flow.make_room();
        let frame = CloseFrame { code: close.code.into(), reason: close.word.into() };
        let last = async {
            if socket.send(Message::Close(Some(frame))).await.is_ok() {
                drain(socket).await;
            }
        };
        // The app may not answer the close frame.
        let _late = timeout(LINGER / 2, last).await;
    }

    /// The next message, and whether it is an event.
    fn next(&mut self, outbox: &Outbox) -> Option<(Message, bool)> {
        // The notice of a loss has just been sent; this is the event that comes after the lost ones.
        if let Some(event) = self.event.take() {
            return Some((Message::Text(event), true));
        }
        if let Some(message) = self.waiting.pop_front() {
            self.bytes -= held(&message);
            return Some((message, false));
        }
        let Next { pattern, lost, body } = outbox.next()?;
        let Body::Text(text) = body else { return None };
        if lost == 0 {
            return Some((Message::Text(text), true));
        }
        self.event = Some(text);
        let mut notice = String::new();
        rpc::write_lost(&mut notice, &pattern, lost);
        Some((Message::text(notice), false))
    }
}

/// The bytes that a waiting message counts. A ping counts nothing: there are no more of them than ticks of the timer.
fn held(message: &Message) -> usize {
    if message.is_text() { message.len() + OVERHEAD } else { 0 }
}

/// The code and the word of a close frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Close {
    code: u16,
    word: &'static str,
}

impl Close {
    pub(super) const SLOW: Self = Self { code: 4000, word: "slow" };
    pub(super) const STALLED: Self = Self { code: 4003, word: "stalled" };
    pub(super) const SILENT: Self = Self { code: 4004, word: "silent" };
    pub(super) const BINARY: Self = Self { code: 1003, word: "binary" };

    /// Waits until the session or the gateway ends, and returns what the app hears of it.
    pub(super) fn coming(methods: &Methods) -> impl Future<Output = Self> + use<> {
        let (ended, ending) = (methods.session().ended(), methods.shared().ending());
        async move {
            tokio::select! {
                biased;
                end = ended => Self::of(end),
                why = ending => Self::of_gateway(why),
            }
        }
    }

    fn of(end: SessionEnd) -> Self {
        let (code, word) = match end {
            SessionEnd::Stopping => return Self::of_gateway(Ending::Main),
            SessionEnd::Revoked => (4001, "revoked"),
            _ => (4002, "ended"),
        };
        Self { code, word }
    }

    fn of_gateway(why: Ending) -> Self {
        let code = match why {
            Ending::Main => 1001,
            Ending::Restart => 1012,
        };
        Self { code, word: why.said().0 }
    }

    /// Why a failed read ends the WebSocket, or `None` if the app has gone.
    pub(super) fn of_error(error: &tungstenite::Error) -> Option<Self> {
        let (code, word) = match error {
            tungstenite::Error::Capacity(_) => (1009, "too-large"),
            tungstenite::Error::Utf8(_) => (1007, "utf-8"),
            tungstenite::Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                return None;
            }
            tungstenite::Error::Protocol(_) => (1002, "protocol"),
            _ => return None,
        };
        Some(Self { code, word })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_answers_that_wait_count_with_what_they_hold() {
        let mut output = Output::new(Duration::from_secs(1), Arc::default());
        let mut waiting = 0;
        while output.has_room() {
            output.send("{}".to_owned());
            waiting += 1;
        }
        assert!(waiting * (size_of::<Message>() + 64) <= 2 * MAX_WAITING, "{waiting} texts");
    }
}
