//! The common echo server, and native tasks that connect to it, each on its own thread.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result, ensure};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::scenarios::tasks::Worker;

/// A thread that echoes to every connection.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) address: SocketAddr,
    _worker: Worker,
}

impl Server {
    pub(super) fn start() -> Result<Self> {
        let worker = Worker::start()?;
        let listener = worker.run(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))??;
        let address = listener.local_addr()?;
        worker.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // It ends with its connection. This program makes a fixed number.
                let _echo = tokio::spawn(echo(stream));
            }
        });
        Ok(Self { address, _worker: worker })
    }
}

async fn echo(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = [0; 64];
    loop {
        let read = stream.read(&mut buffer).await?;
        match buffer.get(..read) {
            None | Some([]) => return Ok(()),
            Some(heard) => stream.write_all(heard).await?,
        }
    }
}

#[derive(Debug)]
pub(super) struct Native {
    worker: Worker,
    connections: Vec<TcpStream>,
}

impl Native {
    pub(super) fn connect(address: SocketAddr, number: u32) -> Result<Self> {
        let worker = Worker::start()?;
        let connections = worker.run(async move {
            let mut connections = Vec::new();
            for _ in 0..number {
                let connection = TcpStream::connect(address).await.context("cannot connect")?;
                connection.set_nodelay(true)?;
                connections.push(connection);
            }
            anyhow::Ok(connections)
        })??;
        Ok(Self { worker, connections })
    }

    /// Exchanges one byte over each of this many connections, with a task each.
    pub(super) fn exchange(&mut self, connections: u32, exchanges: u32) -> Result<()> {
        let number = usize::try_from(connections)?;
        ensure!(self.connections.len() >= number, "there are too few connections");
        let taken = self.connections.drain(..number).collect::<Vec<_>>();
        let back = self.worker.run(async move {
            let tasks = taken.into_iter().map(|connection| tokio::spawn(exchange(connection, exchanges)));
            let mut back = Vec::new();
            for task in tasks.collect::<Vec<_>>() {
                back.push(task.await??);
            }
            anyhow::Ok(back)
        })??;
        self.connections.extend(back);
        Ok(())
    }
}

async fn exchange(mut connection: TcpStream, exchanges: u32) -> Result<TcpStream> {
    for number in 0..exchanges {
        let [said, ..] = number.to_le_bytes();
        connection.write_all(&[said]).await?;
        ensure!(connection.read_u8().await? == said, "exchange {number} brought something else back");
    }
    Ok(connection)
}
