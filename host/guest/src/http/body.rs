//! The body of an answer to a guest's request, as the guest reads it.
//!
//! A failed body stays failed: its next read fails with the same error, and so do its trailers. wasmtime-wasi-http
//! reports a failure only once, in an error without a code. After that it says that the body has ended without
//! trailers, like a complete one.

use std::{
    mem,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use wasmtime::component::{Resource, ResourceTable};
use wasmtime_wasi::p2::{DynInputStream, InputStream, Pollable, StreamError, StreamResult};
use wasmtime_wasi_http::{
    Error,
    p2::{
        bindings::http::types::{ErrorCode, TlsAlertReceivedPayload},
        body::{HostFutureTrailers, HostIncomingBody, HostIncomingBodyStream},
    },
};

/// Why a body failed, once it has.
type Failure = Arc<OnceLock<ErrorCode>>;

/// Takes the stream of a body. A body has only one stream, so a second call returns `Err`.
pub(super) fn stream(
    table: &mut ResourceTable,
    id: &Resource<HostIncomingBody>,
) -> wasmtime::Result<Result<Resource<DynInputStream>, ()>> {
    let body = table.get_mut(id)?;
    let Some(stream) = body.take_stream() else { return Ok(Err(())) };
    let failure = Failure::default();
    let rest = mem::replace(body, HostIncomingBody::new(nothing().boxed_unsync())).into_future_trailers();
    *body = HostIncomingBody::new(nothing().with_trailers(trailers(rest, failure.clone())).boxed_unsync());
    // The new stream holds `after`, so that the trailers wait until the guest drops the stream.
    let after = body.take_stream();
    let stream: DynInputStream = Box::new(BodyStream { stream, came: Bytes::new(), failure, _after: after });
    Ok(Ok(table.push_child(stream, id)?))
}

fn nothing() -> impl BodyExt<Data = Bytes, Error = Error> + Send + 'static {
    Empty::new().map_err(|never| match never {})
}

/// Waits for the trailers of a body whose stream has been dropped. Fails if the body has failed.
async fn trailers(mut rest: HostFutureTrailers, failure: Failure) -> Option<Result<http::HeaderMap, Error>> {
    if let Some(code) = failure.get() {
        return Some(Err(code.clone().into()));
    }
    rest.ready().await;
    match rest {
        HostFutureTrailers::Done(trailers) => trailers.transpose(),
        _ => None,
    }
}

/// The stream of a body, which the guest reads. It shows a failure again on each later read.
struct BodyStream {
    /// Declared before `_after`, so that it is dropped before the trailers go on.
    stream: HostIncomingBodyStream,
    /// Bytes that arrived while the guest waited, and that it has not read yet.
    came: Bytes,
    failure: Failure,
    _after: Option<HostIncomingBodyStream>,
}

impl BodyStream {
    fn next(&mut self, size: usize) -> StreamResult<Bytes> {
        if let Some(code) = self.failure.get() {
            return Err(failed(code));
        }
        self.stream.read(size).map_err(|error| match error {
            StreamError::LastOperationFailed(error) => {
                let code = error.downcast().map_or(ErrorCode::ConnectionTerminated, code);
                failed(self.failure.get_or_init(|| code))
            }
            other => other,
        })
    }
}

impl InputStream for BodyStream {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        if self.came.is_empty() {
            return self.next(size);
        }
        Ok(self.came.split_to(size.min(self.came.len())))
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for BodyStream {
    /// Waits until bytes are there, or the body has ended or failed. Reads ahead, because only a read shows a failure.
    async fn ready(&mut self) {
        while self.came.is_empty() {
            self.stream.ready().await;
            match self.next(usize::MAX) {
                Ok(bytes) => self.came = bytes,
                Err(_) => return,
            }
        }
    }
}

fn failed(code: &ErrorCode) -> StreamError {
    StreamError::LastOperationFailed(code.clone().into())
}

/// Returns the error code for an error that a body can fail with. Any other error counts as a lost connection.
fn code(error: Error) -> ErrorCode {
    match error {
        Error::HttpResponseIncomplete => ErrorCode::HttpResponseIncomplete,
        Error::HttpResponseTimeout => ErrorCode::HttpResponseTimeout,
        Error::ConnectionReadTimeout => ErrorCode::ConnectionReadTimeout,
        Error::HttpProtocolError => ErrorCode::HttpProtocolError,
        Error::HttpRequestBodySize(size) => ErrorCode::HttpRequestBodySize(size),
        Error::HttpResponseHeaderSectionSize(size) => ErrorCode::HttpResponseHeaderSectionSize(size),
        Error::TlsCertificateError => ErrorCode::TlsCertificateError,
        Error::TlsProtocolError => ErrorCode::TlsProtocolError,
        Error::TlsAlertReceived { alert_id, alert_message } => {
            ErrorCode::TlsAlertReceived(TlsAlertReceivedPayload { alert_id, alert_message })
        }
        _ => ErrorCode::ConnectionTerminated,
    }
}
