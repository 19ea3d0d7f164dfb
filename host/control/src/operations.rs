//! `GET /v1/operations`.

use axum::{extract::State, response::Response};
use serde_json::json;
use weir_host::control::DurationsSnapshot;

use super::{error::Refusal, report::report, routes::Served};

pub(super) async fn all(State(served): State<Served>) -> Result<Response, Refusal> {
    report(served, |control| {
        let bounds: Vec<f64> = DurationsSnapshot::bounds().map(|bound| bound.as_secs_f64()).collect();
        json!({ "bounds": bounds, "operations": control.operations() })
    })
    .await
}
