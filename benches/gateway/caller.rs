//! Makes requests with a client as apps have it, and says what they took.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures_util::{SinkExt, StreamExt};
use tokio::{net::TcpStream, runtime::Builder};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{ClientRequestBuilder, Message, Utf8Bytes},
};

use crate::{
    Answering, line, nanoseconds, processor_time,
    websocket::{PATH, TOKEN},
};

pub(crate) fn start(address: &str) -> Result<Answering> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut socket = runtime.block_on(open(address))?;
    Ok(Box::new(move |asked| {
        let (number, size) = asked.split_once(' ').context("two numbers are needed")?;
        let (number, size) = (number.parse()?, size.parse()?);
        let (used, start) = (processor_time(), Instant::now());
        let mut times = runtime.block_on(requests(&mut socket, number, size))?;
        let (time, used) = (start.elapsed(), processor_time() - used);
        times.sort_unstable();
        let [p50, p99] = [50, 99].map(|percent| nanoseconds(percentile(&times, percent)));
        Ok(line([nanoseconds(time), used, p50, p99]))
    }))
}

async fn open(address: &str) -> Result<WebSocketStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let request = ClientRequestBuilder::new(format!("ws://{address}{PATH}").parse()?)
        .with_header("authorization", format!("Bearer {TOKEN}"));
    Ok(client_async(request, stream).await?.0)
}

/// The times of all requests. Each has so many bytes of arguments.
async fn requests(
    socket: &mut WebSocketStream<TcpStream>,
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

/// The least time that this percentage of all does not exceed.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}
