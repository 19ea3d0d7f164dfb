//! HTTP/1 over the control socket of a running Main.

use std::{
    future::Future,
    io,
    num::NonZero,
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
use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::{
    net::UnixStream,
    signal::unix::{Signal, SignalKind, signal},
};
use weir_control::SocketError;
use weir_host::traces::{SpanId, TraceContext, TraceId};

use crate::{args::Target, exit::Usage, output};

/// How long the command waits for an answer that Main gives at once.
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);

/// How much longer the command waits than the time within which Main was asked to answer.
const GRACE: Duration = Duration::from_secs(2);

/// The pause between two checks that Main still answers during a long operation.
const LOOK_PAUSE: Duration = Duration::from_secs(5);

/// How long the command tries again while Main is too busy to take a connection or a request.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The pause between two attempts to connect to a busy Main.
const CONNECT_PAUSE: Duration = Duration::from_millis(10);

/// The most bytes of a line of a stream: room for the largest payload in base64, and its envelope.
const MAX_LINE: usize = 96 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
#[error("cannot reach Main at `{}`: {hint}", path.display())]
pub(crate) struct Unreachable {
    path: PathBuf,
    hint: &'static str,
    source: io::Error,
}

#[derive(Debug, thiserror::Error)]
#[error("Main did not answer within {}; it may be stopped, or have too much to do{then}", humantime::format_duration(*time))]
pub(crate) struct Unanswered {
    time: Duration,
    /// What becomes of a command that Main did not answer. Empty for a request that changes nothing.
    then: &'static str,
}

/// The end of the error for a command that Main did not answer.
const THEN: &str = "; the command is carried out only if Main has begun it already";

impl Unanswered {
    fn after(time: Duration) -> Self {
        Self { time, then: "" }
    }
}

/// If Main did not answer a command, adds to the error what becomes of the command.
pub(crate) fn of_command(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<Unanswered>() {
        Ok(unanswered) => Unanswered { then: THEN, ..unanswered }.into(),
        Err(error) => error,
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refused {
    /// One of the codes in `docs/control-interface.md`.
    pub(crate) code: String,
    message: String,
}

pub(crate) fn block_on<T>(command: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .context("cannot start the command's runtime")?
        .block_on(command)
}

/// Receives SIGTERM and SIGINT from the moment it is made.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for one of the two signals, and returns its name.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// A signal ended the command.
#[cfg(any(feature = "compiler", feature = "packages"))]
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub(crate) struct Interrupted;

/// Does the work until Ctrl-C or SIGTERM. Then drops it, with the processes that it started, and fails with
/// [`Interrupted`].
#[cfg(any(feature = "compiler", feature = "packages"))]
pub(crate) async fn until_interrupted<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let mut signals = Signals::new()?;
    tokio::select! {
        done = work => done,
        _ = signals.next() => Err(Interrupted.into()),
    }
}

/// How long the command waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// Waits ten seconds, for answers that Main gives at once.
    Query,
    /// Waits a little longer than this time, within which Main was asked to answer.
    Asked(Duration),
    /// Waits as long as Main answers other requests, since Main's own deadlines end the operation.
    WhileMainAnswers,
}

pub(crate) struct Client {
    path: PathBuf,
    requests: SendRequest<Full<Bytes>>,
    /// The trace that this client's requests are part of, if any.
    trace: Option<TraceContext>,
    /// Asks Main to refuse arguments that do not fit what the provider describes. An older Main does not refuse them.
    pub(crate) is_strict: bool,
}

impl Client {
    pub(crate) async fn connect(target: &Target) -> anyhow::Result<Self> {
        Self::connect_to(&target.socket()?).await
    }

    pub(crate) async fn connect_to(path: &Path) -> anyhow::Result<Self> {
        let requests = handshake(path).await?;
        Ok(Self { path: path.to_owned(), requests, trace: None, is_strict: false })
    }

    /// From now on, Main records what it does for this client's requests, as one trace. Returns the trace's id.
    pub(crate) fn begin_trace(&mut self) -> anyhow::Result<TraceId> {
        let trace = TraceId(NonZero::new(u128::from_le_bytes(random()?)).context("chance gave nothing")?);
        let span = SpanId(NonZero::new(u64::from_le_bytes(random()?)).context("chance gave nothing")?);
        self.trace = Some(TraceContext { trace, span, is_sampled: true });
        Ok(trace)
    }

    /// Sends a request and waits for the whole answer. An error response that says why is [`Refused`].
    pub(crate) async fn ask(
        &mut self,
        method: Method,
        route: &Route,
        body: Bytes,
        patience: Patience,
    ) -> anyhow::Result<Bytes> {
        let path = self.path.clone();
        let is_command = !method.is_safe();
        let answer = async { whole(self.send(method, route, body).await?).await };
        let answer = match patience {
            Patience::Query => within(QUERY_TIMEOUT, answer).await,
            Patience::Asked(time) => within(time.saturating_add(GRACE), answer).await,
            Patience::WhileMainAnswers => while_main_answers(&path, answer).await,
        };
        answer.map_err(|error| if is_command { of_command(error) } else { error })
    }

    pub(crate) async fn get<T: DeserializeOwned>(&mut self, route: &Route) -> anyhow::Result<T> {
        read(&self.ask(Method::GET, route, Bytes::new(), Patience::Query).await?)
    }

    /// Sends an order, which has no body, and waits for its answer as long as Main answers other requests.
    pub(crate) async fn post(&mut self, route: &Route) -> anyhow::Result<Bytes> {
        self.ask(Method::POST, route, Bytes::new(), Patience::WhileMainAnswers).await
    }

    pub(crate) async fn stream(&mut self, route: &Route) -> anyhow::Result<Lines> {
        let response = within(QUERY_TIMEOUT, self.send(Method::GET, route, Bytes::new())).await?;
        Ok(Lines { body: response.into_body(), buffer: BytesMut::new(), searched: 0 })
    }

    /// Sends a request and waits for the head of the answer. Retries for [`CONNECT_TIMEOUT`] while Main is busy, since
    /// a busy Main has not carried out the request.
    async fn send(
        &mut self,
        method: Method,
        route: &Route,
        body: Bytes,
    ) -> anyhow::Result<Response<Incoming>> {
        let started = Instant::now();
        loop {
            let mut request =
                Request::builder().method(method.clone()).uri(&route.0).header(header::HOST, "weir");
            if let Some(trace) = &self.trace {
                request = request.header("traceparent", trace.to_string());
            }
            if self.is_strict {
                request = request.header("prefer", "handling=strict");
            }
            let request = request.body(Full::new(body.clone())).context("cannot make the request")?;
            let response = self.requests.send_request(request).await.context("Main hung up")?;
            if response.status().is_success() {
                return Ok(response);
            }
            let error = refused(response).await;
            let is_busy = error.downcast_ref::<Refused>().is_some_and(|refused| refused.code == "busy");
            if !is_busy || started.elapsed() > CONNECT_TIMEOUT {
                return Err(error);
            }
            tokio::time::sleep(CONNECT_PAUSE).await;
            self.requests = handshake(&self.path).await?;
        }
    }
}

/// Returns random bytes of the operating system.
pub(crate) fn random<const BYTES: usize>() -> anyhow::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    let given = getrandom(&mut bytes, GetRandomFlags::empty()).context("the system gives no random bytes")?;
    anyhow::ensure!(given == bytes.len(), "the system gives too few random bytes");
    Ok(bytes)
}

const UNREADABLE: &str = "cannot read the answer of Main; is it of another version?";

pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> anyhow::Result<T> {
    serde_json::from_slice(body).context(UNREADABLE)
}

/// Reads a type from an answer of Main that is parsed already.
pub(crate) fn understood<T: DeserializeOwned>(answer: Value) -> anyhow::Result<T> {
    serde_json::from_value(answer).context(UNREADABLE)
}

/// The code for arguments that do not fit what the provider describes. Main does not deliver such a call.
const MISFIT: &str = "misfit";

pub(crate) fn is_misfit<T>(answer: &anyhow::Result<T>) -> bool {
    let refused = answer.as_ref().err().and_then(|error| error.downcast_ref::<Refused>());
    refused.is_some_and(|refused| refused.code == MISFIT)
}

/// Turns a refusal with one of these codes into `None`. Other errors stay errors.
pub(crate) fn unless<T>(codes: &[&str], answer: anyhow::Result<T>) -> anyhow::Result<Option<T>> {
    let is_one = |refused: &Refused| codes.contains(&&*refused.code);
    match answer {
        Err(error) if error.downcast_ref().is_some_and(is_one) => Ok(None),
        other => other.map(Some),
    }
}

async fn within<T>(time: Duration, answer: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::time::timeout(time, answer).await.map_err(|_| Unanswered::after(time))?
}

/// Waits for a long operation, and checks now and then that Main still answers. Fails if it does not.
pub(crate) async fn while_main_answers<T>(
    path: &Path,
    answer: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let silence = async {
        loop {
            tokio::time::sleep(LOOK_PAUSE).await;
            let look = async {
                let mut client = Client::connect_to(path).await?;
                whole(client.send(Method::GET, &Route::new(&["version"]), Bytes::new()).await?).await
            };
            // Only a missing answer counts. A busy Main does answer, and a Main that has gone ends `answer` with an
            // error.
            if let Err(error) = within(QUERY_TIMEOUT, look).await
                && error.is::<Unanswered>()
            {
                return error;
            }
        }
    };
    tokio::select! {
        answer = answer => answer,
        error = silence => Err(error),
    }
}

async fn whole(response: Response<Incoming>) -> anyhow::Result<Bytes> {
    Ok(response.into_body().collect().await.context("Main hung up in the middle of an answer")?.to_bytes())
}

const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');

#[derive(Debug)]
pub(crate) struct Route(String);

impl Route {
    /// Makes the route `/v1/` with these segments, percent-encoded.
    pub(crate) fn new(segments: &[&str]) -> Self {
        let mut route = String::from("/v1");
        for segment in segments {
            route.push('/');
            route.extend(utf8_percent_encode(segment, ENCODED));
        }
        Self(route)
    }

    /// Makes the route to all things of a kind, or to the one with this name.
    pub(crate) fn all_or_one(kind: &str, name: Option<&str>) -> anyhow::Result<Self> {
        Self::named(&[kind].into_iter().chain(name).collect::<Vec<_>>())
    }

    pub(crate) fn with(mut self, name: &str, value: Option<&str>) -> Self {
        if let Some(value) = value {
            self.0.push(if self.0.contains('?') { '&' } else { '?' });
            self.0.push_str(name);
            self.0.push('=');
            self.0.extend(utf8_percent_encode(value, ENCODED));
        }
        self
    }

    /// Makes the route `/v1/` with these segments. An empty segment is an error, since the route would be another one.
    pub(crate) fn named(segments: &[&str]) -> anyhow::Result<Self> {
        if segments.contains(&"") {
            return Err(Usage("a name cannot be empty".to_owned()).into());
        }
        Ok(Self::new(segments))
    }
}

pub(crate) struct Lines {
    body: Incoming,
    buffer: BytesMut,
    /// Bytes at the start of the buffer without a line feed.
    searched: usize,
}

impl Lines {
    /// Passes each line, without its end, to `print`, until Main ends the stream or the reader of stdout leaves.
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

    /// Returns the next line, without its end. Returns `None` when Main has ended the stream, and drops a line that
    /// has no end by then.
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

async fn handshake(path: &Path) -> anyhow::Result<SendRequest<Full<Bytes>>> {
    let stream = connect(path).await.map_err(|source| {
        let hint = match source.kind() {
            // Main listens, but accepted no connection within `CONNECT_TIMEOUT`.
            io::ErrorKind::WouldBlock => return anyhow::Error::from(Unanswered::after(CONNECT_TIMEOUT)),
            io::ErrorKind::InvalidInput => {
                return Usage(SocketError::Path(path.to_owned()).to_string()).into();
            }
            io::ErrorKind::NotFound => "nothing is there; is it running, and is this its socket?",
            io::ErrorKind::ConnectionRefused => "nobody answers there; it may have been killed",
            io::ErrorKind::PermissionDenied => "only the user that runs it may",
            _ => "the system refused",
        };
        Unreachable { path: path.to_owned(), hint, source }.into()
    })?;
    let (requests, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // The task ends with the command, or when Main hangs up, which the request under way reports as its error.
    tokio::spawn(async move { drop(connection.await) });
    Ok(requests)
}

/// Whether the file of the socket is there and nobody listens, as after a Main was killed.
pub(crate) async fn is_abandoned(path: &Path) -> bool {
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    UnixStream::connect(path).await.is_err_and(refused)
}

async fn connect(path: &Path) -> io::Result<UnixStream> {
    let started = Instant::now();
    loop {
        match UnixStream::connect(path).await {
            // The backlog is full. A Unix socket does not wait for room in it.
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock && started.elapsed() < CONNECT_TIMEOUT =>
            {
                tokio::time::sleep(CONNECT_PAUSE).await;
            }
            result => return result,
        }
    }
}

/// The body of an error response.
#[derive(Deserialize)]
struct Answer {
    error: Error,
}

#[derive(Deserialize)]
struct Error {
    code: String,
    message: String,
}

/// Makes the error of an error response: its reason, with a hint for some codes, or else its status.
async fn refused(response: Response<Incoming>) -> anyhow::Error {
    let status = response.status();
    match whole(response).await.map(|body| serde_json::from_slice(&body)) {
        Ok(Ok(Answer { error: Error { code, message } })) => {
            let hint = match code.as_str() {
                MISFIT => "; `--no-check` sends them all the same",
                "no-such-route" => "; is Main of another version?",
                "trapped" => "; `weir ps --failures` says why",
                "no-provider" => "; `weir ps` shows what runs",
                "unknown-session" => "; `weir peers` lists the sessions",
                _ => "",
            };
            Refused { code, message: message + hint }.into()
        }
        Ok(Err(_)) => unexplained(status),
        Err(error) => error,
    }
}

fn unexplained(status: StatusCode) -> anyhow::Error {
    anyhow::anyhow!("Main answered with HTTP status {status} and does not say why; is it of another version?")
}
