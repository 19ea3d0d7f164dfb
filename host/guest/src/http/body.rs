//! The body of an answer, as its guest reads it.
//!
//! A failed body stays failed: its next read fails with the same error, and so do its trailers. wasmtime-wasi-http tells
//! of a failure once, in an error without a code. Then it says that the body has ended and that its trailers are none,
//! as of a complete one.

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

/// The stream of a body, which has one.
pub(super) fn stream(
    table: &mut ResourceTable,
    id: &Resource<HostIncomingBody>,
) -> wasmtime::Result<Result<Resource<DynInputStream>, ()>> {
    let body = table.get_mut(id)?;
    let Some(stream) = body.take_stream() else { return Ok(Err(())) };
    let failure = Failure::default();
    let rest = mem::replace(body, HostIncomingBody::new(nothing().boxed_unsync())).into_future_trailers();
    *body = HostIncomingBody::new(nothing().with_trailers(trailers(rest, failure.clone())).boxed_unsync());
    // Until the stream is dropped, the trailers wait for it.
    let after = body.take_stream();
    let reader: DynInputStream = Box::new(Reader { stream, came: Bytes::new(), failure, _after: after });
    Ok(Ok(table.push_child(reader, id)?))
}

fn nothing() -> impl BodyExt<Data = Bytes, Error = Error> + Send + 'static {
    Empty::new().map_err(|never| match never {})
}

/// The trailers of a body whose stream has been dropped.
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

struct Reader {
    /// Dropped before what waits for it.
    stream: HostIncomingBodyStream,
    /// Seen while waiting, and not read yet.
    came: Bytes,
    failure: Failure,
    _after: Option<HostIncomingBodyStream>,
}

impl Reader {
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

impl InputStream for Reader {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        if self.came.is_empty() {
            return self.next(size);
        }
        Ok(self.came.split_to(size.min(self.came.len())))
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Reader {
    /// Reads on, because only a read shows a failure.
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

/// Of what a body can fail with.
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
