//! Connections to an echo on this machine: from inside the sandbox, and from native tasks.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
};

use anyhow::{Context, Result, ensure};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use weir_host::{Config, ExtensionConfig, Main, MainConfig, client::Subscriber};

use super::{Measured, Round};
use crate::{
    figure::Figure,
    scenarios::{Bench, Scale, calls::Worker, device::allow_connections, embedder::Embedder, progress},
};

/// Both ends of all connections, native and from extensions.
const CONNECTIONS: u64 = 2 * 2 * 1000;

/// The target for connections spread over many extensions, over the baseline.
const TARGET: f64 = 2.0;

#[derive(Clone, Copy, Debug)]
struct Spread {
    extensions: u32,
    connections: u32,
    /// Exchanges over each connection, in a round of a full run.
    exchanges: u32,
    target: Option<f64>,
}

/// One extension can have 250 at most: a connection takes four of the 1024 WASI resources of the class `max`.
const SPREADS: [Spread; 3] = [
    Spread { extensions: 1, connections: 250, exchanges: 800, target: None },
    Spread { extensions: 10, connections: 100, exchanges: 200, target: None },
    Spread { extensions: 100, connections: 10, exchanges: 200, target: Some(TARGET) },
];

impl Spread {
    fn at(self, scale: Scale) -> Self {
        match scale {
            Scale::Full => self,
            Scale::Quick => Self { exchanges: self.exchanges / 5, ..self },
            Scale::Smoke => Self { connections: 2, exchanges: 5, ..self },
        }
    }
}

pub(super) fn run(bench: &Bench) -> Result<Vec<Figure>> {
    allow_connections(CONNECTIONS)?;
    let server = Server::start()?;
    let spreads = SPREADS.map(|spread| spread.at(bench.scale));
    let most = spreads.iter().map(|spread| spread.extensions * spread.connections).max();
    let mut native = Native::connect(server.address, most.unwrap_or_default())?;
    // With a cache, the component is compiled for the first Main only.
    let cache = tempfile::tempdir().context("cannot make a directory")?;
    let mut figures = Vec::new();
    for Spread { extensions, connections, exchanges, target } in spreads {
        let all = extensions * connections;
        let case = format!("over TCP, {extensions} × {connections} connections");
        let mut measured = Measured::new(case, all * exchanges, target);
        let connected = (0..extensions)
            .map(|number| bench.guests.sockets(&format!("sockets-{number}"), server.address, connections));
        let mut weir = Weir::start(connected.collect::<Result<_>>()?, cache.path())?;
        let rounds = bench.scale.pick(5, 3, 1);
        for round in 0..rounds {
            progress(&measured.case, round, rounds);
            measured.native.push(Round::of(|| native.exchange(all, exchanges))?);
            measured.weir.push(Round::of(|| weir.exchange(exchanges))?);
        }
        figures.extend(measured.figures());
    }
    Ok(figures)
}

#[derive(Debug)]
struct Weir {
    extensions: u32,
    done: Subscriber,
    embedder: Embedder,
}

impl Weir {
    fn start(connected: Vec<ExtensionConfig>, cache: &Path) -> Result<Self> {
        let extensions = u32::try_from(connected.len())?;
        let mut main = MainConfig::default();
        main.cache_dir = Some(cache.to_owned());
        let embedder = Embedder::start(Main::builder(Config::new(main, connected)))?;
        Ok(Self { extensions, done: embedder.client().subscribe("done")?, embedder })
    }

    fn exchange(&mut self, exchanges: u32) -> Result<()> {
        let answers = (&mut self.done, self.extensions);
        for failure in self.embedder.publish_and_hear("go", exchanges.to_string(), answers)? {
            ensure!(failure == "null", "an extension said {failure:?}");
        }
        Ok(())
    }
}

/// A thread that echoes to every connection.
#[derive(Debug)]
struct Server {
    address: SocketAddr,
    _worker: Worker,
}

impl Server {
    fn start() -> Result<Self> {
        let worker = Worker::start()?;
        let listener = worker.run(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))??;
        let address = listener.local_addr()?;
        worker.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // The echo ends with its connection. This program makes a fixed number of them.
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
struct Native {
    worker: Worker,
    connections: Vec<TcpStream>,
}

impl Native {
    fn connect(address: SocketAddr, number: u32) -> Result<Self> {
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
    fn exchange(&mut self, connections: u32, exchanges: u32) -> Result<()> {
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
