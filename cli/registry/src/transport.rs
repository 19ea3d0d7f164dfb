//! One request over HTTP/1, on a connection of its own. Headers, bodies and waits are bounded.

use std::{
    error::Error as _,
    io,
    os::unix::fs::FileExt,
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
use sha2::{Digest as _, Sha256};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    task::JoinHandle,
    time::timeout,
};
use tokio_rustls::rustls::pki_types::ServerName;
use weir_names::chain;
use weir_package::Digest;

use crate::{error::RegistryError, layout::Blob, trust::Tls, url::Url};

/// Time for a connection, with its TLS.
const CONNECT: Duration = Duration::from_secs(20);

/// Most bytes of all headers of an answer.
const HEADERS_SIZE: usize = 64 << 10;

/// Most headers of an answer.
const HEADERS: usize = 128;

/// Bytes of a blob that are sent at once.
const PIECE: usize = 64 << 10;

const AGENT: &str = concat!("weir-registry/", env!("CARGO_PKG_VERSION"));

/// What a request brings.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Nothing,
    Bytes { bytes: Bytes, media_type: &'static str },
    Blob(Blob),
}

/// Makes requests.
pub(crate) struct Transport {
    tls: Tls,
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
    pub(crate) fn new(tls: Tls, idle: Duration) -> Self {
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
        let sent = Sent::new(content, progress.clone());
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
                Content::Blob(_) => {
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
        let answer = answer.map_err(|error| {
            let what = match error.source() {
                Some(cause) if error.is_user() => format!("did not get all of it: {cause}"),
                _ => format!("did not answer as a registry does: {}", chain(&error)),
            };
            RegistryError::Broken { host: host(), what }
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
        let tls = self.tls.connector(origin).map_err(|error| unreachable(format!("no TLS: {error:#}")))?;
        let stream = tls.connect(name, stream).await;
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
    Blob(SentBlob),
}

/// A blob of which so many bytes, with this hash, were sent.
struct SentBlob {
    blob: Blob,
    sent: u64,
    hash: Sha256,
    progress: Arc<AtomicU64>,
}

impl Sent {
    fn new(content: &Content, progress: Arc<AtomicU64>) -> Self {
        match content {
            Content::Nothing => Self::Bytes(None),
            Content::Bytes { bytes, .. } => Self::Bytes(Some(bytes.clone())),
            Content::Blob(blob) => {
                Self::Blob(SentBlob { blob: blob.clone(), sent: 0, hash: Sha256::new(), progress })
            }
        }
    }
}

impl SentBlob {
    fn left(&self) -> u64 {
        self.blob.size.saturating_sub(self.sent)
    }

    /// Reads the next piece. The last one fails if all of them are not the blob, so the other end never has it whole.
    fn next(&mut self) -> io::Result<Bytes> {
        let mut piece = vec![0; usize::try_from(self.left()).map_or(PIECE, |left| left.min(PIECE))];
        let changed = || io::Error::other(format!("the blob `{}` has changed meanwhile", self.blob.digest));
        match self.blob.file.read_exact_at(&mut piece, self.sent) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(changed()),
            read => read?,
        }
        self.hash.update(&piece);
        let size = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        self.sent = self.sent.saturating_add(size);
        let is_other = || Digest::from(<[u8; 32]>::from(self.hash.clone().finalize())) != self.blob.digest;
        if self.left() == 0 && is_other() {
            return Err(changed());
        }
        self.progress.fetch_add(size, Ordering::Relaxed);
        Ok(piece.into())
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        Poll::Ready(match &mut *self {
            Self::Bytes(bytes) => bytes.take().map(|bytes| Ok(Frame::data(bytes))),
            Self::Blob(blob) => (blob.left() > 0).then(|| blob.next().map(Frame::data)),
        })
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Bytes(bytes) => bytes.is_none(),
            Self::Blob(blob) => blob.left() == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Bytes(None) => SizeHint::with_exact(0),
            Self::Bytes(Some(bytes)) => SizeHint::with_exact(bytes.len().try_into().unwrap_or(u64::MAX)),
            Self::Blob(blob) => SizeHint::with_exact(blob.left()),
        }
    }
}
