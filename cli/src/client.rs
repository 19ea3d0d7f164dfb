//! HTTP/1 over the control socket of a running Main.

use std::{
    future::Future,
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::Context;
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, Response, StatusCode, body::Incoming, client::conn::http1::SendRequest, header,
};
use hyper_util::rt::TokioIo;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::net::UnixStream;

use crate::{args::Target, exit::Usage, locate, output};

/// Time for what Main answers out of its own head.
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);

/// Time in which a socket whose backlog is full must have room again.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Between two attempts at a socket whose backlog is full.
const CONNECT_PAUSE: Duration = Duration::from_millis(10);

/// Bytes of one line of a stream: a payload of the largest size, in base64, and its envelope.
const MAX_LINE: usize = 96 * 1024 * 1024;

/// Main cannot be reached.
#[derive(Debug, thiserror::Error)]
#[error("cannot reach Main at `{}`: {hint}", path.display())]
pub(crate) struct Unreachable {
    path: PathBuf,
    hint: &'static str,
    source: io::Error,
}

/// Main did not answer in time.
#[derive(Debug, thiserror::Error)]
#[error("Main did not answer within {} s", QUERY_TIMEOUT.as_secs())]
pub(crate) struct Unanswered;

/// Main answered that it did not do it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refused {
    /// Tells the cases apart: `docs/control-interface.md` lists them.
    pub(crate) code: String,
    message: String,
}

/// Runs a command that talks to Main.
pub(crate) fn block_on(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .context("cannot start the command's runtime")?
        .block_on(command)
}

/// One connection to Main.
pub(crate) struct Client {
    requests: SendRequest<Full<Bytes>>,
}

impl Client {
    pub(crate) async fn connect(target: &Target) -> anyhow::Result<Self> {
        Self::connect_to(&locate::socket(target)?).await
    }

    pub(crate) async fn connect_to(path: &Path) -> anyhow::Result<Self> {
        let stream = connect(path).await.map_err(|source| {
            let hint = match source.kind() {
                io::ErrorKind::NotFound => "nothing is there; is it running, and is this its socket?",
                io::ErrorKind::ConnectionRefused => "nobody answers there; it may have been killed",
                io::ErrorKind::PermissionDenied => "only the user that runs it may",
                _ => "the system refused",
            };
            Unreachable { path: path.to_owned(), hint, source }
        })?;
        let (requests, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        // Ends with this command, or when Main hangs up, which the request in hand is told.
        tokio::spawn(async move { drop(connection.await) });
        Ok(Self { requests })
    }

    /// Sends a request and waits, as long as it takes, for the head of a good answer.
    pub(crate) async fn send(
        &mut self,
        method: Method,
        route: &Route,
        body: Bytes,
    ) -> anyhow::Result<Response<Incoming>> {
        let request = Request::builder()
            .method(method)
            .uri(&route.0)
            .header(header::HOST, "weir")
            .body(Full::new(body))
            .context("cannot make the request")?;
        let response = self.requests.send_request(request).await.context("Main hung up")?;
        if response.status().is_success() { Ok(response) } else { Err(refused(response).await) }
    }

    /// Asks what Main answers out of its own head.
    pub(crate) async fn get<T: DeserializeOwned>(&mut self, route: &Route) -> anyhow::Result<T> {
        let answer = async {
            let response = self.send(Method::GET, route, Bytes::new()).await?;
            body(response).await
        };
        let body = tokio::time::timeout(QUERY_TIMEOUT, answer).await.map_err(|_| Unanswered)??;
        serde_json::from_slice(&body).context("cannot read the answer of Main; is it of another version?")
    }

    /// Asks for a stream; ends when it has begun.
    pub(crate) async fn stream(&mut self, route: &Route) -> anyhow::Result<Lines> {
        let begun = self.send(Method::GET, route, Bytes::new());
        let response = tokio::time::timeout(QUERY_TIMEOUT, begun).await.map_err(|_| Unanswered)??;
        Ok(Lines { body: response.into_body(), buffer: BytesMut::new(), searched: 0 })
    }
}

/// Everything of an answer's body.
pub(crate) async fn body(response: Response<Incoming>) -> anyhow::Result<Bytes> {
    Ok(response.into_body().collect().await.context("Main hung up in the middle of an answer")?.to_bytes())
}

/// All but what stands for itself everywhere in a URL.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');

/// A route with its arguments, each encoded as it must be.
#[derive(Debug)]
pub(crate) struct Route(String);

impl Route {
    /// `/v1` and these segments.
    pub(crate) fn new(segments: &[&str]) -> Self {
        let mut route = String::from("/v1");
        for segment in segments {
            route.push('/');
            route.extend(utf8_percent_encode(segment, ENCODED));
        }
        Self(route)
    }

    /// Adds an argument, if it has a value.
    pub(crate) fn with(mut self, name: &str, value: Option<&str>) -> Self {
        if let Some(value) = value {
            self.0.push(if self.0.contains('?') { '&' } else { '?' });
            self.0.push_str(name);
            self.0.push('=');
            self.0.extend(utf8_percent_encode(value, ENCODED));
        }
        self
    }

    /// An empty segment would be another route, or none.
    pub(crate) fn named(segments: &[&str]) -> anyhow::Result<Self> {
        if segments.contains(&"") {
            return Err(Usage("a name cannot be empty".to_owned()).into());
        }
        Ok(Self::new(segments))
    }
}

/// The lines of a stream.
pub(crate) struct Lines {
    body: Incoming,
    buffer: BytesMut,
    /// Bytes of the buffer in which there is no end of a line.
    searched: usize,
}

impl Lines {
    /// Hands each line, without its end, to `print`, until Main ends the stream or whoever reads
    /// what is printed has gone.
    pub(crate) async fn print(mut self, print: impl Fn(&[u8]) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let mut reader_left = std::pin::pin!(output::reader_left());
        loop {
            tokio::select! {
                line = self.next() => match line? {
                    Some(line) => print(&line)?,
                    None => return Ok(()),
                },
                closed = &mut reader_left => return Err(closed.into()),
            }
        }
    }

    /// The next line, without its end; none when Main has ended the stream.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<Bytes>> {
        loop {
            let unseen = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(at) = unseen.iter().position(|byte| *byte == b'\n') {
                let mut line = self.buffer.split_to(self.searched + at + 1);
                line.truncate(line.len() - 1);
                self.searched = 0;
                return Ok(Some(line.freeze()));
            }
            self.searched = self.buffer.len();
            anyhow::ensure!(self.buffer.len() <= MAX_LINE, "Main sent a line of over {MAX_LINE} bytes");
            match self.body.frame().await {
                Some(frame) => {
                    let frame = frame.context("Main hung up")?;
                    self.buffer.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
                }
                None => return Ok(None),
            }
        }
    }
}

async fn connect(path: &Path) -> io::Result<UnixStream> {
    let started = Instant::now();
    loop {
        match UnixStream::connect(path).await {
            // The backlog is full, and a Unix socket does not wait for room in it.
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock && started.elapsed() < CONNECT_TIMEOUT =>
            {
                tokio::time::sleep(CONNECT_PAUSE).await;
            }
            result => return result,
        }
    }
}

#[derive(Deserialize)]
struct Answer {
    error: Error,
}

#[derive(Deserialize)]
struct Error {
    code: String,
    message: String,
}

async fn refused(response: Response<Incoming>) -> anyhow::Error {
    let status = response.status();
    match body(response).await.map(|body| serde_json::from_slice(&body)) {
        Ok(Ok(Answer { error: Error { code, message } })) => {
            let hint = if code == "no-such-route" { "; is Main of another version?" } else { "" };
            Refused { code, message: message + hint }.into()
        }
        Ok(Err(_)) => unexplained(status),
        Err(error) => error,
    }
}

fn unexplained(status: StatusCode) -> anyhow::Error {
    anyhow::anyhow!("Main answered with HTTP status {status} and does not say why; is it of another version?")
}
