//! `GET /v1/limits` and `/v1/limits/{id}`.

use axum::{
    extract::{Path, State},
    response::Response,
};
use weir_host::limits::fuel_per_ms;

use super::{
    error::Refusal,
    report::report,
    routes::{PathOf, Served},
};

pub(super) async fn of_all(State(served): State<Served>) -> Result<Response, Refusal> {
    limits(served, None).await
}

pub(super) async fn of_one(State(served): State<Served>, id: PathOf<String>) -> Result<Response, Refusal> {
    let Path(id) = id?;
    served.control.status(&id)?;
    limits(served, Some(id)).await
}

async fn limits(served: Served, id: Option<String>) -> Result<Response, Refusal> {
    let fuel_per_ms = fuel_per_ms().await;
    report(served, move |control| control.limits_now(fuel_per_ms, id.as_deref())).await
}
