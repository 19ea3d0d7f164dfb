//! The first frames of a connection: which program it is, before it costs anything.

use std::time::Duration;

use bytes::BytesMut;
use tokio::{io::AsyncReadExt, net::UnixStream, time::timeout};
use weir_connection::Place;
use weir_host::{
    attached::Closed,
    peers::{PeerError, Peers, Proof, Session},
};
use weir_peer::frame::{self, FromPeer, HELLO_MAX, OLDEST_VERSION, VERSION, next_frame};

use crate::connection::Close;

/// Time for the hello.
const PATIENCE: Duration = Duration::from_secs(5);

/// A session, and what the program said of itself.
#[derive(Debug)]
pub(crate) struct Greeted {
    pub(crate) session: Session,
    /// The version of the protocol.
    pub(crate) version: u16,
    /// The most requests that the program takes before it answers one.
    pub(crate) requests: u32,
    /// The events that the program takes before it asks for more.
    pub(crate) events: u32,
    /// The bytes that came after the hello.
    pub(crate) rest: BytesMut,
}

/// Waits for the hello, and begins a session for it. `None` if the program has gone.
pub(crate) async fn greet(
    stream: &mut UnixStream,
    peers: &Peers,
    mut place: Place,
    closed: &mut Closed,
) -> Result<Option<Greeted>, Close> {
    let mut input = BytesMut::new();
    let hello = tokio::select! {
        biased;
        hello = timeout(PATIENCE, hello(stream, &mut input)) => hello,
        () = place.taken() => {
            return Err(Close::new(frame::close::BUSY, "too many connections have not said hello"));
        }
        () = closed.wait() => return Err(Close::new(frame::close::STOPPING, "main ends")),
    };
    let hello = match hello {
        Ok(Ok(Some(hello))) => hello,
        Ok(Ok(None)) => return Ok(None),
        Ok(Err(close)) => return Err(close),
        Err(_elapsed) => return Err(Close::protocol("no hello came within 5 s")),
    };
    let FromPeer::Hello(hello) = FromPeer::decode(&hello).map_err(Close::protocol)? else {
        return Err(Close::protocol("the first frame is not HELLO"));
    };
    let version = hello.newest.min(VERSION);
    if version < hello.oldest.max(OLDEST_VERSION) {
        let (oldest, newest) = (hello.oldest, hello.newest);
        let text = format!(
            "main speaks versions {OLDEST_VERSION} to {VERSION} of the protocol, and the peer {oldest} to {newest}"
        );
        return Err(Close::new(frame::close::VERSION, text));
    }
    let proof = match hello.token {
        Some(token) => Proof::Token(token),
        None => Proof::Uid(uid_of(stream)?),
    };
    let session = peers.admit(hello.name, proof).map_err(|error| {
        let code = match error {
            PeerError::TooMany { .. } => frame::close::BUSY,
            PeerError::Stopping => frame::close::STOPPING,
            _ => frame::close::DENIED,
        };
        Close::new(code, error.to_string())
    })?;
    let (requests, events) = (hello.requests, hello.events);
    Ok(Some(Greeted { session, version, requests, events, rest: input }))
}

async fn hello(stream: &mut UnixStream, input: &mut BytesMut) -> Result<Option<bytes::Bytes>, Close> {
    loop {
        if let Some(frame) = next_frame(input, HELLO_MAX).map_err(Close::protocol)? {
            return Ok(Some(frame));
        }
        input.reserve(HELLO_MAX);
        match stream.read_buf(input).await {
            Ok(0) | Err(_) => return Ok(None),
            Ok(_) => {}
        }
    }
}

fn uid_of(stream: &UnixStream) -> Result<u32, Close> {
    let credentials = stream.peer_cred();
    credentials.map(|credentials| credentials.uid()).map_err(|error| {
        Close::new(frame::close::DENIED, format!("the system does not say which user this is: {error}"))
    })
}
