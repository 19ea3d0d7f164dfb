//! The routes of the control interface. `docs/control-interface.md` describes each.

use std::{sync::Arc, time::Duration};

use axum::{
    Json, Router,
    body::{Body, Bytes, HttpBody},
    extract::{
        DefaultBodyLimit, FromRequest, Path, Query, Request, State,
        rejection::{PathRejection, QueryRejection},
    },
    http::{Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use weir_host::{
    CallOptions, Client, Control,
    attached::Closed,
    client::Receipt,
    control::{ExtensionStatus, ReloadReport},
};

use super::{error::Refusal, limits, streams, traffic};

/// Bytes of a payload: the largest that a limits class can allow.
const MAX_BODY: usize = 64 * 1024 * 1024;

/// Time for the body of a request to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// Streams at once, so that they leave connections to all else.
const MAX_STREAMS: usize = 64;

/// Reports of limits at once: each has a thread while it is put together.
const MAX_REPORTS: usize = 1;

/// Bytes of an answer up to which it is looked at whether it is JSON: a longer one would keep the
/// worker thread, and with it every extension, waiting for a millisecond or more.
pub(super) const MAX_LOOKED_AT: usize = 256 * 1024;

/// What every route has at hand.
#[derive(Clone, Debug)]
pub(super) struct Served {
    pub(super) client: Client,
    pub(super) control: Control,
    pub(super) closed: Closed,
    pub(super) streams: Arc<Semaphore>,
    /// Reports of limits that are being put together.
    pub(super) reports: Arc<Semaphore>,
}

pub(super) fn router(client: Client, control: Control, closed: Closed) -> Router {
    let routes = Router::new()
        .route("/version", get(version))
        .route("/extensions", get(extensions))
        .route("/extensions/{id}", get(extension))
        .route("/extensions/{id}/start", post(start))
        .route("/extensions/{id}/stop", post(stop))
        .route("/extensions/{id}/restart", post(restart))
        .route("/extensions/{id}/reload", post(reload_extension))
        .route("/reload", post(reload))
        .route("/limits", get(limits::of_all))
        .route("/limits/{id}", get(limits::of_one))
        .route("/call/{contract}/{operation}", post(call))
        .route("/publish/{topic}", post(publish))
        .route("/topics", get(traffic::topics))
        .route("/queues", get(traffic::queues))
        .route("/queues/{queue}/jobs", get(traffic::jobs).post(traffic::put))
        .route("/queues/{queue}/requeue", post(traffic::requeue))
        .route("/events", get(streams::events))
        .route("/logs", get(streams::logs))
        .route("/main-events", get(streams::main_events))
        .route("/shutdown", post(shutdown));
    Router::new()
        .nest("/v1", routes)
        .fallback(no_such_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(Served {
            client,
            control,
            closed,
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
            reports: Arc::new(Semaphore::new(MAX_REPORTS)),
        })
}

async fn version() -> Json<Value> {
    Json(json!({ "version": env!("CARGO_PKG_VERSION"), "pid": std::process::id() }))
}

async fn extensions(State(served): State<Served>) -> Json<Value> {
    Json(json!({ "extensions": served.control.extensions() }))
}

async fn extension(State(served): State<Served>, id: PathOf<String>) -> Answered<ExtensionStatus> {
    let Path(id) = id?;
    Ok(Json(served.control.status(&id)?))
}

async fn start(State(served): State<Served>, id: PathOf<String>) -> Answered<ExtensionStatus> {
    let Path(id) = id?;
    served.control.start(&id).await?;
    Ok(Json(served.control.status(&id)?))
}

async fn stop(State(served): State<Served>, id: PathOf<String>) -> Answered<ExtensionStatus> {
    let Path(id) = id?;
    served.control.stop(&id).await?;
    Ok(Json(served.control.status(&id)?))
}

async fn restart(State(served): State<Served>, id: PathOf<String>) -> Answered<ExtensionStatus> {
    let Path(id) = id?;
    served.control.restart(&id).await?;
    Ok(Json(served.control.status(&id)?))
}

async fn reload_extension(State(served): State<Served>, id: PathOf<String>) -> Answered<ExtensionStatus> {
    let Path(id) = id?;
    served.control.reload_extension(&id).await?;
    Ok(Json(served.control.status(&id)?))
}

async fn reload(State(served): State<Served>) -> Answered<ReloadReport> {
    Ok(Json(served.control.reload().await?))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallQuery {
    timeout: Option<String>,
    provider: Option<String>,
}

async fn call(
    State(served): State<Served>,
    path: PathOf<(String, String)>,
    query: QueryOf<CallQuery>,
    Payload(payload): Payload,
) -> Result<Response, Refusal> {
    let Path((contract, operation)) = path?;
    let Query(CallQuery { timeout, provider }) = query?;
    let timeout = timeout
        .map(|text| text.parse::<humantime::Duration>())
        .transpose()
        .map_err(|error| Refusal::invalid(format!("`timeout` must be a time, as in `2s`: {error}")))?;
    let mut options = CallOptions::default();
    (options.timeout, options.provider) = (timeout.map(Into::into), provider);
    let answer = served.client.call_with(&contract, &operation, payload, options).await?;
    let kind = if is_json(&answer) { "application/json" } else { "application/octet-stream" };
    Ok(([(header::CONTENT_TYPE, kind)], Body::from(answer)).into_response())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishQuery {
    to: Option<String>,
}

async fn publish(
    State(served): State<Served>,
    topic: PathOf<String>,
    query: QueryOf<PublishQuery>,
    Payload(payload): Payload,
) -> Answered<Receipt> {
    let Path(topic) = topic?;
    let receipt = match query?.0.to {
        None => served.client.publish(&topic, payload).await?,
        Some(extension) => served.client.publish_to(&extension, &topic, payload).await?,
    };
    Ok(Json(receipt))
}

async fn shutdown(State(served): State<Served>) -> StatusCode {
    served.control.begin_shutdown().await;
    StatusCode::ACCEPTED
}

async fn no_such_route(uri: Uri) -> Refusal {
    let message = format!("there is no route `{}`", weir_host::names::harmless(uri.path(), 200));
    Refusal::new(StatusCode::NOT_FOUND, "no-such-route", message)
}

async fn wrong_method(method: Method, uri: Uri) -> Refusal {
    let message =
        format!("`{}` takes another method than `{method}`", weir_host::names::harmless(uri.path(), 200));
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "wrong-method", message)
}

type Answered<T> = Result<Json<T>, Refusal>;
pub(super) type PathOf<T> = Result<Path<T>, PathRejection>;
pub(super) type QueryOf<T> = Result<Query<T>, QueryRejection>;

/// The whole body of a request, within limits of size and time.
pub(super) struct Payload(pub(super) Bytes);

impl<S: Send + Sync> FromRequest<S> for Payload {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        let too_large = || {
            let message = format!("a payload can have {MAX_BODY} bytes");
            Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", message)
        };
        let fits = usize::try_from(request.body().size_hint().lower()).is_ok_and(|bytes| bytes <= MAX_BODY);
        if !fits {
            return Err(too_large());
        }
        match tokio::time::timeout(BODY_TIMEOUT, Bytes::from_request(request, state)).await {
            Ok(Ok(bytes)) => Ok(Self(bytes)),
            Ok(Err(rejection)) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => Err(too_large()),
            Ok(Err(rejection)) => Err(Refusal::invalid(rejection.body_text())),
            Err(_late) => {
                let message = format!("the body did not arrive within {} s", BODY_TIMEOUT.as_secs());
                Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "slow-body", message))
            }
        }
    }
}

fn is_json(bytes: &[u8]) -> bool {
    bytes.len() <= MAX_LOOKED_AT && serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}
