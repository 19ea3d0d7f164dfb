//! From a path to a session: what a peer says of itself, the hello and the welcome.

use std::{fmt, io, path::Path, sync::Arc, time::Duration};

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time,
};
use weir_names::PeerName;

use crate::{
    Peer,
    frame::{
        FrameError, FromMain, FromPeer, HELLO_MAX, Hello, OLDEST_VERSION, READ_SIZE, VERSION, next_frame,
    },
    session::{Limits, Session},
};

/// Time to connect and to get the welcome.
const WELCOME_TIME: Duration = Duration::from_secs(10);

/// The pause between two attempts to connect while the socket's backlog is full.
const PAUSE: Duration = Duration::from_millis(10);

/// Most bytes of a token.
const TOKEN_MAX: usize = 255;

/// What a peer says of itself when it connects.
#[derive(Clone)]
pub struct Options {
    name: PeerName,
    token: Option<String>,
    pub(crate) requests: u32,
    pub(crate) events: u32,
}

impl Options {
    /// The peer of that name. Without a token Main knows it by the user that the program runs as.
    #[must_use]
    pub fn new(name: PeerName) -> Self {
        Self { name, token: None, requests: 64, events: 256 }
    }

    /// The token that `weir peers token` printed. At most 255 bytes. An empty token counts as none.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Most requests that wait or are in hand, over all contracts that the session serves. 64 by default; with 0 none
    /// come.
    #[must_use]
    pub fn requests(mut self, requests: u32) -> Self {
        self.requests = requests;
        self
    }

    /// Most events that have come and not been read, over all subscriptions of the session. 256 by default; with 0 none
    /// come. Main keeps further ones, by the policy of their subscription.
    #[must_use]
    pub fn events(mut self, events: u32) -> Self {
        self.events = events;
        self
    }
}

/// Does not show the token.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("name", &self.name)
            .field("requests", &self.requests)
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

/// Why a session did not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The socket cannot be opened, read or written, or Main closed it without a word. In [`blocking`](crate::blocking)
    /// also: no thread can be started.
    #[error("the socket of Main cannot be used")]
    Io(#[from] io::Error),
    /// Main refused the peer.
    #[error("refused with `{code}`: {text}")]
    Refused {
        /// A code of [`frame::close`](crate::frame::close), such as `denied` or `busy`.
        code: String,
        /// The reason, for people.
        text: String,
    },
    /// Main chose a version that the client does not speak.
    #[error("Main chose version {0} of the protocol, and the client speaks {OLDEST_VERSION} to {VERSION}")]
    Version(u16),
    /// The other side of the socket does not speak the protocol.
    #[error("the other side of the socket does not speak the protocol: {0}")]
    Protocol(String),
    /// No welcome came within 10 s.
    #[error("Main did not answer in time")]
    Timeout,
    /// The token is longer than 255 bytes.
    #[error("the token has over {TOKEN_MAX} bytes")]
    Token,
}

impl From<FrameError> for ConnectError {
    fn from(error: FrameError) -> Self {
        Self::Protocol(error.to_string())
    }
}

/// Connects, and starts the task that drives the session on the current runtime.
pub(crate) async fn connect(path: &Path, options: &Options) -> Result<Peer, ConnectError> {
    if options.token.as_ref().is_some_and(|token| token.len() > TOKEN_MAX) {
        return Err(ConnectError::Token);
    }
    let shaken = time::timeout(WELCOME_TIME, shake(path, options)).await;
    let (stream, buffer, limits) = shaken.map_err(|_| ConnectError::Timeout)??;
    let session = Arc::new(Session::new(options, limits));
    tokio::spawn(session.clone().run(stream, buffer));
    Ok(Peer::new(session))
}

/// Connects, sends the hello and reads the welcome. What came after the welcome is in the buffer.
async fn shake(path: &Path, options: &Options) -> Result<(UnixStream, BytesMut, Limits), ConnectError> {
    let mut stream = loop {
        match UnixStream::connect(path).await {
            // The backlog is full, and a Unix socket does not wait for room there.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => time::sleep(PAUSE).await,
            connected => break connected?,
        }
    };
    let mut buffer = BytesMut::with_capacity(READ_SIZE);
    let hello = Hello {
        oldest: OLDEST_VERSION,
        newest: VERSION,
        requests: options.requests,
        events: options.events,
        name: options.name.as_str(),
        token: options.token.as_deref().filter(|token| !token.is_empty()),
    };
    FromPeer::Hello(hello).encode(&mut buffer);
    // If Main has closed the connection already, its reason can still be read.
    let written = stream.write_all(&buffer).await;
    buffer.clear();
    let frame = loop {
        if let Some(frame) = next_frame(&mut buffer, HELLO_MAX)? {
            break frame;
        }
        if stream.read_buf(&mut buffer).await? == 0 {
            written?;
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
    };
    match FromMain::decode(&frame)? {
        FromMain::Welcome {
            version: version @ OLDEST_VERSION..=VERSION,
            session,
            message_size,
            in_flight,
            subscriptions,
        } => Ok((stream, buffer, Limits { version, session, message_size, in_flight, subscriptions })),
        FromMain::Welcome { version, .. } => Err(ConnectError::Version(version)),
        FromMain::Close { code, text } => {
            Err(ConnectError::Refused { code: code.to_owned(), text: text.to_owned() })
        }
        other => Err(ConnectError::Protocol(format!("{} in place of a welcome", other.name()))),
    }
}
