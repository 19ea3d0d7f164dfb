//! A native server beside the gateway: an echo of WebSocket messages, and packets for all subscribers. Like the
//! gateway, it has one thread.

use std::{
    net::{SocketAddr, TcpListener},
    sync::{Arc, Mutex, PoisonError, mpsc as blocking},
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use axum::{
    Router,
    extract::{
        State,
        ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade},
    },
    routing::get,
    serve::ListenerExt,
};
use bytes::{BufMut, Bytes, BytesMut};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    runtime::Runtime,
    sync::mpsc,
    time::{Instant, sleep_until},
};

use super::{Answering, Asked, Packets, line, now, used};

/// Packets that may wait for each subscriber: as many as for an extension.
const CAPACITY: usize = 256;

/// The size of the gateway's buffer, too. With axum's own 128 KiB, each look at a socket first fills so much with
/// zeros.
const READ_BUFFER: usize = 4096;

/// All subscribers, each with a queue of its own for packets that are encoded once.
#[derive(Debug, Default)]
struct Audience {
    websockets: Mutex<Vec<mpsc::Sender<Utf8Bytes>>>,
    streams: Mutex<Vec<mpsc::Sender<Bytes>>>,
}

pub(super) fn start(http: SocketAddr, streams: SocketAddr) -> Result<Answering> {
    let runtime = super::runtime()?;
    let audience = Arc::<Audience>::default();
    serve(&runtime, &audience, http, streams)?;
    let handle = runtime.handle().clone();
    let _thread = thread::Builder::new().name("native".to_owned()).spawn(move || {
        runtime.block_on(std::future::pending::<()>());
    })?;
    Ok(Box::new(move |asked| match asked.parse()? {
        Asked::Used => Ok(used()),
        Asked::Publish(packets) => {
            let (tell, told) = blocking::sync_channel(1);
            let audience = audience.clone();
            // The task is not awaited: it tells when it has ended.
            let _detached = handle.spawn(async move {
                // Telling fails if nothing waits any more.
                let _told = tell.send(audience.publish(packets).await);
            });
            Ok(line(told.recv().context("the publisher has ended")?))
        }
    }))
}

fn serve(runtime: &Runtime, audience: &Arc<Audience>, http: SocketAddr, streams: SocketAddr) -> Result<()> {
    let [http, streams] = [http, streams].map(|address| {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let _guard = runtime.enter();
        tokio::net::TcpListener::from_std(listener)
    });
    let (http, streams) = (http?, streams?);
    let router = Router::new().route("/v1/peers/{name}/rpc", get(upgrade)).with_state(audience.clone());
    let http = http.tap_io(|stream| {
        // This fails only if the client has gone.
        let _without = stream.set_nodelay(true);
    });
    // Both servers end with the process.
    let _http = runtime.spawn(async move { axum::serve(http, router).await });
    let audience = audience.clone();
    let _streams = runtime.spawn(async move {
        while let Ok((stream, _)) = streams.accept().await {
            // The task ends with its connection.
            let _subscriber = tokio::spawn(packets_by_stream(stream, audience.clone()));
        }
    });
    Ok(())
}

async fn upgrade(
    State(audience): State<Arc<Audience>>,
    upgrade: WebSocketUpgrade,
) -> axum::response::Response {
    upgrade.read_buffer_size(READ_BUFFER).on_upgrade(async move |socket| {
        // The conversation ends with its connection.
        let _ended = converse(socket, &audience).await;
    })
}

/// Echoes messages until one subscribes. From then on, sends packets.
async fn converse(mut socket: WebSocket, audience: &Audience) -> Result<()> {
    while let Some(message) = socket.recv().await {
        let Message::Text(text) = message? else { continue };
        if text.contains("events.subscribe") {
            let packets = join(&audience.websockets);
            socket.send(Message::Text(text)).await?;
            return packets_by_websocket(socket, packets).await;
        }
        socket.send(Message::Text(text)).await?;
    }
    Ok(())
}

async fn packets_by_websocket(mut socket: WebSocket, mut packets: mpsc::Receiver<Utf8Bytes>) -> Result<()> {
    loop {
        tokio::select! {
            packet = packets.recv() => {
                socket.send(Message::Text(packet.context("it publishes no more")?)).await?;
            }
            message = socket.recv() => {
                message.context("the subscriber has gone")??;
            }
        }
    }
}

async fn packets_by_stream(stream: TcpStream, audience: Arc<Audience>) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::with_capacity(1024, stream);
    let mut opening = String::new();
    stream.read_line(&mut opening).await?;
    let mut stream = stream.into_inner();
    let mut packets = join(&audience.streams);
    stream.write_all(b"ok\n").await?;
    let mut ignored = [0; 256];
    loop {
        tokio::select! {
            packet = packets.recv() => stream.write_all(&packet.context("it publishes no more")?).await?,
            read = stream.read(&mut ignored) => if read? == 0 { return Ok(()) },
        }
    }
}

fn join<T>(subscribers: &Mutex<Vec<mpsc::Sender<T>>>) -> mpsc::Receiver<T> {
    let (sender, receiver) = mpsc::channel(CAPACITY);
    subscribers.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
    receiver
}

impl Audience {
    async fn publish(&self, Packets { count, bytes, interval_us }: Packets) -> Vec<u64> {
        let payload =
            format!("\"{}\"", "x".repeat(usize::try_from(bytes).unwrap_or_default().saturating_sub(2)));
        let interval = Duration::from_micros(interval_us.into());
        let start = Instant::now();
        let mut times = Vec::new();
        for number in 1..=count {
            sleep_until(start + interval * number).await;
            times.push(now());
            give(&self.websockets, || {
                format!(
                    r#"{{"jsonrpc":"2.0","method":"events.event","params":{{"pattern":"packets","topic":"packets","sequence":{number},"retained":false,"sender":"publisher","payload":{payload}}}}}"#
                ).into()
            });
            give(&self.streams, || {
                let mut frame = BytesMut::with_capacity(4 + payload.len());
                frame.put_u32_le(bytes);
                frame.put_slice(payload.as_bytes());
                frame.freeze()
            });
        }
        times
    }
}

/// Encodes a packet, and gives it to all that are there and have room.
fn give<T: Clone>(subscribers: &Mutex<Vec<mpsc::Sender<T>>>, encode: impl FnOnce() -> T) {
    let mut subscribers = subscribers.lock().unwrap_or_else(PoisonError::into_inner);
    if subscribers.is_empty() {
        return;
    }
    let packet = encode();
    subscribers.retain(|subscriber| {
        !matches!(subscriber.try_send(packet.clone()), Err(mpsc::error::TrySendError::Closed(_)))
    });
}
