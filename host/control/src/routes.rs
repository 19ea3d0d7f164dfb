//! The routes of the control interface, described in `docs/control-interface.md`.

use std::sync::Arc;

use axum::{
    Json, Router,
    body::Body,
    extract::{
        Path, Query, State,
        rejection::{PathRejection, QueryRejection},
    },
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use weir_host::{
    CallOptions, Client, Control, Error,
    attached::Closed,
    client::{PublishOptions, Receipt},
    control::{ControlError, DurationsSnapshot, ExtensionStatus, Holds, ReloadReport, VersionsStatus},
    limits::fuel_per_ms,
    names::harmless,
    peers::{Peers, SessionId},
};

#[cfg(feature = "store")]
use super::stores;
use super::{
    bodies::BodyMemory,
    contracts,
    error::Refusal,
    openmetrics,
    report::{self, report},
    server::{AskedControl, Asker},
    spans::{self, Traceparent},
    streams, traffic,
};

/// Streams at once: few enough to leave connections for other requests.
const MAX_STREAMS: usize = 64;

/// Reports that are made at once. Each takes a thread.
const MAX_REPORTS: usize = 1;

/// Bytes of the longest answer tested for JSON. A test of more would hold the worker thread for a millisecond.
pub(super) const MAX_LOOKED_AT: usize = 256 * 1024;

/// Bytes of the longest text of one extension.
const MAX_STANZA: u64 = 64 * 1024;

/// The most bytes of the log's line about a sent message.
const MAX_SAID: usize = 1024;

/// What the routes work with. Each semaphore bounds how much of its kind there is at once.
#[derive(Clone, Debug)]
pub(super) struct ServerState {
    pub(super) client: Client,
    pub(super) control: Control,
    pub(super) peers: Peers,
    pub(super) closed: Closed,
    pub(super) streams: Arc<Semaphore>,
    pub(super) reports: Arc<Semaphore>,
    pub(super) plans: Arc<Semaphore>,
    pub(super) checks: Arc<Semaphore>,
    /// Memory for the payloads of requests.
    pub(super) requests: BodyMemory,
    /// Memory for answers that clients have not read yet.
    answers: BodyMemory,
}

pub(super) fn router(client: Client, control: Control, peers: Peers, closed: Closed) -> Router {
    let routes = Router::new()
        .route("/version", get(version))
        .route("/extensions", get(extensions))
        .route("/extensions/{id}", get(extension).put(put_extension).delete(remove_extension))
        .route("/extensions/{id}/history", get(history))
        .route("/extensions/{id}/versions", get(versions))
        .route("/extensions/{id}/start", post(start))
        .route("/extensions/{id}/stop", post(stop))
        .route("/extensions/{id}/restart", post(restart))
        .route("/extensions/{id}/reload", post(reload_extension))
        .route("/extensions/{id}/accept", post(accept))
        .route("/extensions/{id}/rollback", post(roll_back))
        .route("/reload", post(reload))
        .route("/plan", get(plan_of_all))
        .route("/plan/{id}", get(plan_of_one))
        .route("/contracts", get(contracts::all))
        .route("/contracts/{contract}", get(contracts::one))
        .route("/operations", get(operations))
        .route("/metrics", get(openmetrics::metrics))
        .route("/spans", get(spans::all))
        .route("/limits", get(limits_of_all))
        .route("/limits/{id}", get(limits_of_one))
        .route("/call/{contract}/{operation}", post(call))
        .route("/publish/{topic}", post(publish))
        .route("/topics", get(traffic::topics))
        .route("/queues", get(traffic::queues))
        .route("/queues/{queue}/jobs", get(traffic::jobs).post(traffic::put))
        .route("/queues/{queue}/requeue", post(traffic::requeue))
        .route("/peers", get(list_peers))
        .route("/peers/sessions/{id}/end", post(end_session))
        .route("/events", get(streams::events))
        .route("/logs", get(streams::logs))
        .route("/main-events", get(streams::main_events))
        .route("/shutdown", post(shutdown));
    #[cfg(feature = "store")]
    let routes = routes
        .route("/stores", get(stores::all))
        .route("/stores/{store}/entries", get(stores::entries))
        .route("/stores/{store}/value", get(stores::get).put(stores::put).delete(stores::remove))
        .route("/stores/{store}/import", post(stores::import))
        .route("/stores/{store}/compact", post(stores::compact));
    Router::new()
        .nest("/v1", routes)
        .fallback(no_such_route)
        .method_not_allowed_fallback(wrong_method)
        .with_state(ServerState {
            client,
            control,
            peers,
            closed,
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
            reports: Arc::new(Semaphore::new(MAX_REPORTS)),
            plans: Arc::new(Semaphore::new(1)),
            checks: Arc::new(Semaphore::new(1)),
            requests: BodyMemory::new(),
            answers: BodyMemory::new(),
        })
}

/// Refuses every request because all connections are in use.
pub(super) fn busy(connections: usize) -> Router {
    let message = format!("Main is busy: all of its {connections} connections are in use");
    Router::new().fallback(move || async {
        let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message);
        ([(header::CONNECTION, "close")], refusal)
    })
}

async fn version() -> Json<Value> {
    Json(json!({ "version": env!("CARGO_PKG_VERSION"), "pid": std::process::id() }))
}

async fn extensions(State(served): State<ServerState>) -> Json<Value> {
    Json(json!({ "extensions": served.control.extensions() }))
}

async fn extension(State(served): State<ServerState>, id: PathOf<String>) -> Answered<ExtensionStatus> {
    let Path(id) = id?;
    Ok(Json(served.control.status(&id)?))
}

async fn history(State(served): State<ServerState>, id: PathOf<String>) -> Answered<Value> {
    let Path(id) = id?;
    Ok(Json(json!({ "history": served.control.history(&id)? })))
}

async fn versions(State(served): State<ServerState>, id: PathOf<String>) -> Answered<VersionsStatus> {
    let Path(id) = id?;
    Ok(Json(served.control.versions(&id)?))
}

async fn start(AskedControl(control): AskedControl, id: PathOf<String>) -> Answered<ExtensionStatus> {
    let Path(id) = id?;
    control.start(&id).await?;
    Ok(Json(control.status(&id)?))
}

async fn stop(AskedControl(control): AskedControl, id: PathOf<String>) -> Answered<ExtensionStatus> {
    let Path(id) = id?;
    control.stop(&id).await?;
    Ok(Json(control.status(&id)?))
}

async fn restart(AskedControl(control): AskedControl, id: PathOf<String>) -> Answered<ExtensionStatus> {
    let Path(id) = id?;
    control.restart(&id).await?;
    Ok(Json(control.status(&id)?))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReloadQuery {
    /// Whether the version needs no probation, even if it was refused before.
    #[serde(default)]
    now: bool,
}

async fn reload_extension(
    AskedControl(control): AskedControl,
    id: PathOf<String>,
    query: QueryOf<ReloadQuery>,
) -> Answered<ExtensionStatus> {
    let Path(id) = id?;
    let Query(ReloadQuery { now }) = query?;
    if now {
        control.reload_extension_now(&id).await?;
    } else {
        control.reload_extension(&id).await?;
    }
    Ok(Json(control.status(&id)?))
}

async fn put_extension(
    State(served): State<ServerState>,
    AskedControl(control): AskedControl,
    id: PathOf<String>,
    body: Body,
) -> Answered<ExtensionStatus> {
    let Path(id) = id?;
    let text = served.requests.read(body, Ok(MAX_STANZA)).await?;
    let text = String::from_utf8(text.bytes.to_vec());
    let text = text.map_err(|_| Refusal::invalid("the body is not UTF-8"))?;
    let reader = control.clone();
    // Off the worker thread, because a text of this length takes a while.
    let read = tokio::task::spawn_blocking(move || reader.read_extension(&text)).await;
    let read = read.map_err(|_| ControlError::ShuttingDown)?;
    let extension = read.map_err(|errors| ControlError::NotConfigured(errors.to_string()))?;
    if extension.id.as_str() != id {
        let other = extension.id;
        return Err(Refusal::invalid(format!(
            "the path says `{}`, and the body `{other}`",
            harmless(&id, 64)
        )));
    }
    control.put(extension).await?;
    Ok(Json(control.status(&id)?))
}

async fn remove_extension(AskedControl(control): AskedControl, id: PathOf<String>) -> Answered<Value> {
    let Path(id) = id?;
    control.remove(&id).await?;
    Ok(Json(json!({})))
}

async fn accept(AskedControl(control): AskedControl, id: PathOf<String>) -> Answered<ExtensionStatus> {
    let Path(id) = id?;
    control.accept_version(&id).await?;
    Ok(Json(control.status(&id)?))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RollBackQuery {
    /// The version to go back to. By default the latest proven one before the one that serves.
    version: Option<u64>,
    /// Whether the extension's data goes back, too.
    #[serde(default)]
    data_too: bool,
}

async fn roll_back(
    AskedControl(control): AskedControl,
    id: PathOf<String>,
    query: QueryOf<RollBackQuery>,
) -> Answered<ExtensionStatus> {
    let Path(id) = id?;
    let Query(RollBackQuery { version, data_too }) = query?;
    if data_too {
        control.roll_back_with_data(&id, version).await?;
    } else {
        control.roll_back(&id, version).await?;
    }
    Ok(Json(control.status(&id)?))
}

async fn plan_of_all(State(served): State<ServerState>) -> Result<Response, Refusal> {
    report::plan(served, None).await
}

async fn plan_of_one(State(served): State<ServerState>, id: PathOf<String>) -> Result<Response, Refusal> {
    let Path(id) = id?;
    report::plan(served, Some(id)).await
}

async fn operations(State(served): State<ServerState>) -> Result<Response, Refusal> {
    report(served, |control| {
        let bounds: Vec<f64> = DurationsSnapshot::bounds().map(|bound| bound.as_secs_f64()).collect();
        json!({ "bounds": bounds, "operations": control.operations() })
    })
    .await
}

async fn limits_of_all(State(served): State<ServerState>) -> Result<Response, Refusal> {
    limits(served, None).await
}

async fn limits_of_one(State(served): State<ServerState>, id: PathOf<String>) -> Result<Response, Refusal> {
    let Path(id) = id?;
    served.control.status(&id)?;
    limits(served, Some(id)).await
}

async fn limits(served: ServerState, id: Option<String>) -> Result<Response, Refusal> {
    let fuel_per_ms = fuel_per_ms().await;
    report(served, move |control| control.limits_now(fuel_per_ms, id.as_deref())).await
}

async fn list_peers(State(served): State<ServerState>) -> Result<Response, Refusal> {
    let peers = served.peers.clone();
    report(served, move |control| json!({ "peers": peers.list(), "parts": control.parts() })).await
}

async fn end_session(
    State(served): State<ServerState>,
    asker: Asker,
    id: PathOf<u64>,
) -> Result<Json<Value>, Refusal> {
    let Path(id) = id?;
    let id = SessionId(id);
    let listed = served.peers.list();
    let session = listed.iter().flat_map(|peer| &peer.sessions).find(|session| session.id == id);
    if let Some(session) = session.filter(|session| session.proof == "main") {
        tracing::warn!("end of the session {id} of `{}`: refused by=\"{asker}\"", session.name);
        let message =
            format!("the session {id} belongs to `{}`, a part of Main: nobody can end it", session.name);
        return Err(Refusal::new(StatusCode::FORBIDDEN, "part-of-main", message));
    }
    // The session may have ended since it was listed.
    let Some(session) = session.filter(|_| served.peers.end(id)) else {
        tracing::warn!("end of the session {id}: there is none by=\"{asker}\"");
        let message = format!("no session of a peer has the number `{id}`");
        return Err(Refusal::new(StatusCode::NOT_FOUND, "unknown-session", message));
    };
    tracing::info!("end of the session {id} of `{}`: done by=\"{asker}\"", session.name);
    Ok(Json(json!({ "id": id, "name": session.name })))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReloadAllQuery {
    /// In stages, each after what it requires or wants.
    #[serde(default)]
    all: bool,
    /// A stage holds once its versions are proven.
    #[serde(default)]
    prove: bool,
}

async fn reload(
    AskedControl(control): AskedControl,
    query: QueryOf<ReloadAllQuery>,
) -> Answered<ReloadReport> {
    let report = match query? {
        Query(ReloadAllQuery { all: false, prove: false }) => control.reload().await,
        Query(ReloadAllQuery { all: true, prove: false }) => control.reload_in_stages(None, Holds::Up).await,
        Query(ReloadAllQuery { all: true, prove: true }) => {
            control.reload_in_stages(None, Holds::Proven).await
        }
        Query(ReloadAllQuery { all: false, prove: true }) => {
            return Err(Refusal::invalid("`prove=true` needs `all=true`: only stages wait for proof"));
        }
    };
    Ok(Json(report?))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallQuery {
    timeout: Option<String>,
    provider: Option<String>,
}

async fn call(
    State(served): State<ServerState>,
    asker: Asker,
    path: PathOf<(String, String)>,
    query: QueryOf<CallQuery>,
    Traceparent(trace): Traceparent,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let Path((contract, operation)) = path?;
    let Query(CallQuery { timeout, provider }) = query?;
    let timeout = timeout
        .map(|text| text.parse::<humantime::Duration>())
        .transpose()
        .map_err(|error| Refusal::invalid(format!("`timeout` must be a time, as in `2s`: {error}")))?;
    let mut options = CallOptions::default();
    (options.timeout, options.provider, options.trace) = (timeout.map(Into::into), provider, trace);
    let provider = options.provider.as_deref();
    let check = contracts::check_of(&served, &headers, (&contract, &operation), provider).await;
    let max = served.client.max_request(&contract, &operation, &options);
    let (check, max) = match check {
        Ok(check) => (check, max.map_err(Refusal::from)),
        Err(refusal) => (None, Err(refusal)),
    };
    let payload = contracts::checked(&served, check, served.requests.read(body, max).await?).await?;
    let answer = served.client.call_with(&contract, &operation, payload.bytes.clone(), options).await;
    said(&asker, &answer, || format!("call of `{contract}` `{operation}`"));
    let answer = answer?;
    let kind = if is_json(&answer) { "application/json" } else { "application/octet-stream" };
    Ok(([(header::CONTENT_TYPE, kind)], served.answers.hold(answer)?).into_response())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishQuery {
    to: Option<String>,
}

async fn publish(
    State(served): State<ServerState>,
    asker: Asker,
    topic: PathOf<String>,
    query: QueryOf<PublishQuery>,
    Traceparent(trace): Traceparent,
    body: Body,
) -> Answered<Receipt> {
    let Path(topic) = topic?;
    let Query(PublishQuery { to }) = query?;
    let payload = served.requests.read(body, Ok(u64::MAX)).await?;
    let mut options = PublishOptions::default();
    (options.to, options.trace) = (to, trace);
    let receipt = served.client.publish_with(&topic, payload.bytes.clone(), options).await;
    said(&asker, &receipt, || format!("publish of `{topic}`"));
    Ok(Json(receipt?))
}

/// Logs a message that the asker has sent and what came of it, at the debug level.
pub(super) fn said<T>(asker: &Asker, result: &Result<T, Error>, what: impl FnOnce() -> String) {
    if tracing::enabled!(tracing::Level::DEBUG) {
        let outcome = result.as_ref().map_or_else(ToString::to_string, |_| "done".to_owned());
        let text = harmless(format!("{}: {outcome}", what()), MAX_SAID);
        tracing::debug!("{text} by=\"{asker}\"");
    }
}

async fn shutdown(AskedControl(control): AskedControl) -> StatusCode {
    control.begin_shutdown().await;
    StatusCode::ACCEPTED
}

async fn no_such_route(uri: Uri) -> Refusal {
    let message = format!("there is no route `{}`", harmless(uri.path(), 200));
    Refusal::new(StatusCode::NOT_FOUND, "no-such-route", message)
}

async fn wrong_method(method: Method, uri: Uri) -> Refusal {
    let message = format!("`{}` takes another method than `{method}`", harmless(uri.path(), 200));
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "wrong-method", message)
}

type Answered<T> = Result<Json<T>, Refusal>;
pub(super) type PathOf<T> = Result<Path<T>, PathRejection>;
pub(super) type QueryOf<T> = Result<Query<T>, QueryRejection>;

/// Whether an answer is JSON. One of more than [`MAX_LOOKED_AT`] bytes is not looked at, and counts as none.
fn is_json(bytes: &[u8]) -> bool {
    bytes.len() <= MAX_LOOKED_AT && serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}
