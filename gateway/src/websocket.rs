//! The handshake of a WebSocket (RFC 6455, section 4.2), and its end.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header, request::Parts},
};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        handshake::derive_accept_key,
        protocol::{Role, WebSocketConfig},
    },
};

/// As apps of Firebolt ask for it.
const SUBPROTOCOL: &str = "jsonrpc";

/// A WebSocket reads so many bytes at once, and keeps a buffer of that size.
const READ_BUFFER: usize = 4096;

pub(crate) type WebSocket = WebSocketStream<TokioIo<Upgraded>>;

/// The request for a WebSocket. The answer is sent first, then the connection becomes one.
#[derive(Debug)]
pub(crate) struct Handshake {
    upgrade: OnUpgrade,
    accept: HeaderValue,
    speaks_jsonrpc: bool,
}

impl Handshake {
    /// Looks for it in a request; the error says what is missing.
    pub(crate) fn of(request: &mut Parts) -> Result<Self, &'static str> {
        if request.method != Method::GET {
            return Err("the method is not `GET`");
        }
        let headers = &request.headers;
        if !has(headers, header::CONNECTION, "upgrade") || !has(headers, header::UPGRADE, "websocket") {
            return Err("`Connection: upgrade` and `Upgrade: websocket` are missing");
        }
        if !has(headers, header::SEC_WEBSOCKET_VERSION, "13") {
            return Err("`Sec-WebSocket-Version` is not 13");
        }
        let key = headers.get(header::SEC_WEBSOCKET_KEY).ok_or("`Sec-WebSocket-Key` is missing")?;
        let accept = HeaderValue::try_from(derive_accept_key(key.as_bytes()));
        let accept = accept.map_err(|_| "`Sec-WebSocket-Key` is not one")?;
        let speaks_jsonrpc = has(headers, header::SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL);
        let upgrade = request.extensions.remove::<OnUpgrade>().ok_or("the connection cannot change")?;
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

    /// The WebSocket, once the answer is sent. None if the app has gone.
    pub(crate) async fn finish(self, max_message: usize) -> Option<WebSocket> {
        let upgraded = self.upgrade.await.ok()?;
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .max_message_size(Some(max_message))
            .max_frame_size(Some(max_message));
        Some(WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await)
    }
}

/// Reads what is left until the app closes. Closed with unread bytes, a TCP connection is reset, and the app would not
/// see the last frame.
pub(crate) async fn drain(socket: &mut WebSocket) {
    let mut ignored = [0; 4096];
    while let Ok(1..) = socket.get_mut().read(&mut ignored).await {}
}

/// Whether one of a header's words is this.
fn has(headers: &HeaderMap, name: header::HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(word))
}
