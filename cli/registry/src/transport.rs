//! One request over HTTP/1, on a connection of its own. Headers, bodies and waits are bounded.

use std::{
    fs::File,
    io::Read,
    path::PathBuf,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header, response::Parts};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    task::JoinHandle,
    time::timeout,
};
use tokio_rustls::{TlsConnector, rustls::pki_types::ServerName};

use crate::{error::RegistryError, url::Url};

/// Time for a connection, with its TLS.
const CONNECT: Duration = Duration::from_secs(20);

/// Most bytes of all headers of an answer.
const HEADERS_SIZE: usize = 64 << 10;

/// Most headers of an answer.
const HEADERS: usize = 128;

/// Bytes of a file that are sent at once.
const PIECE: usize = 64 << 10;

const AGENT: &str = concat!("weir-registry/", env!("CARGO_PKG_VERSION"));

/// What a request brings.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Nothing,
    Bytes {
        bytes: Bytes,
        media_type: &'static str,
    },
    /// So many bytes of a file.
    File {
        path: PathBuf,
        size: u64,
    },
}

/// Makes requests.
pub(crate) struct Transport {
    tls: TlsConnector,
    /// How long the other end may neither send nor take anything.
    idle: Duration,
}

/// An answer whose body is still to come. Dropped, its connection is closed.
pub(crate) struct Answer {
    pub(crate) url: Url,
    parts: Parts,
    body: Incoming,
    idle: Duration,
    _driver: Driver,
}

impl Transport {
    pub(crate) fn new(tls: TlsConnector, idle: Duration) -> Self {
        Self { tls, idle }
    }

    /// Sends a request, and waits for the head of its answer.
    pub(crate) async fn exchange(
        &self,
        method: &Method,
        url: &Url,
        headers: HeaderMap,
        content: &Content,
    ) -> Result<Answer, RegistryError> {
        let host = || url.origin.authority();
        let unreachable = |why: String| RegistryError::Unreachable { host: host(), why };
        let connected = timeout(CONNECT, self.connect(url)).await;
        let (mut requests, driver) = connected.map_err(|_late| {
            unreachable(format!("no connection within {}", humantime::format_duration(CONNECT)))
        })??;

        let progress = Arc::new(AtomicU64::new(0));
        let sent = Sent::new(content, progress.clone()).map_err(|error| RegistryError::Broken {
            host: host(),
            what: format!("cannot have it: {error}"),
        })?;
        let mut request = Request::builder().method(method).uri(&url.target).body(sent);
        if let Ok(request) = &mut request {
            *request.headers_mut() = headers;
            let value = |text: &str| HeaderValue::from_str(text);
            if let Ok(value) = value(&host()) {
                request.headers_mut().insert(header::HOST, value);
            }
            request.headers_mut().insert(header::USER_AGENT, HeaderValue::from_static(AGENT));
            match content {
                Content::Nothing => {}
                Content::Bytes { media_type, .. } => {
                    request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
                }
                Content::File { .. } => {
                    let bytes = HeaderValue::from_static("application/octet-stream");
                    request.headers_mut().insert(header::CONTENT_TYPE, bytes);
                }
            }
        }
        let request = request.map_err(|error| unreachable(error.to_string()))?;

        let mut answer = std::pin::pin!(requests.send_request(request));
        let answer = loop {
            let before = progress.load(Ordering::Relaxed);
            match timeout(self.idle, &mut answer).await {
                Ok(answer) => break answer,
                Err(_idle) if progress.load(Ordering::Relaxed) > before => {}
                Err(_idle) => {
                    let what = "did not answer within";
                    return Err(RegistryError::Idle { host: host(), what, time: self.idle });
                }
            }
        };
        let answer = answer.map_err(|error| RegistryError::Broken {
            host: host(),
            what: format!("did not answer as a registry does: {}", chain(&error)),
        })?;
        let (parts, body) = answer.into_parts();
        Ok(Answer { url: url.clone(), parts, body, idle: self.idle, _driver: driver })
    }

    async fn connect(&self, url: &Url) -> Result<(http1::SendRequest<Sent>, Driver), RegistryError> {
        let origin = &url.origin;
        let unreachable = |why: String| RegistryError::Unreachable { host: origin.authority(), why };
        let stream = TcpStream::connect((origin.host.as_str(), origin.port)).await;
        let stream = stream.map_err(|error| unreachable(error.to_string()))?;
        if !origin.is_tls {
            return handshake(stream).await.map_err(|error| unreachable(chain(&error)));
        }
        let name =
            ServerName::try_from(origin.host.clone()).map_err(|error| unreachable(error.to_string()))?;
        let stream = self.tls.connect(name, stream).await;
        let stream = stream.map_err(|error| unreachable(format!("no TLS: {error}")))?;
        handshake(stream).await.map_err(|error| unreachable(chain(&error)))
    }
}

async fn handshake(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> hyper::Result<(http1::SendRequest<Sent>, Driver)> {
    let (requests, connection) = http1::Builder::new()
        .max_buf_size(HEADERS_SIZE)
        .max_headers(HEADERS)
        .handshake(TokioIo::new(stream))
        .await?;
    // Errors of the connection also reach its request.
    let driver = tokio::spawn(async move { drop(connection.await) });
    Ok((requests, Driver(driver)))
}

/// The task of a connection.
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Answer {
    pub(crate) fn status(&self) -> StatusCode {
        self.parts.status
    }

    /// A header as text, if it is there once and is text.
    pub(crate) fn header(&self, name: impl header::AsHeaderName) -> Option<&str> {
        self.parts.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// An error that names what the other end did.
    pub(crate) fn broken(&self, what: impl Into<String>) -> RegistryError {
        RegistryError::Broken { host: self.url.origin.authority(), what: what.into() }
    }

    /// The next piece of the body.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, RegistryError> {
        loop {
            let Ok(frame) = timeout(self.idle, self.body.frame()).await else {
                let host = self.url.origin.authority();
                return Err(RegistryError::Idle { host, what: "sent nothing for", time: self.idle });
            };
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|error| self.broken(format!("broke off: {}", chain(&error))))?;
            if let Ok(piece) = frame.into_data() {
                return Ok(Some(piece));
            }
        }
    }

    /// The whole body, if it has no more bytes than that.
    pub(crate) async fn read(&mut self, what: &str, max: u64) -> Result<Bytes, RegistryError> {
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        let mut whole = BytesMut::new();
        while let Some(piece) = self.next().await? {
            if piece.len() > max - whole.len() {
                return Err(self.broken(format!("sent {what} of more than {max} bytes")));
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    }
}

/// The body of a request.
enum Sent {
    Bytes(Option<Bytes>),
    File { file: File, left: u64, progress: Arc<AtomicU64> },
}

impl Sent {
    fn new(content: &Content, progress: Arc<AtomicU64>) -> std::io::Result<Self> {
        Ok(match content {
            Content::Nothing => Self::Bytes(None),
            Content::Bytes { bytes, .. } => Self::Bytes(Some(bytes.clone())),
            Content::File { path, size } => Self::File { file: File::open(path)?, left: *size, progress },
        })
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        Poll::Ready(match &mut *self {
            Self::Bytes(bytes) => bytes.take().map(|bytes| Ok(Frame::data(bytes))),
            Self::File { left: 0, .. } => None,
            Self::File { file, left, progress } => {
                let size = usize::try_from(*left).map_or(PIECE, |left| left.min(PIECE));
                let mut piece = vec![0; size];
                Some(file.read_exact(&mut piece).map(|()| {
                    let size = u64::try_from(size).unwrap_or(u64::MAX);
                    *left = left.saturating_sub(size);
                    progress.fetch_add(size, Ordering::Relaxed);
                    Frame::data(piece.into())
                }))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Bytes(None) | Self::File { left: 0, .. })
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Bytes(None) => SizeHint::with_exact(0),
            Self::Bytes(Some(bytes)) => SizeHint::with_exact(bytes.len().try_into().unwrap_or(u64::MAX)),
            Self::File { left, .. } => SizeHint::with_exact(*left),
        }
    }
}

/// An error of HTTP with its causes, which its own text does not have.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
