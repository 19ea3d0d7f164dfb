//! Extensions that serve HTTP: who may send them a request, what of it they get, and what becomes of their answers.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use futures_util::future::OptionFuture;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use tokio::time::{Sleep, sleep};
use weir_host::{
    Error,
    http::{HttpBody, HttpBodyError, HttpServer},
    names::{PeerName, harmless},
    peers::{PeerError, Session, SessionEnd},
    traces::TraceContext,
};

use crate::{
    http::{Caller, Reason, Refused, StaysOpen, only, proof},
    shared::Shared,
};

/// How long a client may send nothing of a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// What a client is told to wait before it tries again, in seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// The header with the name of the peer that sends a request.
const PEER: HeaderName = HeaderName::from_static("weir-peer");

/// Headers of a connection, which a server does not get (RFC 9110, 7.6.1).
const HOP_BY_HOP: [HeaderName; 7] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Headers in which a proxy says for whom it asks. Only one on a Unix socket is believed.
const OF_PROXIES: [&str; 4] = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"];

/// Most bytes of a path that a log line shows.
const SHOWN: usize = 256;

/// Why a request for a server gets an answer of the gateway.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerRefused {
    #[error("the request names no host, or two")]
    Host,
    #[error("nothing is served here")]
    Path,
    #[error("its body has over {0} bytes")]
    Body(u64),
    #[error("it takes {0}")]
    Method(String),
    #[error("only a named peer may send requests: a token in `authorization` proves the name")]
    Peer,
    /// What became of the request. The client gets the case, and the operator's failure records have the reason.
    #[error("{}", said(.0))]
    Failed(Error),
}

/// Passes a request to the extension that serves its path.
pub(crate) async fn pass(
    shared: &Arc<Shared>,
    caller: &Caller,
    request: Request,
) -> Result<Response, Refused> {
    let path = request.uri().path();
    let server = match &caller.server {
        Some(own) => shared.servers.at_socket(&own.id, &own.path, path).ok_or(ServerRefused::Path)?,
        None => shared.servers.find(path).ok_or(Refused::NotFound)?,
    };
    let began = Instant::now();
    let asked = (request.method().clone(), path.to_owned());
    let answer = answered(shared, caller, &server, request).await.unwrap_or_else(Refused::into_response);
    let line = server.serves.access_log.then(|| line(&asked, answer.status(), began.elapsed()));
    shared.servers.answered(&server, answer.status(), line.as_deref());
    Ok(answer)
}

fn line((method, path): &(Method, String), status: StatusCode, took: Duration) -> String {
    let (method, path) = (harmless(method, SHOWN), harmless(path, SHOWN));
    format!("{method} {path} {} in {:.1} ms", status.as_u16(), took.as_secs_f64() * 1000.0)
}

async fn answered(
    shared: &Arc<Shared>,
    caller: &Caller,
    server: &HttpServer,
    request: Request,
) -> Result<Response, Refused> {
    if request.method() == Method::CONNECT || !server.takes(request.method()) {
        return Err(ServerRefused::Method(server.allow()).into());
    }
    // Whoever can open a server's own socket may send.
    let session = match server.serves.open || caller.server.is_some() {
        true => None,
        false => Some(sender(shared, caller, server, request.headers())?),
    };
    let traceparent = only(request.headers(), &HeaderName::from_static("traceparent"));
    // Strangers cannot have their requests recorded, which would push out the spans of others.
    let may_sample = caller.is_unix || session.is_some();
    let trace = traceparent.and_then(|text| text.parse().ok());
    let trace = trace.filter(|trace: &TraceContext| may_sample || !trace.is_sampled);
    let request = prepared(caller, server, session.as_ref().map(Session::name), request)?;
    let ended = OptionFuture::from(session.as_ref().map(Session::ended));
    let answer = tokio::select! {
        biased;
        answer = shared.servers.handle(server, request, caller.is_tls, trace) => answer,
        Some(why) = ended => return Err(why.into()),
        why = shared.ending() => return Err(Refused::from(why)),
    };
    let answer = answer.map_err(ServerRefused::Failed)?;
    Ok(match session {
        // The connection counts as the session's until the end of the answer, and then it ends.
        Some(session) => {
            let ended = Box::pin(session.ended());
            answer.map(|body| Body::new(PeerBody { body, ended, _session: session }))
        }
        None => {
            let mut answer = answer.map(Body::new);
            answer.extensions_mut().insert(StaysOpen);
            answer
        }
    })
}

/// A session of the peer that sends the request, if the server may be reached under its name.
fn sender(
    shared: &Shared,
    caller: &Caller,
    server: &HttpServer,
    headers: &HeaderMap,
) -> Result<Session, Refused> {
    let proof = proof(caller, headers).ok_or(ServerRefused::Peer)?;
    let session = shared.peers.admit_one(&server.serves.peers, proof).map_err(|error| match error {
        PeerError::Denied => ServerRefused::Peer.into(),
        other => Refused::from(other),
    })?;
    caller.proved.notify_one();
    Ok(session)
}

/// Makes of a client's request what the server gets.
fn prepared(
    caller: &Caller,
    server: &HttpServer,
    peer: Option<&PeerName>,
    request: Request,
) -> Result<axum::http::Request<HttpBody>, ServerRefused> {
    let (mut parts, body) = request.into_parts();
    prepare(&mut parts, caller.is_unix, peer)?;
    let allowed = server.serves.max_body;
    if hyper::body::Body::size_hint(&body).lower() > allowed {
        return Err(ServerRefused::Body(allowed));
    }
    let body = BoundedBody { body, left: allowed, late: None }.boxed_unsync();
    Ok(axum::http::Request::from_parts(parts, body))
}

/// Makes of a request's head what the server gets of it. `peer` is who sends it, if the server may be reached under names.
fn prepare(parts: &mut Parts, is_unix: bool, peer: Option<&PeerName>) -> Result<(), ServerRefused> {
    let host = only(&parts.headers, &header::HOST);
    // One host for all who read the request: a second one, or another one in an absolute URI, could be meant for a proxy.
    match (host, parts.uri.authority()) {
        (Some(host), Some(authority)) if !authority.as_str().eq_ignore_ascii_case(host) => {
            return Err(ServerRefused::Host);
        }
        (Some(_), _) => {}
        (None, _) => return Err(ServerRefused::Host),
    }
    let named = parts.headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named = named.flat_map(|names| names.split(',')).filter_map(|name| name.trim().parse().ok());
    let listed: Vec<HeaderName> = named.collect();
    let is_plain = |name: &HeaderName| ![header::HOST, header::CONTENT_LENGTH].contains(name);
    for name in HOP_BY_HOP.iter().chain(listed.iter().filter(|name| is_plain(name))) {
        parts.headers.remove(name);
    }
    if !is_unix {
        OF_PROXIES.iter().for_each(|name| drop(parts.headers.remove(*name)));
    }
    parts.headers.remove(PEER);
    if let Some(peer) = peer {
        // The proof of a name is not for whoever serves.
        parts.headers.remove(header::AUTHORIZATION);
        parts.headers.insert(PEER, HeaderValue::from_str(peer.as_str()).map_err(|_| ServerRefused::Peer)?);
    }
    Ok(())
}

/// The head that a server gets of a request with this one, for the fuzz target. `None` if it is refused.
#[doc(hidden)]
#[must_use]
pub fn head_for_server(mut head: Parts, is_unix: bool, peer: Option<&PeerName>) -> Option<Parts> {
    prepare(&mut head, is_unix, peer).ok().map(|()| head)
}

/// The body of a request: of bounded size, and with an end to each wait for its next piece.
struct BoundedBody {
    body: Body,
    left: u64,
    late: Option<Pin<Box<Sleep>>>,
}

impl hyper::body::Body for BoundedBody {
    type Data = Bytes;
    type Error = HttpBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpBodyError>>> {
        let this = &mut *self;
        let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) else {
            let late = this.late.get_or_insert_with(|| Box::pin(sleep(BODY_TIMEOUT)));
            ready!(late.as_mut().poll(context));
            return Poll::Ready(Some(Err(HttpBodyError::Late)));
        };
        this.late = None;
        Poll::Ready(match frame {
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
                match this.left.checked_sub(bytes) {
                    Some(left) => {
                        this.left = left;
                        Some(Ok(frame))
                    }
                    None => Some(Err(HttpBodyError::TooLarge)),
                }
            }
            Some(Err(_)) => Some(Err(HttpBodyError::CutOff)),
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer to a peer, which ends with its session.
struct PeerBody {
    body: HttpBody,
    ended: Pin<Box<dyn Future<Output = SessionEnd> + Send>>,
    _session: Session,
}

impl hyper::body::Body for PeerBody {
    type Data = Bytes;
    type Error = HttpBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpBodyError>>> {
        if self.ended.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(HttpBodyError::CutOff)));
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// What a client hears of a failed request.
fn said(error: &Error) -> &'static str {
    match error {
        Error::Overloaded(_) => "too many requests wait for the server",
        Error::Timeout => "the server did not answer in time",
        Error::Trapped => "the server failed",
        Error::Handler(_) => "the server gave no answer",
        _ => "the server does not run",
    }
}

impl ServerRefused {
    pub(crate) fn answer(&self) -> Response {
        let (status, code) = match self {
            Self::Host => (StatusCode::BAD_REQUEST, "host"),
            Self::Path => (StatusCode::NOT_FOUND, "not-found"),
            Self::Body(_) => (StatusCode::PAYLOAD_TOO_LARGE, "body"),
            Self::Method(_) => (StatusCode::METHOD_NOT_ALLOWED, "method"),
            Self::Peer => (StatusCode::UNAUTHORIZED, "denied"),
            Self::Failed(Error::Overloaded(_)) => (StatusCode::SERVICE_UNAVAILABLE, "overloaded"),
            Self::Failed(Error::Timeout) => (StatusCode::GATEWAY_TIMEOUT, "timeout"),
            Self::Failed(Error::Trapped) => (StatusCode::INTERNAL_SERVER_ERROR, "failed"),
            Self::Failed(Error::Handler(_)) => (StatusCode::BAD_GATEWAY, "no-answer"),
            Self::Failed(_) => (StatusCode::SERVICE_UNAVAILABLE, "not-running"),
        };
        let text = self.to_string();
        let mut answer = (status, format!("{text}\n")).into_response();
        let headers = answer.headers_mut();
        match self {
            Self::Method(allowed) => {
                drop(HeaderValue::from_str(allowed).map(|it| headers.insert(header::ALLOW, it)))
            }
            Self::Peer => drop(headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            _ if status == StatusCode::SERVICE_UNAVAILABLE => {
                drop(headers.insert(header::RETRY_AFTER, RETRY_AFTER))
            }
            _ => {}
        }
        answer.extensions_mut().insert(Reason { code, text });
        answer
    }
}
