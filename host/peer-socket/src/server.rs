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
use weir_connection::{LINGER, Place, Remote, Strangers};
use weir_host::{
    attached::{Attached, Closed, Part, on_thread},
    peers::Peers,
};
use weir_sockets::{BoundSocket, Opens, SocketError};

use crate::{
    connection::{Close, Connection},
    greeting::{Greeted, greet},
};

/// The name of the peer socket among the parts of Main.
const PART: &str = "peer-socket";

/// The name of the thread, as `ps -L` shows it.
const THREAD_NAME: &str = "weir-peers";

/// The pause after `accept` has failed. Without it, `accept` would fail again and again while file descriptors have run
/// out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The most programs that have proved their names and wait for the worker thread.
const MAX_ARRIVING: usize = 64;

/// A program that has proved its name, on the way to the worker thread.
type Arriving = (net::UnixStream, Greeted);

/// A socket for programs outside Main. Every user can open it; what a program says first decides whether it is served.
/// Nobody answers before [`serve`](Self::serve).
#[derive(Debug)]
pub struct PeerSocket(Arc<BoundSocket>);

impl PeerSocket {
    /// Binds the socket. Takes over the socket of a Main that ended without removing it.
    ///
    /// # Errors
    ///
    /// [`SocketError::InUse`] if another Main answers there. Other errors mean that something else than a socket is at
    /// the path, that no socket can have this path, or that the system refuses.
    pub fn bind(path: &Path) -> Result<Self, SocketError> {
        BoundSocket::bind(path, Opens::Everybody).map(|socket| Self(socket.into()))
    }

    /// Serves programs until Main has stopped everything else. Embedders give it to
    /// [`Builder::attach`](weir_host::Builder::attach). The thread that accepts programs starts again if it ends
    /// before; sessions go on meanwhile.
    pub async fn serve(self, attached: Attached) {
        serve(&self.0, attached, accept).await;
    }
}

async fn serve<A>(
    socket: &Arc<BoundSocket>,
    attached: Attached,
    accept: impl FnOnce(Arc<BoundSocket>, Door) -> A + Clone + Send + 'static,
) where
    A: Future<Output = Result<(), String>>,
{
    // Main waits until this is dropped, so that programs get their last frames.
    let _closed = attached.closed.clone();
    let (arriving, mut arrivals) = mpsc::channel(MAX_ARRIVING);
    let mut accepting = pin!(attached.supervise(PART, move |attached| {
        let part = attached.part(PART);
        let Attached { peers, closed, .. } = attached;
        let (socket, accept) = (socket.clone(), accept.clone());
        let door = Door { peers, part, arriving: arriving.clone(), closed };
        on_thread(THREAD_NAME, move || accept(socket, door))
    }));
    let (mut sessions, mut accepts) = (JoinSet::new(), true);
    loop {
        tokio::select! {
            Some((stream, greeted)) = arrivals.recv() => {
                sessions.spawn(converse(stream, greeted));
            }
            Some(ended) = sessions.join_next() => note_panic(ended),
            () = &mut accepting, if accepts => accepts = false,
            // Main has ended all sessions: each took no longer than `LINGER`.
            else => return,
        }
    }
}

/// What each connection needs to become a session.
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
    // Each program hears that Main ends.
    while greetings.join_next().await.is_some() {}
    Ok(())
}

/// Waits for the hello of a program, and sends the connection on to the worker thread.
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
    Connection::new(stream, greeted).converse().await;
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

/// Tells the program why no session begins.
async fn refuse(mut stream: UnixStream, close: &Close) {
    let mut output = BytesMut::new();
    close.encode(&mut output);
    // The program may have gone, or not read.
    let _gone = timeout(LINGER, stream.write_all(&output)).await;
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tokio::sync::Notify;
    use weir_host::{Main, Service, config::TokenHash, control::PartState};
    use weir_peer::{Options, Peer};

    use super::*;

    const TOKEN: &str = "weir_0123456789abcdef_app";

    #[tokio::test(flavor = "multi_thread")]
    async fn sessions_go_on_while_what_accepts_starts_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("peers.sock");
        let text = format!(
            "main.serves = ['echo@1']\n[peer.'app:a']\ntokens = ['{}']\nwants = ['echo@1']\n",
            TokenHash::of(TOKEN)
        );
        let echo = Service::new("echo@1".parse().unwrap())
            .on("echo".parse().unwrap(), async |request| Ok(request.payload));
        let (socket, end) = (PeerSocket::bind(&path).unwrap(), Arc::new(Notify::new()));
        let accepts = {
            let end = end.clone();
            move |socket, door| async move {
                tokio::select! {
                    ended = accept(socket, door) => ended,
                    () = end.notified() => Err("on purpose".to_owned()),
                }
            }
        };
        let main = Main::builder(weir_host::parse(&text, "weir.toml", dir.path()).unwrap())
            .serve(echo)
            .attach(move |attached| async move { serve(&socket.0, attached, accepts).await })
            .start()
            .await
            .unwrap();
        let connect = || Peer::connect(&path, Options::new("app:a".parse().unwrap()).token(TOKEN.to_owned()));
        let before = connect().await.unwrap();
        end.notify_one();
        let (began, state) = (Instant::now(), || {
            let parts = main.control().parts();
            let part = parts.into_iter().find(|part| part.name == PART).unwrap();
            (part.restarts, part.state, part.reason)
        });
        while state() != (1, PartState::Serving, Some("on purpose".to_owned())) {
            assert!(began.elapsed() < Duration::from_secs(20), "{:?}", state());
            tokio::task::yield_now().await;
        }
        let after = connect().await.unwrap();
        for peer in [before, after] {
            assert_eq!(peer.call("echo@1", "echo", "hello").await, Ok("hello".into()));
            peer.leave().await;
        }
        main.shutdown().await.unwrap();
    }
}
