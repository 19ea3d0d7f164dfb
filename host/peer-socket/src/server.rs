//! Accepts connections on a thread of its own, until Main has stopped everything else.

use std::{io, path::Path, sync::Arc, thread, time::Duration};

use bytes::BytesMut;
use tokio::{
    io::AsyncWriteExt,
    net::{UnixListener, UnixStream},
    sync::oneshot,
    task::JoinSet,
    time::timeout,
};
use weir_host::{
    attached::{Attached, Closed},
    peers::Peers,
};
use weir_sockets::{BoundSocket, Opens, SocketError};

use crate::{
    connection::{Close, Connection},
    greeting::{Place, Silent, greet},
};

/// As `ps -L` shows it.
const THREAD_NAME: &str = "weir-peers";

/// Without a pause, `accept` fails again and again, as when file descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time for the last bytes to a program.
const LINGER: Duration = Duration::from_millis(500);

/// A socket for programs outside Main. Every user can open it; what a program says first decides. Nobody answers yet.
#[derive(Debug)]
pub struct PeerSocket(BoundSocket);

impl PeerSocket {
    /// Binds it. Takes over the socket of a Main that ended without removing it.
    ///
    /// # Errors
    ///
    /// [`SocketError::InUse`] if another Main answers there; otherwise the system's refusal.
    pub fn bind(path: &Path) -> Result<Self, SocketError> {
        BoundSocket::bind(path, Opens::Everybody).map(Self)
    }

    /// Serves programs on a thread of its own until Main has stopped everything else. For
    /// [`Builder::attach`](weir_host::Builder::attach).
    pub async fn serve(self, attached: Attached) {
        let Attached { peers, closed, .. } = attached;
        let (ending, ended) = oneshot::channel::<()>();
        let serve = move || {
            // Dropped last, also by a panic.
            let _ending = ending;
            if let Err(error) = serve(self.0, peers, closed) {
                tracing::error!("cannot serve the peer socket: {error}");
            }
        };
        match thread::Builder::new().name(THREAD_NAME.to_owned()).spawn(serve) {
            // Fails when the thread has ended: nothing is ever sent.
            Ok(_thread) => drop(ended.await),
            Err(error) => tracing::error!("cannot serve the peer socket: {error}"),
        }
    }
}

fn serve(socket: BoundSocket, peers: Peers, closed: Closed) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    runtime.block_on(accept(socket, peers, closed))
}

async fn accept(socket: BoundSocket, peers: Peers, mut closed: Closed) -> io::Result<()> {
    let BoundSocket { listener, held } = socket;
    let listener = UnixListener::from_std(listener)?;
    let silent = Arc::<Silent>::default();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(converse(stream, peers.clone(), silent.enter(), closed.clone()));
                }
                Err(error) => {
                    tracing::warn!("cannot accept on the peer socket: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended {
                    tracing::error!("a connection of a peer has panicked: {error}");
                }
            }
            () = closed.wait() => break,
        }
    }
    drop((listener, held));
    // Main has ended all sessions, so each takes no longer than `LINGER`.
    while connections.join_next().await.is_some() {}
    Ok(())
}

async fn converse(mut stream: UnixStream, peers: Peers, place: Place, mut closed: Closed) {
    let greeted = match greet(&mut stream, &peers, place, &mut closed).await {
        Ok(Some(greeted)) => greeted,
        Ok(None) => return,
        Err(close) => return finish(stream, BytesMut::new(), Some(close)).await,
    };
    // Not held while it runs: Main would wait for it.
    drop((peers, closed));
    let mut connection = Connection::new(stream, greeted);
    let close = connection.run().await;
    let (stream, output) = connection.into_rest();
    finish(stream, output, close).await;
}

/// Sends what is left, and why the session ends.
async fn finish(mut stream: UnixStream, mut output: BytesMut, close: Option<Close>) {
    let Some(close) = close else { return };
    close.encode(&mut output);
    // The program may have gone, or not read.
    let _gone = timeout(LINGER, stream.write_all(&output)).await;
}
