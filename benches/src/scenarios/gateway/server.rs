//! A server with its process: Main with a gateway, or the native one. Both are asked the same
//! (`benches/src/programs.rs`).

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    time::Duration,
};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::{
    process::Process,
    scenarios::{
        Bench,
        device::{Device, at_rest},
    },
};

/// The peer that all clients are. Its token is `weir-bench`.
const PEER: &str = r#"
[peer."app:bench"]
tokens = ["sha256:aff62cb6ced6d455aebcff9ec1eb5dd931cc01b0d72337d2bdcd6d1e24214678"]
wants = ["echo@1"]
subscribes = ["packets"]
limits = { sessions = 2048, message-rate = 1_000_000, stall-timeout = "1day" }
"#;

const EXTENSIONS: &str = r#"
[[extension]]
id = "echo"
path = "echo-raw.wasm"
fulfills = ["echo@1"]
limits.cpu-share = "100%"

[[extension]]
id = "publisher"
path = "publisher.wasm"
class = "max"
fulfills = ["publisher@1"]
publishes = ["packets"]
limits.fuel-per-message = 1_000_000_000_000_000
"#;

/// The process of a server. Dropped, it ends.
#[derive(Debug)]
pub(super) struct Server {
    device: Device,
    addresses: Addresses,
    _dir: Option<TempDir>,
}

#[derive(Clone, Copy, Debug)]
struct Addresses {
    http: SocketAddr,
    streams: SocketAddr,
}

/// How packets come to a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Stream,
    WebSocket,
}

/// Packets that a server publishes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packets {
    pub(super) count: u32,
    pub(super) bytes: u32,
    pub(super) interval: Duration,
}

impl Server {
    /// Main with an echo and a publisher.
    pub(super) fn weir(bench: &Bench) -> Result<Self> {
        Self::main(bench, EXTENSIONS)
    }

    /// Main without extensions.
    pub(super) fn weir_alone(bench: &Bench) -> Result<Self> {
        Self::main(bench, "")
    }

    fn main(bench: &Bench, extensions: &str) -> Result<Self> {
        let dir = tempfile::tempdir().context("cannot make a directory")?;
        let addresses = Addresses::free()?;
        let file = dir.path().join("weir.toml");
        let config = format!(
            "[main]\nplugin-dir = \"{}\"\n\n[gateway]\nlisten = [\"{}\"]\nconnections = 2048\n\
             streams.listen = [\"{}\"]\n{PEER}{extensions}",
            bench.guests.dir().display(),
            addresses.http,
            addresses.streams
        );
        fs::write(&file, config).with_context(|| format!("cannot write `{}`", file.display()))?;
        let device = Device::start(bench.program("weir")?.env("MALLOC_ARENA_MAX", "1").arg(file))?;
        Ok(Self { device, addresses, _dir: Some(dir) })
    }

    pub(super) fn native(bench: &Bench) -> Result<Self> {
        let addresses = Addresses::free()?;
        let both = [addresses.http, addresses.streams].map(|address| address.to_string());
        let device = Device::start(bench.program("native")?.env("MALLOC_ARENA_MAX", "1").args(both))?;
        Ok(Self { device, addresses, _dir: None })
    }

    pub(super) fn process(&self) -> Process {
        self.device.process()
    }

    /// Starts a client that speaks by WebSocket.
    pub(super) fn client(&self, bench: &Bench, what: &str, rest: &[String]) -> Result<Device> {
        Device::start(bench.program(what)?.arg(self.addresses.http.to_string()).args(rest))
    }

    /// Starts a client that subscribes.
    pub(super) fn subscriber(&self, bench: &Bench, what: &str, way: Way, rest: &[String]) -> Result<Device> {
        let (word, address) = match way {
            Way::Stream => ("stream", self.addresses.streams),
            Way::WebSocket => ("websocket", self.addresses.http),
        };
        Device::start(bench.program(what)?.arg(word).arg(address.to_string()).args(rest))
    }

    /// The server's processor time so far.
    pub(super) fn used(&mut self) -> Result<Duration> {
        Ok(Duration::from_nanos(self.device.ask("used")?.parse()?))
    }

    /// The server's processor time, once the server does nothing more.
    pub(super) fn at_rest(&mut self) -> Result<Duration> {
        at_rest(|| self.used())
    }

    /// Has the server publish packets. Returns when each was published, in nanoseconds of the wall clock.
    pub(super) fn publish(&mut self, Packets { count, bytes, interval }: Packets) -> Result<Vec<u64>> {
        self.device.numbers(format_args!("publish {count} {bytes} {}", interval.as_micros()))
    }
}

impl Addresses {
    /// Two free addresses. Nothing else on this machine is likely to take them before the server does.
    fn free() -> Result<Self> {
        let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let (http, streams) = (bind()?, bind()?);
        Ok(Self { http: http.local_addr()?, streams: streams.local_addr()? })
    }
}
