//! A NATS server with JetStream, on an address and a directory that it keeps through its lives.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::process::{Process, path, until};

/// The server of a test.
#[derive(Debug)]
pub(super) struct Server {
    directory: PathBuf,
    address: SocketAddr,
    monitor: SocketAddr,
    /// None while it is dead.
    process: Option<Process>,
}

/// What a server has counted since its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    /// Messages from clients.
    pub(super) in_messages: u64,
    /// Messages to clients.
    pub(super) out_messages: u64,
}

impl Server {
    /// Starts a server with these further lines of configuration.
    pub(super) async fn start(directory: &Path, more: &str) -> Self {
        let [address, monitor] = [free(), free()];
        let text = format!(
            "listen: \"{address}\"\nhttp: \"{monitor}\"\njetstream {{ store_dir: \"{}\" }}\n{more}\n",
            directory.join("jetstream").display()
        );
        fs::write(directory.join("nats.conf"), text).unwrap();
        let mut server = Self { directory: directory.to_owned(), address, monitor, process: None };
        server.start_again().await;
        server
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.kill();
        }
    }

    /// Starts it, and waits until it accepts.
    pub(super) async fn start_again(&mut self) {
        let mut command = Command::new(path("WEIR_NATS_SERVER"));
        command.arg("-c").arg(self.directory.join("nats.conf"));
        let process = self.process.insert(Process::start(&mut command, &self.directory.join("nats.log")));
        let (address, process) = (self.address, process);
        until("the server accepts", async || {
            process.assert_alive();
            TcpStream::connect(address).await.ok()
        })
        .await;
    }

    /// What it has logged.
    pub(super) fn said(&self) -> String {
        fs::read_to_string(self.directory.join("nats.log")).unwrap()
    }

    pub(super) async fn counts(&self) -> Counts {
        let counts = self.ask("/varz").await;
        let number = |key: &str| counts[key].as_u64().unwrap();
        Counts { in_messages: number("in_msgs"), out_messages: number("out_msgs") }
    }

    /// The messages of all streams together.
    pub(super) async fn stored(&self) -> u64 {
        self.ask("/jsz").await["messages"].as_u64().unwrap()
    }

    async fn ask(&self, what: &str) -> Value {
        let mut stream = TcpStream::connect(self.monitor).await.unwrap();
        let head = format!("GET {what} HTTP/1.0\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    }
}

/// An address that nothing listens on.
pub(super) fn free() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
}
