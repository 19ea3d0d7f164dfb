//! Apps at the gateway: one makes requests with a client as apps have it, the other holds WebSockets that wait.

use std::{
    net::TcpStream,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use futures_util::{SinkExt, StreamExt};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{
        ClientRequestBuilder, Message, Utf8Bytes, WebSocket, client::client_with_config,
        protocol::WebSocketConfig,
    },
};

use super::{Answering, round, runtime};

/// What proves to Main that a client is `app:bench`.
pub(super) const TOKEN: &str = "weir-bench";

/// A request for a method that nothing has. An answer that names it proves that the server still serves the WebSocket.
const ASK: &str = r#"{"jsonrpc":"2.0","id":1,"method":"nothing@1/ask"}"#;

pub(super) fn request(address: &str) -> Result<Answering> {
    let runtime = runtime()?;
    let mut socket = runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        anyhow::Ok(client_async(opening(address)?, stream).await?.0)
    })?;
    Ok(Box::new(move |asked| {
        let (number, size) = asked.split_once(' ').context("two numbers are needed")?;
        let (number, size) = (number.parse()?, size.parse()?);
        round(|| runtime.block_on(requests(&mut socket, number, size)))
    }))
}

pub(super) fn idle(address: &str, count: u32) -> Result<Answering> {
    let mut sockets = (0..count).map(|_| open(address)).collect::<Result<Vec<_>>>()?;
    Ok(Box::new(move |_| {
        for socket in &mut sockets {
            let answer = ask(socket, ASK)?;
            ensure!(answer.contains("nothing@1/ask"), "a WebSocket answers {answer}");
        }
        Ok("well".to_owned())
    }))
}

/// The request that opens a WebSocket, at the path that both servers have.
fn opening(address: &str) -> Result<ClientRequestBuilder> {
    let request = ClientRequestBuilder::new(format!("ws://{address}/v1/peers/app:bench/rpc").parse()?);
    Ok(request.with_header("authorization", format!("Bearer {TOKEN}")))
}

/// Opens a WebSocket for a thread that waits for nothing else.
pub(super) fn open(address: &str) -> Result<WebSocket<TcpStream>> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    // There are many WebSockets, and their messages are short.
    let config = WebSocketConfig::default().read_buffer_size(1024);
    Ok(client_with_config(opening(address)?, stream, Some(config))?.0)
}

/// Sends a text, and waits for a message.
pub(super) fn ask(socket: &mut WebSocket<TcpStream>, text: &str) -> Result<String> {
    socket.send(Message::text(text))?;
    Ok(socket.read()?.into_text()?.to_string())
}

/// Makes requests with so many bytes of arguments, one after the other. Returns the time of each.
async fn requests(
    socket: &mut WebSocketStream<tokio::net::TcpStream>,
    number: u32,
    size: usize,
) -> Result<Vec<Duration>> {
    let filling = "x".repeat(size.checked_sub(12).context("a payload has no room for a number")?);
    let mut times = Vec::with_capacity(usize::try_from(number)?);
    for number in 0..number {
        let payload = format!(r#"["{number:08}{filling}"]"#);
        let request: Utf8Bytes =
            format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"echo@1/echo","params":{payload}}}"#).into();
        let start = Instant::now();
        socket.send(Message::Text(request.clone())).await?;
        let message = socket.next().await.context("the server has gone")??;
        times.push(start.elapsed());
        let answer = message.to_text()?;
        // A server that knows nothing of JSON sends the text itself back.
        let is_right = answer == request.as_str()
            || answer == format!(r#"{{"jsonrpc":"2.0","result":{payload},"id":{number}}}"#);
        ensure!(is_right, "a request is answered {answer}");
    }
    Ok(times)
}
