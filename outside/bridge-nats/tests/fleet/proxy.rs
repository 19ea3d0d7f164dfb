//! A network that can be cut: a TCP proxy in front of the server.

use std::net::SocketAddr;

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

/// The cable of one node.
#[derive(Debug)]
pub(super) struct Proxy {
    address: SocketAddr,
    state: watch::Sender<Cable>,
    _task: JoinSet<()>,
}

/// What a cable does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cable {
    Whole,
    /// Nothing passes, and nobody is told.
    Silent,
    /// All connections break, and new ones are refused.
    Cut,
}

impl Proxy {
    pub(super) async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (state, seen) = watch::channel(Cable::Whole);
        let mut task = JoinSet::new();
        task.spawn(accept(listener, server, seen));
        Self { address, state, _task: task }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn set(&self, cable: Cable) {
        self.state.send_replace(cable);
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, state: watch::Receiver<Cable>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        connections.spawn(carry(stream, server, state.clone()));
    }
}

/// Carries bytes as long as the cable is whole. A connection that was silent is not whole again: it breaks.
async fn carry(mut stream: TcpStream, server: SocketAddr, mut state: watch::Receiver<Cable>) {
    if *state.borrow_and_update() == Cable::Whole {
        let Ok(mut server) = TcpStream::connect(server).await else { return };
        tokio::select! {
            _ = copy_bidirectional(&mut stream, &mut server) => return,
            _ = state.changed() => {}
        }
    }
    // Open, and nothing passes.
    while *state.borrow_and_update() == Cable::Silent && state.changed().await.is_ok() {}
}
