//! Main with a peer socket, an echo, and an extension that calls a program outside.

use std::path::{Path, PathBuf};

use anyhow::Result;
use weir_host::{Config, Main, MainConfig, config::CpuShare, peers::PeerConfig};
use weir_peer_socket::PeerSocket;

use super::{APP, Requests, SIDECAR, uid};
use crate::scenarios::{Bench, embedder::Embedder};

#[derive(Debug)]
pub(super) struct Weir {
    embedder: Embedder,
    socket: PathBuf,
}

impl Weir {
    pub(super) fn start(bench: &Bench, socket: &Path) -> Result<Self> {
        let (sidecar, contract) = SIDECAR;
        let mut echo = bench.guests.echo()?;
        echo.limits.cpu_share = CpuShare::WHOLE;
        let mut caller = bench.guests.small("caller", "caller")?;
        let calls = [("serves", "relay@1"), ("calls", contract)];
        caller.config.extend(calls.map(|(key, value)| (key.to_owned(), value.to_owned())));
        caller.fulfills = vec!["relay@1".parse()?];
        caller.wants = vec![contract.parse()?];
        let mut config = Config::new(MainConfig::default(), vec![echo, caller]);
        let mut app = peer(APP)?;
        app.wants = vec!["echo@1".parse()?];
        let mut sidecar = peer(sidecar)?;
        sidecar.fulfills = vec![contract.parse()?];
        config.peers = vec![app, sidecar];
        let peers = PeerSocket::bind(socket)?;
        let builder = Main::builder(config).attach(|attached| peers.serve(attached));
        Ok(Self { embedder: Embedder::start(builder)?, socket: socket.to_owned() })
    }

    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// The extension calls the program outside so often.
    pub(super) fn call_sidecar(&self, requests: Requests) -> Result<()> {
        self.embedder.ask("relay@1", "go", &[requests.number, requests.size]).map(drop)
    }
}

/// A name that this user proves, with no rate to wait for.
fn peer(name: &str) -> Result<PeerConfig> {
    let mut peer = PeerConfig::new(name.parse()?);
    peer.uid = Some(uid());
    peer.limits.message_rate = 1_000_000;
    Ok(peer)
}
