//! `GET /v1/contracts` and `/v1/contracts/{contract}`.

use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::Response,
};
use serde::Serialize;
use weir_host::control::DescribedContract;

use super::{
    error::Refusal,
    report::{report, try_report},
    routes::{PathOf, Served},
};

/// Fields of documents keep their order, as they would not in a `Value`.
#[derive(Serialize)]
struct Contracts {
    contracts: Vec<DescribedContract>,
}

pub(super) async fn all(State(served): State<Served>) -> Result<Response, Refusal> {
    report(served, |control| Contracts { contracts: control.contracts() }).await
}

pub(super) async fn one(State(served): State<Served>, contract: PathOf<String>) -> Result<Response, Refusal> {
    let Path(name) = contract?;
    try_report(served, move |control| {
        let mut contracts = control.contracts();
        contracts.retain(|described| described.contract.as_str() == name);
        if contracts.is_empty() {
            let name = weir_host::names::harmless(&name, 200);
            let message = format!("nothing that runs describes `{name}`");
            return Err(Refusal::new(StatusCode::NOT_FOUND, "not-described", message));
        }
        Ok(Contracts { contracts })
    })
    .await
}
