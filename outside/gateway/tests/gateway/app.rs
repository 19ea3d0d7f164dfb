//! An app on a WebSocket.

use std::{collections::VecDeque, time::Duration};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    net::UnixStream,
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Error, Message, client::IntoClientRequest},
};

use crate::support::{PATIENCE, soon};

/// A polite app waits no longer, whatever its neighbours do.
const WAIT: Duration = Duration::from_secs(5);

pub(crate) struct App<S = UnixStream> {
    pub(crate) socket: WebSocketStream<S>,
    last: u64,
    /// What came before the answer that was waited for.
    pub(crate) seen: VecDeque<Value>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> App<S> {
    /// Fails with the status of the answer.
    pub(crate) async fn open(stream: S, name: &str, headers: &[(&'static str, String)]) -> Result<Self, u16> {
        Self::open_at(stream, &format!("/v1/peers/{name}/rpc"), headers).await
    }

    pub(crate) async fn open_at(
        stream: S,
        path: &str,
        headers: &[(&'static str, String)],
    ) -> Result<Self, u16> {
        let mut request = format!("ws://localhost{path}").into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        match soon(client_async(request, stream)).await {
            Ok((socket, _)) => Ok(Self { socket, last: 0, seen: VecDeque::new() }),
            Err(Error::Http(answer)) => Err(answer.status().as_u16()),
            Err(other) => panic!("{other}"),
        }
    }

    /// The gateway may have closed the connection.
    pub(crate) async fn send(&mut self, text: impl Into<String>) {
        let _closed = self.socket.send(Message::text(text.into())).await;
    }

    /// Bytes below the protocol.
    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        let _closed = self.socket.get_mut().write_all(bytes).await;
    }

    /// Sends a request, and returns its id.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params });
        self.send(request.to_string()).await;
        self.last
    }

    /// The result, or the error.
    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.ask(method, params).await;
        self.answer(id).await
    }

    /// As [`call`](Self::call), with options.
    pub(crate) async fn call_with(
        &mut self,
        method: &str,
        params: Value,
        weir: Value,
    ) -> Result<Value, Value> {
        self.last += 1;
        let id = self.last;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params, "weir": weir });
        self.send(request.to_string()).await;
        self.answer(id).await
    }

    /// The answer to a request; what comes before it is seen later.
    pub(crate) async fn answer(&mut self, id: u64) -> Result<Value, Value> {
        loop {
            let message = self.receive().await;
            if message["id"] == id && message.get("method").is_none() {
                return outcome(message);
            }
            self.seen.push_back(message);
        }
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> Value {
        match self.seen.pop_front() {
            Some(seen) => seen,
            None => self.receive().await,
        }
    }

    /// The next message as it came.
    pub(crate) async fn text(&mut self) -> String {
        loop {
            match soon(self.socket.next()).await {
                Some(Ok(Message::Text(text))) => return text.to_string(),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    async fn receive(&mut self) -> Value {
        let text = self.text().await;
        let message: Value = serde_json::from_str(&text).unwrap();
        assert!(message.is_array() || message["jsonrpc"] == "2.0", "{text}");
        message
    }

    /// The code and word of the gateway's close frame, after other messages.
    pub(crate) async fn closed(&mut self) -> (u16, String) {
        loop {
            match soon(self.socket.next()).await {
                Some(Ok(Message::Close(Some(frame)))) => {
                    return (frame.code.into(), frame.reason.to_string());
                }
                Some(Ok(Message::Text(_) | Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// It is served at once.
    pub(crate) async fn is_served(&mut self) {
        let answer = timeout(WAIT, self.call("echo@1/echo", json!(["hello"]))).await;
        assert_eq!(answer, Ok(Ok(json!(["hello"]))));
    }

    pub(crate) async fn leave(mut self) {
        let _closed = self.socket.close(None).await;
        let _closed = timeout(PATIENCE, async { while let Some(Ok(_)) = self.socket.next().await {} }).await;
    }
}

pub(crate) fn outcome(message: Value) -> Result<Value, Value> {
    match message.get("error") {
        Some(error) => Err(error.clone()),
        None => Ok(message["result"].clone()),
    }
}

/// The number and the word of an error.
pub(crate) fn code(answer: &Result<Value, Value>) -> (i64, &str) {
    let error = answer.as_ref().unwrap_err();
    (error["code"].as_i64().unwrap(), error["data"]["code"].as_str().unwrap_or_default())
}
