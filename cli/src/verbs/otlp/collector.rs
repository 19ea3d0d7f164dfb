//! HTTP/1 to a collector: one connection for each batch, and a time limit for each step.

use std::{io, time::Duration, time::SystemTime};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, header};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::JoinSet, time::timeout};
use weir_otlp::{PartialSuccess, Verdict, partial_success, retry_after, said};

use super::settings::Settings;

/// The most bytes of an answer that are read. The specification lets a client bound them.
const MAX_ANSWER: usize = 64 * 1024;

/// What came of a batch.
pub(super) enum Sent {
    Delivered(Option<PartialSuccess>),
    /// The collector has not taken the batch, and may take it later.
    Later {
        why: String,
        /// The pause that the collector asks for, if it asks for one.
        pause: Option<Duration>,
        /// Whether the collector, or a proxy before it, has answered.
        is_there: bool,
    },
    Refused(String),
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum NoAnswer {
    #[error("cannot connect: {0}")]
    Connect(#[from] io::Error),
    #[error("the connection broke: {0}")]
    Http(#[from] hyper::Error),
    #[error("cannot make the request: {0}")]
    Request(#[from] hyper::http::Error),
}

pub(super) struct Collector {
    pub(super) settings: Settings,
}

impl Collector {
    pub(super) async fn send(&self, batch: Bytes) -> Sent {
        let time = self.settings.timeout;
        // The set owns the task of the connection, and ends it when it is dropped.
        let mut connection = JoinSet::new();
        let later = |why| Sent::Later { why, pause: None, is_there: false };
        let response = match timeout(time, self.post(batch, &mut connection)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return later(error.to_string()),
            Err(_) => return later(format!("no answer within {}", humantime::format_duration(time))),
        };
        let status = response.status();
        let pause = response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let pause = pause.and_then(|value| retry_after(value, SystemTime::now()));
        // The head of the answer decides. If the body is too long or does not come, only its explanation is missing.
        let body = timeout(time, whole(response.into_body())).await.ok().flatten().unwrap_or_default();
        let why = || match said(&body) {
            text if text.is_empty() => format!("HTTP status {status}"),
            text => format!("HTTP status {status}: {text}"),
        };
        match Verdict::of(status.as_u16()) {
            Verdict::Delivered => Sent::Delivered(partial_success(&body)),
            Verdict::Retry => Sent::Later { why: why(), pause, is_there: true },
            Verdict::Refused => Sent::Refused(why()),
        }
    }

    async fn post(&self, batch: Bytes, connection: &mut JoinSet<()>) -> Result<Response<Incoming>, NoAnswer> {
        let endpoint = &self.settings.endpoint;
        let stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await?;
        let (mut requests, task) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        connection.spawn(async move { drop(task.await) });
        let mut request = Request::post(&endpoint.path).body(Full::new(batch))?;
        let headers = request.headers_mut();
        headers.insert(header::HOST, endpoint.authority.parse().map_err(hyper::http::Error::from)?);
        headers.insert(
            header::USER_AGENT,
            header::HeaderValue::from_static(concat!("weir-otlp/", env!("CARGO_PKG_VERSION"))),
        );
        headers.extend(self.settings.headers.clone());
        // The body is of this type, whatever a header of the operator says.
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/x-protobuf"));
        Ok(requests.send_request(request).await?)
    }
}

/// Reads a body of at most [`MAX_ANSWER`] bytes into one buffer. Chunks kept as they come cost many times their bytes.
async fn whole(mut body: Incoming) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.ok()?;
        let data: &[u8] = frame.data_ref().map(Bytes::as_ref).unwrap_or_default();
        if data.len() > MAX_ANSWER - bytes.len() {
            return None;
        }
        bytes.extend_from_slice(data);
    }
    Some(bytes)
}
