//! Accepts connections and hears their hellos on a thread of its own, so that strangers' bytes delay no extension. A
//! program that has proved its name moves to the worker thread: there a call crosses no threads, and its session has
//! limits.

use std::{io, os::unix::net, path::Path, sync::Arc, thread, time::Duration};

use bytes::BytesMut;
use tokio::{
    io::AsyncWriteExt,
    net::{UnixListener, UnixStream},
    sync::mpsc,
    task::{JoinError, JoinSet},
    time::timeout,
};
use weir_connection::{Place, Source, Strangers};
use weir_host::{
    attached::{Attached, Closed},
    peers::Peers,
};
use weir_sockets::{BoundSocket, Opens, SocketError};

use crate::{
    connection::{Close, Connection},
    greeting::{Greeted, greet},
};

/// As `ps -L` shows it.
const THREAD_NAME: &str = "weir-peers";

/// Without a pause, `accept` fails again and again, as when file descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time for the last bytes to a program.
const LINGER: Duration = Duration::from_millis(500);

/// Programs that have proved their names and wait for the worker thread.
const MAX_ARRIVING: usize = 64;

/// A program that has proved its name, on the way to the worker thread.
type Arriving = (net::UnixStream, Greeted);

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

    /// Serves programs until Main has stopped everything else. For
    /// [`Builder::attach`](weir_host::Builder::attach).
    pub async fn serve(self, attached: Attached) {
        let Attached { peers, closed, .. } = attached;
        let (arriving, mut arrivals) = mpsc::channel(MAX_ARRIVING);
        // Main waits for it, so that each program hears why its session ends.
        let _main_waits = closed.clone();
        let serve = move || {
            if let Err(error) = serve(self.0, peers, arriving, closed) {
                tracing::error!("cannot serve the peer socket: {error}");
            }
        };
        if let Err(error) = thread::Builder::new().name(THREAD_NAME.to_owned()).spawn(serve) {
            tracing::error!("cannot serve the peer socket: {error}");
        }
        let mut sessions = JoinSet::new();
        loop {
            tokio::select! {
                Some((stream, greeted)) = arrivals.recv() => {
                    sessions.spawn(converse(stream, greeted));
                }
                Some(ended) = sessions.join_next() => note_panic(ended),
                // The thread has ended, and Main has ended all sessions: each takes no longer than `LINGER`.
                else => return,
            }
        }
    }
}

fn serve(
    socket: BoundSocket,
    peers: Peers,
    arriving: mpsc::Sender<Arriving>,
    closed: Closed,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    runtime.block_on(accept(socket, peers, arriving, closed))
}

async fn accept(
    socket: BoundSocket,
    peers: Peers,
    arriving: mpsc::Sender<Arriving>,
    mut closed: Closed,
) -> io::Result<()> {
    let BoundSocket { listener, held } = socket;
    let listener = UnixListener::from_std(listener)?;
    let strangers = Arc::<Strangers>::default();
    let mut greetings = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let (place, arriving) = (strangers.enter(source_of(&stream)), arriving.clone());
                    greetings.spawn(welcome(stream, peers.clone(), place, arriving, closed.clone()));
                }
                Err(error) => {
                    tracing::warn!("cannot accept on the peer socket: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(ended) = greetings.join_next() => note_panic(ended),
            () = closed.wait() => break,
        }
    }
    drop((listener, held));
    // Each hears that Main ends.
    while greetings.join_next().await.is_some() {}
    Ok(())
}

/// Hears the name of a program, and sends it on to the worker thread.
async fn welcome(
    mut stream: UnixStream,
    peers: Peers,
    place: Place,
    arriving: mpsc::Sender<Arriving>,
    mut closed: Closed,
) {
    let greeted = match greet(&mut stream, &peers, place, &mut closed).await {
        Ok(Some(greeted)) => greeted,
        Ok(None) => return,
        Err(close) => return finish(stream, BytesMut::new(), Some(close)).await,
    };
    match stream.into_std() {
        // Fails once Main has ended: then the session ends here.
        Ok(stream) => drop(arriving.send((stream, greeted)).await),
        Err(error) => tracing::warn!("a connection of a peer broke: {error}"),
    }
}

async fn converse(stream: net::UnixStream, greeted: Greeted) {
    let stream = match UnixStream::from_std(stream) {
        Ok(stream) => stream,
        Err(error) => return tracing::warn!("a connection of a peer broke: {error}"),
    };
    let mut connection = Connection::new(stream, greeted);
    let close = connection.run().await;
    let (stream, output) = connection.into_rest();
    finish(stream, output, close).await;
}

fn source_of(stream: &UnixStream) -> Source {
    let credentials = stream.peer_cred().ok();
    let uid = credentials.map(|credentials| credentials.uid());
    Source::process(uid, credentials.and_then(|credentials| credentials.pid()))
}

fn note_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!("a connection of a peer has panicked: {error}");
    }
}

/// Sends what is left, and why the session ends.
async fn finish(mut stream: UnixStream, mut output: BytesMut, close: Option<Close>) {
    let Some(close) = close else { return };
    close.encode(&mut output);
    // The program may have gone, or not read.
    let _gone = timeout(LINGER, stream.write_all(&output)).await;
}
