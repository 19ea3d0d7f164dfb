//! Answers that can have megabytes.
//!
//! They are put together and written on a thread of their own: on the worker thread every extension would
//! wait for them, and the blocking pool may be busy with files that hang.

use std::{io, thread};

use axum::{
    body::Body,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use tokio::sync::oneshot;
use weir_host::Control;

use super::{error::Refusal, routes::Served};

/// What `make` says, as JSON, in turn with other reports.
pub(super) async fn report<T: Serialize>(
    served: Served,
    make: impl FnOnce(&Control) -> T + Send + 'static,
) -> Result<Response, Refusal> {
    written(served, make).await.map_err(refusal)
}

async fn written<T: Serialize>(
    served: Served,
    make: impl FnOnce(&Control) -> T + Send + 'static,
) -> io::Result<Response> {
    let turn = served.reports.acquire_owned().await.map_err(io::Error::other)?;
    let (sender, written) = oneshot::channel();
    let control = served.control;
    let work = move || {
        // The client may have left meanwhile.
        drop(sender.send(serde_json::to_vec(&make(&control))));
        drop(turn);
    };
    thread::Builder::new().name("weir-report".to_owned()).spawn(work)?;
    let json = written.await.map_err(io::Error::other)??;
    Ok(([(header::CONTENT_TYPE, "application/json")], Body::from(json)).into_response())
}

/// Only where the machine has no thread left.
fn refusal(error: io::Error) -> Refusal {
    let message = format!("overloaded: cannot put the report together: {error}");
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", message)
}
