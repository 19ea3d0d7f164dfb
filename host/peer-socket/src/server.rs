//! Accepts connections and hears their hellos on a thread of its own, so that strangers' bytes delay no extension. A
//! program that has proved its name moves to the worker thread: there a call crosses no threads, and its session has
//! limits.

use std::{os::unix::net, path::Path, pin::pin, sync::Arc, time::Duration};

use bytes::BytesMut;
use tokio::{
    io::AsyncWriteExt,
    net::{UnixListener, UnixStream},
    sync::mpsc,
    task::{JoinError, JoinSet},
    time::timeout,
};
use weir_connection::{Place, Remote, Strangers};
use weir_host::{
    attached::{Attached, Closed, Part, on_thread},
    peers::Peers,
};
use weir_sockets::{BoundSocket, Opens, SocketError};

use crate::{
    connection::{Close, Connection},
    greeting::{Greeted, greet},
};

/// The peer socket among the parts of Main.
const PART: &str = "peer-socket";

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
pub struct PeerSocket(Arc<BoundSocket>);

impl PeerSocket {
    /// Binds it. Takes over the socket of a Main that ended without removing it.
    ///
    /// # Errors
    ///
    /// [`SocketError::InUse`] if another Main answers there; otherwise the system's refusal.
    pub fn bind(path: &Path) -> Result<Self, SocketError> {
        BoundSocket::bind(path, Opens::Everybody).map(|socket| Self(socket.into()))
    }

    /// Serves programs until Main has stopped everything else. For
    /// [`Builder::attach`](weir_host::Builder::attach). Starts again if it ends before, without the sessions.
    pub async fn serve(self, attached: Attached) {
        attached.supervise(PART, |attached| serve(self.0.clone(), attached)).await;
    }
}

async fn serve(socket: Arc<BoundSocket>, attached: Attached) -> Result<(), String> {
    let part = attached.part(PART);
    let Attached { peers, closed, .. } = attached;
    let (arriving, mut arrivals) = mpsc::channel(MAX_ARRIVING);
    let mut accepting =
        pin!(on_thread(THREAD_NAME, move || accept(socket, Door { peers, part, arriving, closed })));
    let (mut sessions, mut accepts) = (JoinSet::new(), true);
    loop {
        tokio::select! {
            Some((stream, greeted)) = arrivals.recv() => {
                sessions.spawn(converse(stream, greeted));
            }
            Some(ended) = sessions.join_next() => note_panic(ended),
            ended = &mut accepting, if accepts => {
                ended?;
                accepts = false;
            }
            // Main has ended all sessions: each took no longer than `LINGER`.
            else => return Ok(()),
        }
    }
}

/// The way in, for each connection.
#[derive(Clone)]
struct Door {
    peers: Peers,
    part: Part,
    arriving: mpsc::Sender<Arriving>,
    closed: Closed,
}

async fn accept(socket: Arc<BoundSocket>, mut door: Door) -> Result<(), String> {
    let listener = socket.listener.try_clone().and_then(UnixListener::from_std);
    let listener = listener.map_err(|error| format!("it cannot listen: {error}"))?;
    let strangers = Arc::<Strangers>::default();
    let mut greetings = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let place = strangers.enter(source_of(&stream));
                    greetings.spawn(welcome(stream, door.clone(), place));
                }
                Err(error) => {
                    tracing::warn!("cannot accept on the peer socket: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(ended) = greetings.join_next() => note_panic(ended),
            () = door.closed.wait() => break,
        }
    }
    drop(listener);
    // Each hears that Main ends.
    while greetings.join_next().await.is_some() {}
    Ok(())
}

/// Hears the name of a program, and sends it on to the worker thread.
async fn welcome(mut stream: UnixStream, door: Door, place: Place) {
    let Door { peers, part, arriving, mut closed } = door;
    let greeted = match greet(&mut stream, &peers, place, &mut closed).await {
        Ok(Some(greeted)) => greeted,
        Ok(None) => return,
        Err(close) => {
            close.count(&part);
            return refuse(stream, &close).await;
        }
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
    connection.finish(close).await;
}

fn source_of(stream: &UnixStream) -> Remote {
    let credentials = stream.peer_cred().ok();
    let uid = credentials.map(|credentials| credentials.uid());
    Remote::process(uid, credentials.and_then(|credentials| credentials.pid()))
}

fn note_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!("a connection of a peer has panicked: {error}");
    }
}

/// Says why no session begins.
async fn refuse(mut stream: UnixStream, close: &Close) {
    let mut output = BytesMut::new();
    close.encode(&mut output);
    // The program may have gone, or not read.
    let _gone = timeout(LINGER, stream.write_all(&output)).await;
}
