//! The baseline of the services: libraries called natively, a database of redb and a client of hyper.

use std::{net::SocketAddr, sync::Arc, thread, time::Duration};

use anyhow::{Context, Result, ensure};
use axum::{Router, routing::get};
use bytes::Bytes;
use futures_util::future::try_join_all;
use http_body_util::{BodyExt as _, Empty};
use hyper::{Request, client::conn::http1};
use hyper_util::rt::TokioIo;
use redb::{Durability, ReadableDatabase as _, TableDefinition};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};

use super::{AT_ONCE, KEYS, SIZE, share};
use crate::scenarios::calls::Worker;

const TABLE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("values");

/// Bytes of the database's cache: the default of a store.
const CACHE: usize = 1 << 20;

/// When a write is on disk.
#[derive(Clone, Copy)]
pub(super) enum Durable {
    /// Before the write returns.
    First,
    /// Some time after the write has returned.
    Later,
}

#[derive(Debug)]
pub(super) struct Database {
    database: redb::Database,
    _dir: TempDir,
}

impl Database {
    pub(super) fn create() -> Result<Self> {
        let dir = tempfile::tempdir().context("cannot make a directory")?;
        let database = redb::Builder::new().set_cache_size(CACHE).create(dir.path().join("values.redb"))?;
        Ok(Self { database, _dir: dir })
    }

    pub(super) fn get(&self, times: u32) -> Result<()> {
        for number in 0..times {
            let table = self.database.begin_read()?.open_table(TABLE)?;
            let value = table.get(&*key(number))?.context("a value is not there")?;
            ensure!(value.value().to_vec().len() == SIZE, "another value");
        }
        Ok(())
    }

    /// Sets values, each in a transaction of its own.
    pub(super) fn set(&self, times: u32, durable: Durable) -> Result<()> {
        (0..times).try_for_each(|number| self.set_one(number, durable))
    }

    /// Sets values with a thread for each of [`AT_ONCE`] writers.
    pub(super) fn set_at_once(self: &Arc<Self>, times: u32) -> Result<()> {
        let writers = (0..AT_ONCE).map(|first| {
            let database = Arc::clone(self);
            let mut numbers = (first..times).step_by(AT_ONCE as usize);
            thread::spawn(move || numbers.try_for_each(|number| database.set_one(number, Durable::First)))
        });
        let writers: Vec<_> = writers.collect();
        writers.into_iter().try_for_each(|writer| writer.join().ok().context("a writer has panicked")?)
    }

    fn set_one(&self, number: u32, durable: Durable) -> Result<()> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(match durable {
            Durable::First => Durability::Immediate,
            Durable::Later => Durability::None,
        })?;
        transaction.open_table(TABLE)?.insert(&*key(number), &[b'x'; SIZE][..])?;
        Ok(transaction.commit()?)
    }
}

fn key(number: u32) -> String {
    format!("key-{}", number % KEYS)
}

/// A server on a thread of its own.
#[derive(Debug)]
pub(super) struct Server {
    worker: Worker,
    address: SocketAddr,
}

impl Server {
    pub(super) fn start() -> Result<Self> {
        let worker = Worker::start()?;
        let listener = worker.run(TcpListener::bind("127.0.0.1:0"))??;
        let address = listener.local_addr()?;
        let routes = Router::new().route("/", get(async || Bytes::from_static(&[b'x'; SIZE])));
        worker.spawn(async move {
            // The server ends with its thread.
            let _ended = axum::serve(listener, routes).await;
        });
        Ok(Self { worker, address })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Processor time of the server's thread.
    pub(super) fn spent(&self) -> Result<Duration> {
        self.worker.used()
    }
}

/// A client on a thread of its own. Concurrent requests have a connection each.
#[derive(Debug)]
pub(super) struct Client {
    worker: Worker,
    address: SocketAddr,
}

impl Client {
    pub(super) fn start(address: SocketAddr) -> Result<Self> {
        Ok(Self { worker: Worker::start()?, address })
    }

    pub(super) fn fetch(&self, times: u32) -> Result<()> {
        self.worker.run(fetch(self.address, times))?
    }

    pub(super) fn fetch_at_once(&self, times: u32) -> Result<()> {
        let address = self.address;
        let clients = (0..AT_ONCE).map(move |first| fetch(address, share(first, times)));
        self.worker.run(async { try_join_all(clients).await.map(drop) })?
    }
}

async fn fetch(address: SocketAddr, times: u32) -> Result<()> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut requests, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let driver = tokio::spawn(connection);
    for _ in 0..times {
        let request = Request::get("/").header("host", address.to_string()).body(Empty::<Bytes>::new())?;
        requests.ready().await?;
        let body = requests.send_request(request).await?.into_body().collect().await?.to_bytes();
        ensure!(body.len() == SIZE, "another body");
    }
    drop(requests);
    driver.await??;
    Ok(())
}
