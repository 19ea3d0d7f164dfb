//! One connection, by TCP or by a Unix socket, and the addresses where connections come in.

use std::{
    fmt, io,
    io::IoSlice,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use rustix::net::sockopt::{set_socket_keepalive, set_tcp_keepidle, set_tcp_keepintvl};
#[cfg(target_os = "linux")]
use socket2::SockRef;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
};
use weir_connection::{Patience, Remote};
use weir_sockets::{BoundSocket, Opens, make_room, write_now};

use crate::{GatewayError, Listen};

/// The kernel probes a TCP connection that is idle for this long, then six times as often. Linux gives up after nine
/// probes.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// Most bytes that wait in the system to be sent on a TCP connection. Bytes that were sent do not count, whether the
/// other end has read them or not. The rest of the system's buffer, at least as much again, is left for the last words.
#[cfg(target_os = "linux")]
const UNSENT: u32 = 128 * 1024;

/// A connection. A type that wraps another connection keeps the default methods, which do nothing: only a socket can do
/// more.
pub(crate) trait Io: AsyncRead + AsyncWrite + fmt::Debug + Send + Unpin {
    /// Has the system take more bytes, though the other end does not read.
    fn make_room(&self) {}

    /// Writes what the system takes now, and returns how many bytes. For a socket that may take some bytes though the
    /// system does not call it writable.
    fn write_now(&self, _bytes: &[u8]) -> usize {
        0
    }
}

impl Io for TcpStream {
    fn make_room(&self) {
        #[cfg(target_os = "linux")]
        let _without = SockRef::from(self).set_tcp_notsent_lowat(u32::MAX >> 1);
        make_room(self);
    }
}

impl Io for UnixStream {
    fn make_room(&self) {
        make_room(self);
    }

    fn write_now(&self, bytes: &[u8]) -> usize {
        write_now(self, bytes)
    }
}

/// What a connection and its WebSocket tell each other, since TLS and HTTP are between them: how much was written,
/// whether the connection is a WebSocket, and whether the last words are written.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    written: AtomicU64,
    is_upgraded: AtomicBool,
    is_ending: AtomicBool,
}

impl Flow {
    /// Bytes that the system took for the other end.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Notes that the system took so many bytes.
    pub(crate) fn wrote(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// From now on the WebSocket decides how long the other end may read nothing.
    pub(crate) fn upgrade(&self) {
        self.is_upgraded.store(true, Ordering::Relaxed);
    }

    /// What is written from now on are the last words: the system makes room for them.
    pub(crate) fn make_room(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }
}

/// A connection of HTTP, which fails once the other end has read nothing for too long, unless it has become a
/// WebSocket.
#[derive(Debug)]
struct Watched {
    io: Box<dyn Io>,
    flow: Arc<Flow>,
    patience: Patience,
    /// Whether the system was told to make room for last words.
    ends: bool,
}

impl Watched {
    /// Called before a write. Makes room for last words here, since TLS and HTTP hide the socket from everyone else.
    fn is_written(&mut self) {
        if !self.ends && self.flow.is_ending.load(Ordering::Relaxed) {
            self.ends = true;
            self.io.make_room();
        }
    }

    /// Notes the outcome of a write. One that waits fails once the other end has read nothing for too long.
    fn wrote(
        &mut self,
        wrote: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(wrote) = wrote {
            self.patience.renew();
            let bytes = wrote.as_ref().map_or(0, |bytes| *bytes as u64);
            self.flow.wrote(bytes);
            return Poll::Ready(wrote);
        }
        if self.flow.is_upgraded.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        ready!(self.patience.poll_over(0, context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Io for Watched {}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.is_written();
        let mut wrote = Pin::new(&mut self.io).poll_write(context, bytes);
        if self.ends
            && wrote.is_pending()
            && let written @ 1.. = self.io.write_now(bytes)
        {
            wrote = Poll::Ready(Ok(written));
        }
        self.wrote(wrote, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.is_written();
        let wrote = Pin::new(&mut self.io).poll_write_vectored(context, pieces);
        self.wrote(wrote, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

/// A connection that was accepted.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) io: Box<dyn Io>,
    /// The user at the other end of a Unix socket, as far as the system says.
    pub(crate) uid: Option<u32>,
    pub(crate) is_unix: bool,
    pub(crate) source: Remote,
    /// Whether the client must begin with TLS.
    pub(crate) wants_tls: bool,
    /// Whether the client has chosen HTTP/2.
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "clients choose it within TLS"))]
    pub(crate) is_http2: bool,
}

/// An address that was bound. Nobody accepts connections there yet.
#[derive(Debug)]
pub(crate) enum Bound {
    Tcp { listener: std::net::TcpListener, is_loopback: bool },
    Unix(BoundSocket),
}

/// An address that the gateway listens on.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp { listener: TcpListener, is_loopback: bool },
    Unix(UnixListener),
}

impl Bound {
    pub(crate) fn new(listen: &Listen) -> Result<Self, GatewayError> {
        match listen {
            Listen::Unix(path) => Ok(Self::Unix(BoundSocket::bind(path, Opens::Everybody)?)),
            Listen::Tcp(address) => {
                let failed = |source| GatewayError::Listen { address: *address, source };
                let listener = std::net::TcpListener::bind(address).map_err(failed)?;
                listener.set_nonblocking(true).map_err(failed)?;
                Ok(Self::Tcp { listener, is_loopback: listen.is_loopback() })
            }
        }
    }

    /// Makes the listener, within a runtime. Connections that came before wait in the backlog.
    pub(crate) fn listener(&self) -> io::Result<Listener> {
        match self {
            Self::Tcp { listener, is_loopback } => {
                let listener = TcpListener::from_std(listener.try_clone()?)?;
                Ok(Listener::Tcp { listener, is_loopback: *is_loopback })
            }
            Self::Unix(bound) => Ok(Listener::Unix(UnixListener::from_std(bound.listener.try_clone()?)?)),
        }
    }
}

impl Listener {
    /// The address in the form in which the operator writes it. For port 0 it has the port that the system chose.
    pub(crate) fn address(&self) -> io::Result<String> {
        match self {
            Self::Tcp { listener, .. } => Ok(listener.local_addr()?.to_string()),
            Self::Unix(listener) => {
                let address = listener.local_addr()?;
                let path = address.as_pathname().map(|path| path.display().to_string());
                Ok(format!("unix:{}", path.unwrap_or_default()))
            }
        }
    }

    pub(crate) async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp { listener, is_loopback } => {
                let (stream, from) = listener.accept().await?;
                Ok(Stream::tcp(stream, Remote::Address(from.ip()), !is_loopback))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok(Stream::unix(stream))
            }
        }
    }
}

impl Stream {
    /// Makes the connection fail once the other end has read nothing for as long as `patience`.
    pub(crate) fn watched(self, flow: Arc<Flow>, patience: Duration) -> Self {
        let io = Box::new(Watched { io: self.io, flow, patience: Patience::new(patience), ends: false });
        Self { io, ..self }
    }

    fn tcp(stream: TcpStream, source: Remote, wants_tls: bool) -> Self {
        // The gateway writes what waits in one piece, so a system that waits for more would only delay it.
        let _without = stream.set_nodelay(true);
        #[cfg(target_os = "linux")]
        let _without = SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT);
        // The kernel finds out about a machine that has vanished. The gateway need not wake for that.
        let _without = set_socket_keepalive(&stream, true)
            .and_then(|()| set_tcp_keepidle(&stream, KEEPALIVE))
            .and_then(|()| set_tcp_keepintvl(&stream, KEEPALIVE / 6));
        Self { io: Box::new(stream), uid: None, is_unix: false, source, wants_tls, is_http2: false }
    }

    fn unix(stream: UnixStream) -> Self {
        let credentials = stream.peer_cred().ok();
        let uid = credentials.map(|credentials| credentials.uid());
        let source = Remote::process(uid, credentials.and_then(|credentials| credentials.pid()));
        Self { io: Box::new(stream), uid, is_unix: true, source, wants_tls: false, is_http2: false }
    }
}
