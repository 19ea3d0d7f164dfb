//! A request to an HTTP server on its way to the handler, and the answer on its way back.
//!
//! The bus carries only a ticket, so that the request waits, ends and is counted as any other. What the ticket stands for
//! lies here until the handler fetches it, or the client gives up.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body::Body as _;
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use wasmtime::component::Resource;
use wasmtime_wasi_http::{
    Error,
    p2::{
        bindings::http::types::{ErrorCode, Scheme},
        body::HyperOutgoingBody,
        types::{HostIncomingRequest, HostResponseOutparam},
    },
};

use super::offered::view;
use crate::sandbox::Guest;

/// The body of a request or an answer.
pub type HttpBody = UnsyncBoxBody<Bytes, HttpBodyError>;

/// Why a body ends before it is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpBodyError {
    /// It is larger than the server takes.
    #[error("the body is larger than `serves-http.max-body`")]
    TooLarge,
    /// Nothing of it came for too long.
    #[error("the rest of the body does not come")]
    Late,
    /// The connection broke, or the handler ended before it had written all.
    #[error("the body was cut off")]
    CutOff,
}

impl From<HttpBodyError> for Error {
    fn from(error: HttpBodyError) -> Self {
        match error {
            HttpBodyError::TooLarge => Self::HttpRequestBodySize(None),
            HttpBodyError::Late => Self::ConnectionReadTimeout,
            HttpBodyError::CutOff => Self::ConnectionTerminated,
        }
    }
}

/// The requests that no handler has fetched yet, by their tickets. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct HttpExchanges(Arc<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    last: AtomicU64,
    exchanges: Mutex<HashMap<u64, HttpExchange>>,
}

/// A request, and what its handler needs for the answer.
#[derive(Debug)]
pub(crate) struct HttpExchange {
    pub(crate) request: Request<HttpBody>,
    pub(crate) scheme: Scheme,
    pub(crate) answer: AnswerSender,
    /// Gets a value when the client has the whole answer, and is closed when it has left before.
    pub(crate) client: oneshot::Receiver<()>,
}

/// The client's end of a request. Dropped before the whole answer has been read, it ends the handler's work.
#[derive(Debug)]
pub struct HttpTicket {
    number: u64,
    waiting: Arc<Waiting>,
    answer: oneshot::Receiver<Response<HttpBody>>,
    whole: Option<oneshot::Sender<()>>,
}

impl HttpExchanges {
    /// Leaves a request for its handler.
    #[must_use]
    pub fn put(&self, request: Request<HttpBody>, is_tls: bool) -> HttpTicket {
        let number = self.0.last.fetch_add(1, Ordering::Relaxed);
        let ((answer, answered), (whole, client)) = (oneshot::channel(), oneshot::channel());
        let has_body = request.method() != Method::HEAD;
        let answer = AnswerSender { answer, has_body };
        let scheme = if is_tls { Scheme::Https } else { Scheme::Http };
        self.0.exchanges.lock().insert(number, HttpExchange { request, scheme, answer, client });
        HttpTicket { number, waiting: self.0.clone(), answer: answered, whole: Some(whole) }
    }

    /// Fetches the request that the payload of a message is the ticket for, unless its client has given up.
    pub(crate) fn fetch(&self, payload: &Bytes) -> Option<HttpExchange> {
        let number = u64::from_le_bytes(payload.as_ref().try_into().ok()?);
        self.0.exchanges.lock().remove(&number)
    }
}

impl HttpTicket {
    /// The payload of the message to the handler.
    #[must_use]
    pub fn payload(&self) -> Bytes {
        Bytes::copy_from_slice(&self.number.to_le_bytes())
    }

    /// Returns the answer if the handler has begun one. The client then has the rest of it in the body.
    #[must_use]
    pub fn answer(mut self) -> Option<Response<HttpBody>> {
        let answer = self.answer.try_recv().ok()?;
        let whole = self.whole.take();
        Some(answer.map(|body| WatchedBody { body, whole }.boxed_unsync()))
    }
}

impl Drop for HttpTicket {
    fn drop(&mut self) {
        self.waiting.exchanges.lock().remove(&self.number);
    }
}

/// Takes the answer of a handler.
#[derive(Debug)]
pub(crate) struct AnswerSender {
    answer: oneshot::Sender<Response<HttpBody>>,
    has_body: bool,
}

impl AnswerSender {
    /// Sends the head of the answer, and the body as it comes. `is_cut_off` says whether the guest ended before it had
    /// written all: then the body ends with an error, and not as if it were whole.
    pub(crate) fn send(self, answer: Response<HyperOutgoingBody>, is_cut_off: Arc<AtomicBool>) {
        let has_none = [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&answer.status());
        let left = if self.has_body && !has_none { length(answer.headers()) } else { Some(0) };
        let answer = answer.map(|body| GuestBody { body, left, is_cut_off }.boxed_unsync());
        // Fails if the client has left, which ends the handler.
        let _left = self.answer.send(answer);
    }
}

/// The resources that a handler is called with.
type Begun = (Resource<HostIncomingRequest>, Resource<HostResponseOutparam>);

/// Puts a request among the guest's resources, and the place of its answer, which is given to `answer`.
pub(crate) fn begin<G: Guest>(
    guest: &mut G,
    scheme: Scheme,
    request: Request<HttpBody>,
    answer: impl FnOnce(Result<Response<HyperOutgoingBody>, ErrorCode>) + Send + Sync + 'static,
) -> wasmtime::Result<Begun> {
    let mut view = view(guest);
    let request = view.new_incoming_request(scheme, request)?;
    Ok((request, view.new_response_outparam_from_callback(answer)?))
}

fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The body that a guest writes.
struct GuestBody {
    body: HyperOutgoingBody,
    /// Bytes to come, if the guest has said how many.
    left: Option<u64>,
    is_cut_off: Arc<AtomicBool>,
}

impl http_body::Body for GuestBody {
    type Data = Bytes;
    type Error = HttpBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, HttpBodyError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        Poll::Ready(match frame {
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
                self.left = self.left.map(|left| left.saturating_sub(bytes));
                Some(Ok(frame))
            }
            Some(Err(_)) => Some(Err(HttpBodyError::CutOff)),
            None if self.is_cut_off.load(Ordering::Acquire) => Some(Err(HttpBodyError::CutOff)),
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.left == Some(0)
    }
}

/// A body that tells the handler when the client has all of it.
struct WatchedBody {
    /// Declared before `body`, so that a handler knows that the client has left before its writes fail.
    whole: Option<oneshot::Sender<()>>,
    body: HttpBody,
}

impl WatchedBody {
    fn is_whole(&mut self) {
        let _ended = self.whole.take().map(|whole| whole.send(()));
    }
}

impl http_body::Body for WatchedBody {
    type Data = Bytes;
    type Error = HttpBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, HttpBodyError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        // A server looks no further after trailers.
        if frame.as_ref().is_none_or(|frame| frame.as_ref().is_ok_and(http_body::Frame::is_trailers)) {
            self.is_whole();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

impl Drop for WatchedBody {
    fn drop(&mut self) {
        // A server may drop a body whose bytes are all there without a look for its end.
        if self.body.is_end_stream() {
            self.is_whole();
        }
    }
}
