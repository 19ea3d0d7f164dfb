//! `GET /v1/limits` and `/v1/limits/{id}`.
//!
//! With many extensions the report has megabytes. It is put together and written on a thread of its
//! own: on the worker thread every extension would wait for it, and the blocking pool may be busy with
//! files that hang.

use std::{io, thread};

use axum::{
    body::Body,
    extract::{Path, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use tokio::sync::oneshot;

use super::{
    error::Refusal,
    routes::{PathOf, Served},
};
use crate::extension::fuel_per_ms;

pub(super) async fn of_all(State(served): State<Served>) -> Result<Response, Refusal> {
    written(served, None).await.map_err(refusal)
}

pub(super) async fn of_one(State(served): State<Served>, id: PathOf<String>) -> Result<Response, Refusal> {
    let Path(id) = id?;
    served.control.status(&id)?;
    written(served, Some(id)).await.map_err(refusal)
}

async fn written(served: Served, id: Option<String>) -> io::Result<Response> {
    let fuel_per_ms = fuel_per_ms().await;
    let turn = served.reports.acquire_owned().await.map_err(io::Error::other)?;
    let (sender, written) = oneshot::channel();
    let control = served.control;
    let work = move || {
        let report = control.limits_now(fuel_per_ms, id.as_deref());
        // The client may have left meanwhile.
        drop(sender.send(serde_json::to_vec(&report)));
        drop(turn);
    };
    thread::Builder::new().name("weir-limits".to_owned()).spawn(work)?;
    let json = written.await.map_err(io::Error::other)??;
    Ok(([(header::CONTENT_TYPE, "application/json")], Body::from(json)).into_response())
}

/// Only where the machine has no thread left.
fn refusal(error: io::Error) -> Refusal {
    let message = format!("overloaded: cannot put the report together: {error}");
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", message)
}
