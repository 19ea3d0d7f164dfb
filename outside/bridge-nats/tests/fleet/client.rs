//! A session of the test at a Main, which may die meanwhile.

use std::{path::Path, sync::Arc, time::Instant};

use tokio::sync::Mutex;
use weir_peer::{Options, Peer};

use super::{
    node::APP,
    process::{LOOK, PATIENCE, until},
};

/// A session that begins anew when it has ended.
#[derive(Clone, Debug)]
pub(super) struct Client {
    socket: Arc<Path>,
    peer: Arc<Mutex<Peer>>,
}

impl Client {
    /// Waits for Main.
    pub(super) async fn connect(socket: &Path) -> Self {
        Self { socket: socket.into(), peer: Arc::new(Mutex::new(begin(socket).await)) }
    }

    /// The session, or else the next one: it waits until Main is back.
    pub(super) async fn peer(&self) -> Peer {
        let mut peer = self.peer.lock().await;
        if peer.ended().is_some() {
            *peer = begin(&self.socket).await;
        }
        peer.clone()
    }

    /// Waits until a contract answers.
    pub(super) async fn until_answers(&self, contract: &str, operation: &str) {
        let what = format!("`{contract}` answers");
        let ask = async || self.peer().await.call_within(PATIENCE, contract, operation, "{}").await.ok();
        until(&what, ask).await;
    }
}

async fn begin(socket: &Path) -> Peer {
    let begun = Instant::now();
    loop {
        let options = Options::new(APP.parse().unwrap()).events(10_000);
        match Peer::connect(socket, options).await {
            Ok(peer) => return peer,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "Main does not let the test in: {error}"),
        }
        tokio::time::sleep(LOOK).await;
    }
}
