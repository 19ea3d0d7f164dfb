//! A client of a web server: many connections that stay open, and requests on some of them at once.

use std::{
    io,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use futures_util::future::try_join_all;
use http_body_util::{BodyExt, Empty};
use hyper::{
    Request, StatusCode,
    client::conn::http1::{SendRequest, handshake},
    header::HOST,
    rt::{Read, Write},
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpStream, UnixStream},
    time::sleep,
};

use super::{Answering, round, runtime};

/// What the address of a Unix socket begins with.
const UNIX: &str = "unix:";

type Connection = SendRequest<Empty<Bytes>>;

pub(super) fn ask(address: &str, connections: usize) -> Result<Answering> {
    let runtime = runtime()?;
    let connect = async || match address.strip_prefix(UNIX) {
        Some(path) => open(TokioIo::new(unix(path).await?)).await,
        None => {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            open(TokioIo::new(stream)).await
        }
    };
    let mut open = runtime.block_on(async {
        let mut open = Vec::with_capacity(connections);
        for _ in 0..connections {
            open.push(connect().await?);
        }
        anyhow::Ok(open)
    })?;
    Ok(Box::new(move |asked| {
        let (number, at_once) = asked.split_once(' ').context("two numbers are needed")?;
        let (number, at_once) = (number.parse()?, at_once.parse()?);
        round(|| runtime.block_on(requests(&mut open, number, at_once)))
    }))
}

/// Connects once there is room in the backlog of the socket.
async fn unix(path: &str) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(Duration::from_millis(1)).await,
            connected => return connected,
        }
    }
}

async fn open(io: impl Read + Write + Send + Unpin + 'static) -> Result<Connection> {
    let (requests, connection) = handshake(io).await?;
    // Ends with the connection, and at the latest with the runtime.
    tokio::spawn(connection);
    Ok(requests)
}

/// Makes requests, so many at once, and each on another connection than the one before. Returns the time of each.
async fn requests(open: &mut [Connection], number: usize, at_once: usize) -> Result<Vec<Duration>> {
    let mut shares: Vec<Vec<&mut Connection>> = (0..at_once).map(|_| Vec::new()).collect();
    for (number, connection) in open.iter_mut().enumerate() {
        shares.get_mut(number % at_once).context("nobody asks")?.push(connection);
    }
    let callers = shares.into_iter().map(async |mut open| {
        let mut times = Vec::new();
        for turn in 0..number / at_once {
            let connections = open.len();
            let connection = open.get_mut(turn % connections).context("there is no connection")?;
            let start = Instant::now();
            let request = Request::get("/").header(HOST, "localhost").body(Empty::new())?;
            connection.ready().await?;
            let answer = connection.send_request(request).await?;
            ensure!(answer.status() == StatusCode::OK, "a request is answered {}", answer.status());
            answer.into_body().collect().await?;
            times.push(start.elapsed());
        }
        anyhow::Ok(times)
    });
    Ok(try_join_all(callers).await?.concat())
}
