//! Answers of megabytes, such as limits and topics.
//!
//! Each is made on a thread of its own: it would delay every extension on the worker thread, and the blocking pool
//! may hang on files.

use std::{io, sync::Arc, thread};

use axum::{
    body::Body,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use tokio::sync::{Semaphore, oneshot};
use weir_host::Control;

use super::{error::Refusal, routes::Served};

/// Sends the result of `make` as JSON; one report at a time.
pub(super) async fn report<T: Serialize>(
    served: Served,
    make: impl FnOnce(&Control) -> T + Send + 'static,
) -> Result<Response, Refusal> {
    try_report(served, |control| Ok(make(control))).await
}

/// The same, where there may be nothing to report.
pub(super) async fn try_report<T: Serialize>(
    served: Served,
    make: impl FnOnce(&Control) -> Result<T, Refusal> + Send + 'static,
) -> Result<Response, Refusal> {
    Ok(as_json(made(served, |control| json(&make(control)?)).await?))
}

/// Bytes that are made of what Main reports; one report at a time.
pub(super) async fn made(
    served: Served,
    make: impl FnOnce(&Control) -> Result<Vec<u8>, Refusal> + Send + 'static,
) -> Result<Vec<u8>, Refusal> {
    let (control, turns) = (served.control, served.reports);
    apart(turns, move || make(&control)).await
}

/// What a reload would do. It reads files, which may hang, so it delays no reports, only other plans.
pub(super) async fn plan(served: Served, id: Option<String>) -> Result<Response, Refusal> {
    let (control, turns) = (served.control, served.plans);
    Ok(as_json(apart(turns, move || json(&control.plan(id.as_deref())?)).await?))
}

fn json(value: &impl Serialize) -> Result<Vec<u8>, Refusal> {
    serde_json::to_vec(value).map_err(|error| refusal(error.into()))
}

/// Runs `work` on its own thread, in turn.
async fn apart(
    turns: Arc<Semaphore>,
    work: impl FnOnce() -> Result<Vec<u8>, Refusal> + Send + 'static,
) -> Result<Vec<u8>, Refusal> {
    let turn = turns.acquire_owned().await.map_err(|error| refusal(io::Error::other(error)))?;
    let (sender, done) = oneshot::channel();
    let work = move || {
        // Fails only if the client has left.
        drop(sender.send(work()));
        drop(turn);
    };
    thread::Builder::new().name("weir-report".to_owned()).spawn(work).map_err(refusal)?;
    done.await.map_err(|error| refusal(io::Error::other(error)))?
}

fn as_json(json: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], Body::from(json)).into_response()
}

/// The machine has no thread left.
fn refusal(error: io::Error) -> Refusal {
    let message = format!("overloaded: cannot put the report together: {error}");
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", message)
}
