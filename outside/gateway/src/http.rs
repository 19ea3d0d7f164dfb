//! HTTP: logging in by WebSocket, requests by POST, and tickets for pages.

use std::{collections::BTreeMap, fmt, net::IpAddr, sync::Arc, time::Duration};

use axum::{
    Extension, Json, Router,
    body::{Body, Bytes},
    extract::{Path, RawQuery, Request, State, rejection::PathRejection},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http_body_util::BodyExt;
use serde::Deserialize;
use serde_json::json;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, mpsc},
    time::timeout,
};
use weir_host::{
    names::harmless,
    peers::{PeerError, Proof, Session, SessionEnd},
    traces::{TraceContext, TraceContextError},
};

#[cfg(feature = "servers")]
use crate::servers::ServerRefused;
use crate::{
    Listen, Origin,
    conversation::{converse, message_max},
    methods::Methods,
    post, rpc,
    server::OwnSocket,
    shared::{Ending, Shared},
    stream::Flow,
    tickets::TERM,
    websocket::{Handshake, HandshakeError},
};

/// Time for the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Most bytes of the body of a request for a ticket.
const TICKET_BODY: usize = 4096;

/// Most bytes of an HTTP method that an error repeats.
const METHOD_SHOWN: usize = 32;

/// The other end of a connection. Each of its requests has a clone.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The user at the other end of a Unix socket.
    pub(crate) uid: Option<u32>,
    pub(crate) is_unix: bool,
    #[cfg_attr(not(feature = "servers"), expect(dead_code, reason = "for servers alone"))]
    pub(crate) is_tls: bool,
    /// The server whose own socket this is.
    #[cfg_attr(not(feature = "servers"), expect(dead_code, reason = "for servers alone"))]
    pub(crate) server: Option<OwnSocket>,
    /// Notified once a request has proved its name.
    pub(crate) proved: Arc<Notify>,
    pub(crate) flow: Arc<Flow>,
    /// The connection's place among `gateway.connections`.
    pub(crate) _permit: Arc<Permit>,
    /// When the gateway ends, it waits until every connection has dropped this.
    pub(crate) _alive: mpsc::Sender<()>,
}

/// A connection's place among `gateway.connections`, and at a server's own socket its place among those.
pub(crate) type Permit = (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>);

/// The name in the path, or a rejection if it is not UTF-8.
type PathOf = Result<Path<String>, PathRejection>;

/// Why a request gets an error of HTTP in place of an answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    /// The word tells the operator why: it is counted, and logged unless it is [`PROOF`]. The client does not get it.
    #[error("no peer has this name and this proof")]
    Denied(&'static str),
    #[error("pages of this origin may not log in as this peer; `gateway.origins` would let them")]
    Origin,
    #[error("the gateway has not this name; `gateway.hosts` would give it")]
    Host,
    #[error("{0}")]
    Busy(String),
    #[error("main is shutting down")]
    Stopping,
    #[error("the gateway starts again; ask again")]
    Restarting,
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    #[error("there is nothing here; `/v1/peers/NAME/rpc` takes JSON-RPC")]
    NotFound,
    #[cfg(feature = "servers")]
    #[error(transparent)]
    Server(#[from] ServerRefused),
    #[error("`{}` is not possible here", harmless(.0, METHOD_SHOWN))]
    Method(Method),
    #[error("the content type must be `application/json`")]
    MediaType,
    #[error("the body did not come within 10 s, or has over {0} bytes")]
    Body(usize),
    #[error("{0}")]
    Invalid(String),
    #[error("the name of the peer in the path is not UTF-8")]
    Path(#[from] PathRejection),
    #[error(transparent)]
    Traceparent(#[from] TraceContextError),
    #[error("`limits.message-rate` is used up; ask again later")]
    Rate,
    #[error("the system has no random bytes: {0}")]
    Random(#[from] std::io::Error),
}

/// The word for a wrong proof of a name. Such requests are only counted here: the registry of names logs them.
const PROOF: &str = "proof";

/// Most bytes of a stranger's text that a log line shows.
const SHOWN: usize = 128;

/// Why a request was refused. It travels with the answer to [`check_host`], which counts and logs it.
#[derive(Clone, Debug)]
pub(crate) struct Reason {
    pub(crate) code: &'static str,
    pub(crate) text: String,
}

/// What a request for a ticket says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TicketRequest {
    origin: String,
}

/// The routes of a server's own socket: all are the server's.
#[cfg(feature = "servers")]
pub(crate) fn server_router(shared: Arc<Shared>) -> Router {
    Router::new().fallback(mounted).layer(from_fn_with_state(shared.clone(), check_host)).with_state(shared)
}

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/v1/peers/{name}/rpc", get(open).post(single))
        .route("/v1/peers/{name}/tickets", post(issue))
        .fallback(mounted)
        .method_not_allowed_fallback(async |method: Method| Refused::Method(method))
        .layer(from_fn_with_state(shared.clone(), check_host))
        .with_state(shared)
}

/// Refuses a `Host` that is not the gateway's, except on Unix sockets: a page must not get in by a foreign name that
/// resolves to this machine. Counts and logs refusals; a wrong proof is only counted. Closes every connection that
/// does not become a WebSocket.
async fn check_host(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    request: Request,
    next: Next,
) -> Response {
    let host = only(request.headers(), &header::HOST);
    let asked = Asked::of(&request);
    let mut answer = match caller.is_unix || host.is_some_and(|host| is_ours(&shared, host)) {
        true => next.run(request).await,
        false => Refused::Host.into_response(),
    };
    let stays_open = answer.extensions_mut().remove::<StaysOpen>().is_some();
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS && !stays_open {
        // A connection that stayed open after its answer would count neither as a stranger nor as a session.
        answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    match answer.extensions_mut().remove() {
        // Without a reason the answer is no refusal. Nothing is logged while Main or the gateway ends.
        None | Some(Reason { code: "stopping" | "restarting", .. }) => {}
        Some(Reason { code: PROOF, .. }) => shared.part.count_refused(PROOF),
        Some(Reason { code, text }) => shared.part.refused(code, || format!("{asked}: {text}")),
    }
    answer
}

/// Marks an answer after which the connection takes further requests, though it counts as a stranger's.
#[derive(Clone, Debug)]
pub(crate) struct StaysOpen;

/// Passes a request for a path that is not the gateway's to the extension that serves it.
#[cfg(feature = "servers")]
async fn mounted(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, Refused> {
    crate::servers::pass(&shared, &caller, request).await
}

#[cfg(not(feature = "servers"))]
async fn mounted() -> Refused {
    Refused::NotFound
}

/// A request as the log shows it, without the query, which may have a ticket.
struct Asked {
    method: Method,
    uri: Uri,
    host: Option<HeaderValue>,
    origin: Option<HeaderValue>,
}

impl Asked {
    fn of(request: &Request) -> Self {
        let header = |name| request.headers().get(name).cloned();
        let (host, origin) = (header(header::HOST), header(header::ORIGIN));
        Self { method: request.method().clone(), uri: request.uri().clone(), host, origin }
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{} {}`", harmless(&self.method, SHOWN), harmless(self.uri.path(), SHOWN))?;
        for (what, value) in [("host", &self.host), ("origin", &self.origin)] {
            if let Some(value) = value {
                let value = String::from_utf8_lossy(value.as_bytes());
                write!(f, " with the {what} `{}`", harmless(value, SHOWN))?;
            }
        }
        Ok(())
    }
}

/// The text of a header. `None` if it is missing, is not in ASCII or is there twice: another reader of the request,
/// such as a proxy, could take the other one.
pub(crate) fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())?.to_str().ok()
}

/// Whether a `Host` is the gateway's, with any port. If a listener has all addresses of the machine, every IP address
/// counts as the gateway's.
fn is_ours(shared: &Shared, host: &str) -> bool {
    let Ok(authority) = host.parse::<axum::http::uri::Authority>() else { return false };
    let name = authority.host().to_ascii_lowercase();
    if name == "localhost" || shared.config.hosts.contains(&name) {
        return true;
    }
    let Ok(address) = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() else {
        return false;
    };
    shared.config.hosts.contains(&address.to_string())
        || shared.config.listen.iter().any(|listen| match listen {
            Listen::Tcp(own) => own.ip() == address || own.ip().is_unspecified(),
            Listen::Unix(_) => false,
        })
}

/// Makes a connection a WebSocket.
async fn open(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    name: PathOf,
    RawQuery(query): RawQuery,
    request: Request,
) -> Result<Response, Refused> {
    let Path(name) = name?;
    let (mut request, _body) = request.into_parts();
    let handshake = Handshake::of(&mut request)?;
    let mut parameters = query.as_deref().unwrap_or_default().split('&');
    let ticket = parameters.find_map(|pair| pair.strip_prefix("ticket="));
    let session = admit(&shared, &caller, &name, &request.headers, ticket)?;
    let answer = handshake.answer();
    // Ends at the latest with the runtime. Before that the gateway waits until `caller` is dropped.
    tokio::spawn(async move {
        if let Some(socket) = handshake.finish(message_max(&session)).await {
            caller.flow.upgrade();
            converse(shared, session, socket, caller.flow.clone()).await;
        }
        drop(caller);
    });
    Ok(answer)
}

/// Answers a POST, which has one message or batch.
async fn single(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    name: PathOf,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let Path(name) = name?;
    is_json(&headers)?;
    let trace = traceparent(&headers)?;
    let session = admit(&shared, &caller, &name, &headers, None)?;
    let (ended, max) = (session.ended(), message_max(&session));
    let mut methods = Methods::new(shared.clone(), session, None);
    let answer = async {
        let text = text(body, max).await?;
        post::answer(&shared, &mut methods, &text, trace).await.map_err(|post::RateUsedUp| Refused::Rate)
    };
    let answer = tokio::select! {
        biased;
        answer = answer => answer?,
        why = ended => return Err(Refused::from(why)),
        why = shared.ending() => return Err(Refused::from(why)),
    };
    Ok(match answer {
        None => StatusCode::NO_CONTENT.into_response(),
        Some(answer) => {
            let body = Body::new(post::Body::new(answer, methods));
            ([(header::CONTENT_TYPE, "application/json")], body).into_response()
        }
    })
}

/// The span in the header `traceparent`: requests of the body that name no span of their own are part of it.
fn traceparent(headers: &HeaderMap) -> Result<Option<TraceContext>, Refused> {
    let name = HeaderName::from_static("traceparent");
    if !headers.contains_key(&name) {
        return Ok(None);
    }
    // An empty text is malformed, as a header with bytes beyond ASCII or one that is there twice is.
    Ok(Some(only(headers, &name).unwrap_or_default().parse()?))
}

async fn issue(
    State(shared): State<Arc<Shared>>,
    Extension(caller): Extension<Caller>,
    name: PathOf,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let Path(name) = name?;
    is_json(&headers)?;
    let session = admit(&shared, &caller, &name, &headers, None)?;
    let text = text(body, TICKET_BODY).await?;
    let TicketRequest { origin } = rpc::object(&text)
        .map_err(|fault| Refused::Invalid(format!("the body is not `{{\"origin\": …}}`: {fault}")))?;
    let known = allowed(&shared, &name, &origin).ok_or(Refused::Origin)?;
    let ticket = shared.tickets.issue(session, known)?;
    let answer = Json(json!({ "ticket": ticket, "expires-in-s": TERM.as_secs() }));
    Ok((StatusCode::CREATED, [(header::CACHE_CONTROL, "no-store")], answer).into_response())
}

/// The session of a request that proves its name by a ticket, a token or the user of its process. A page needs an
/// origin that may log in under the name, too.
fn admit(
    shared: &Shared,
    caller: &Caller,
    name: &str,
    headers: &HeaderMap,
    ticket: Option<&str>,
) -> Result<Session, Refused> {
    let origin = match headers.contains_key(header::ORIGIN) {
        false => None,
        true => {
            let origin = only(headers, &header::ORIGIN);
            let known = origin.filter(|origin| allowed(shared, name, origin).is_some());
            if known.is_none() {
                // The ticket is used up, so that a page that tries again and again leaves no sessions behind.
                drop(
                    ticket.and_then(|ticket| shared.tickets.redeem(name, ticket, origin.unwrap_or_default())),
                );
            }
            Some(known.ok_or(Refused::Origin)?)
        }
    };
    let proof = proof(caller, headers);
    let session = match (ticket, proof) {
        (Some(ticket), _) => {
            let session = origin.and_then(|origin| shared.tickets.redeem(name, ticket, origin));
            session.ok_or(Refused::Denied("ticket"))
        }
        (None, Some(proof)) => shared.peers.admit(name, proof).map_err(Refused::from),
        (None, None) => Err(Refused::Denied("no-proof")),
    }?;
    caller.proved.notify_one();
    Ok(session)
}

/// The proof of a name that a request has: a token, or the user of its process.
pub(crate) fn proof<'h>(caller: &Caller, headers: &'h HeaderMap) -> Option<Proof<'h>> {
    let token = only(headers, &header::AUTHORIZATION).and_then(|value| value.split_once(' '));
    let token =
        token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
    // A proxy in front of a Unix socket must not lend its user to pages, nor to requests with a wrong token.
    let has_other = headers.contains_key(header::ORIGIN) || headers.contains_key(header::AUTHORIZATION);
    let uid = caller.uid.filter(|_| !has_other);
    token.map(Proof::Token).or(uid.map(Proof::Uid))
}

/// The origin in the configuration that `origin` matches, if its pages may log in under this name.
fn allowed(shared: &Shared, name: &str, origin: &str) -> Option<Origin> {
    let origins: &BTreeMap<_, _> = &shared.config.origins;
    origins.get(name)?.iter().find(|own| own.matches(origin)).cloned()
}

fn is_json(headers: &HeaderMap) -> Result<(), Refused> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") { Ok(()) } else { Err(Refused::MediaType) }
}

/// Reads a body of at most `max` bytes.
async fn text(mut body: Body, max: usize) -> Result<String, Refused> {
    // The bytes are copied to one buffer: a small chunk that is kept as it came costs many times its bytes.
    let mut bytes = Vec::new();
    let whole = async {
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Refused::Body(max))?;
            let data: &[u8] = frame.data_ref().map(Bytes::as_ref).unwrap_or_default();
            if data.len() > max.saturating_sub(bytes.len()) {
                return Err(Refused::Body(max));
            }
            bytes.extend_from_slice(data);
        }
        Ok(())
    };
    timeout(BODY_TIMEOUT, whole).await.map_err(|_elapsed| Refused::Body(max))??;
    String::from_utf8(bytes).map_err(|_| Refused::Invalid("the body is not UTF-8".to_owned()))
}

impl From<PeerError> for Refused {
    fn from(error: PeerError) -> Self {
        match error {
            PeerError::TooMany { .. } => Self::Busy(error.to_string()),
            PeerError::Stopping => Self::Stopping,
            _ => Self::Denied(PROOF),
        }
    }
}

impl From<SessionEnd> for Refused {
    fn from(end: SessionEnd) -> Self {
        match end {
            SessionEnd::Stopping => Self::Stopping,
            _ => Self::Denied("revoked"),
        }
    }
}

impl From<Ending> for Refused {
    fn from(why: Ending) -> Self {
        match why {
            Ending::Main => Self::Stopping,
            Ending::Restart => Self::Restarting,
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let (status, code) = match &self {
            #[cfg(feature = "servers")]
            Self::Server(refused) => return refused.answer(),
            Self::Denied(_) => (StatusCode::UNAUTHORIZED, "denied"),
            Self::Origin => (StatusCode::FORBIDDEN, "origin"),
            Self::Host => (StatusCode::MISDIRECTED_REQUEST, "host"),
            Self::Busy(_) => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
            Self::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
            Self::Restarting => (StatusCode::SERVICE_UNAVAILABLE, "restarting"),
            Self::Handshake(HandshakeError::Upgrade(_)) => (StatusCode::UPGRADE_REQUIRED, "upgrade-required"),
            Self::NotFound => (StatusCode::NOT_FOUND, "not-found"),
            Self::Method(_) => (StatusCode::METHOD_NOT_ALLOWED, "method"),
            Self::MediaType => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type"),
            Self::Body(_) => (StatusCode::PAYLOAD_TOO_LARGE, "body"),
            Self::Handshake(HandshakeError::Key)
            | Self::Invalid(_)
            | Self::Path(_)
            | Self::Traceparent(_) => (StatusCode::BAD_REQUEST, "invalid"),
            Self::Rate => (StatusCode::TOO_MANY_REQUESTS, "rate"),
            Self::Random(_) => (StatusCode::INTERNAL_SERVER_ERROR, "random"),
        };
        let text = self.to_string();
        let mut answer =
            (status, Json(json!({ "error": { "code": code, "message": text } }))).into_response();
        let code = if let Self::Denied(why) = self { why } else { code };
        answer.extensions_mut().insert(Reason { code, text });
        answer
    }
}
