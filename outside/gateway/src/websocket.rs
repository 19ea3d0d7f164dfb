//! The handshake of a WebSocket (RFC 6455, section 4.2), and its end.

mod headers;

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header, request::Parts},
};
use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{GeneralPurpose, GeneralPurposeConfig},
};
use futures_util::StreamExt;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        handshake::derive_accept_key,
        protocol::{Role, WebSocketConfig},
    },
};

use self::headers::Checked;
pub(crate) use self::headers::fault_of;

/// The subprotocol that apps of Firebolt ask for.
const SUBPROTOCOL: &str = "jsonrpc";

/// A WebSocket reads so many bytes at once, and keeps a buffer of that size.
const READ_BUFFER: usize = 4096;

/// Bytes of a `Sec-WebSocket-Key` once its base64 is decoded.
const KEY: usize = 16;

/// Accepts a key whose last character has set bits that belong to no byte: some clients choose that character at
/// random.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

pub(crate) type WebSocket = WebSocketStream<Checked<TokioIo<Upgraded>>>;

/// Why a request is no handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HandshakeError {
    /// The request asks for something else, or for another version. The text says what is missing or wrong.
    #[error("a WebSocket handshake is needed here: {0}")]
    Upgrade(&'static str),
    /// The key is malformed, or is there twice.
    #[error("`Sec-WebSocket-Key` is not 16 bytes in base64, or is there twice")]
    Key,
}

/// The request for a WebSocket. Once the answer is sent, the connection becomes a WebSocket.
#[derive(Debug)]
pub(crate) struct Handshake {
    upgrade: OnUpgrade,
    accept: HeaderValue,
    speaks_jsonrpc: bool,
}

impl Handshake {
    /// Reads the handshake in a request. The error says what is missing or wrong.
    pub(crate) fn of(request: &mut Parts) -> Result<Self, HandshakeError> {
        if request.method != Method::GET {
            return Err(HandshakeError::Upgrade("the method is not `GET`"));
        }
        let headers = &request.headers;
        if !has(headers, header::CONNECTION, "upgrade") || !has(headers, header::UPGRADE, "websocket") {
            return Err(HandshakeError::Upgrade(
                "`Connection: upgrade` and `Upgrade: websocket` are missing",
            ));
        }
        if !has(headers, header::SEC_WEBSOCKET_VERSION, "13") {
            return Err(HandshakeError::Upgrade("`Sec-WebSocket-Version` is not 13"));
        }
        let mut keys = headers.get_all(header::SEC_WEBSOCKET_KEY).iter();
        let key = keys.next().ok_or(HandshakeError::Upgrade("`Sec-WebSocket-Key` is missing"))?;
        let is_key = keys.next().is_none() && BASE64.decode(key).is_ok_and(|bytes| bytes.len() == KEY);
        let accept = is_key.then(|| HeaderValue::try_from(derive_accept_key(key.as_bytes())).ok());
        let accept = accept.flatten().ok_or(HandshakeError::Key)?;
        let speaks_jsonrpc = has(headers, header::SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL);
        let upgrade = request.extensions.remove::<OnUpgrade>();
        let upgrade = upgrade.ok_or(HandshakeError::Upgrade("the connection cannot change"))?;
        Ok(Self { upgrade, accept, speaks_jsonrpc })
    }

    pub(crate) fn answer(&self) -> Response<Body> {
        let mut answer = Response::new(Body::empty());
        *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = answer.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, self.accept.clone());
        if self.speaks_jsonrpc {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
        }
        answer
    }

    /// Waits until the answer is sent, and returns the WebSocket. `None` if the app has gone.
    pub(crate) async fn finish(self, max_message: usize) -> Option<WebSocket> {
        let upgraded = self.upgrade.await.ok()?;
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .max_message_size(Some(max_message))
            .max_frame_size(Some(max_message));
        let checked = Checked::new(TokioIo::new(upgraded), max_message);
        Some(WebSocketStream::from_raw_socket(checked, Role::Server, Some(config)).await)
    }
}

/// Reads until the app answers the close frame, then closes the connection before the app does, as RFC 6455 asks in
/// section 7.1.1. If no answer can be read, it reads on until the app closes the connection, too: a TCP connection that
/// is closed with unread bytes is reset, and the app would not see the last frame.
pub(crate) async fn drain<S: AsyncRead + AsyncWrite + Unpin>(socket: &mut WebSocketStream<Checked<S>>) {
    let is_answered = loop {
        match socket.next().await {
            Some(Ok(Message::Close(_))) => break true,
            Some(Ok(_)) => {}
            // After a broken frame no answer can be told from the rest, and the library reads no more.
            Some(Err(_)) | None => break false,
        }
    };
    // The app may have gone.
    let _gone = socket.get_mut().shutdown().await;
    if !is_answered {
        let mut ignored = [0; 4096];
        while let Ok(1..) = socket.get_mut().unchecked().read(&mut ignored).await {}
    }
}

/// Whether a header lists this word, in uppercase or lowercase.
fn has(headers: &HeaderMap, name: header::HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    #[tokio::test]
    async fn all_that_comes_after_a_broken_frame_is_read_until_the_app_ends_too() {
        let (reserved_opcode, long_form) = ([0x83, 0x80, 0, 0, 0, 0], [0x81, 0xfe, 0, 1, 0, 0]);
        for broken in [reserved_opcode, long_form] {
            let (mut app, io) = duplex(64);
            let server = tokio::spawn(async move {
                let checked = Checked::new(io, 1024);
                let mut socket = WebSocketStream::from_raw_socket(checked, Role::Server, None).await;
                assert!(socket.next().await.unwrap().is_err());
                drain(&mut socket).await;
            });
            app.write_all(&broken).await.unwrap();
            app.read_to_end(&mut Vec::new()).await.unwrap();
            // Broken as well.
            app.write_all(&[0xff; 10_000]).await.unwrap();
            drop(app);
            server.await.unwrap();
        }
    }
}
