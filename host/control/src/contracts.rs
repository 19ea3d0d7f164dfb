//! `GET /v1/contracts` and `/v1/contracts/{contract}`, and the check of a call by what its contract says.

use std::sync::Arc;

use axum::{
    extract::{Path, State},
    http::{HeaderMap, HeaderValue, StatusCode},
    response::Response,
};
use serde::Serialize;
use weir_host::{
    control::DescribedContract,
    names::harmless,
    openrpc::{Descriptions, Unknown},
};

use super::{
    bodies::HeldBody,
    error::Refusal,
    report::{beside, report, try_report},
    routes::{PathOf, ServerState},
};

/// Bytes of the longest arguments that are checked on the worker thread. Their check takes less than a millisecond.
const MAX_CHECKED_HERE: usize = 4 * 1024;

/// The most operations that a message lists.
const MAX_SHOWN: usize = 12;

/// The most bytes of a name that a message shows.
const MAX_NAME: usize = 200;

/// The answer of both routes. It is not a `Value`, in which the fields of documents would lose their order.
#[derive(Serialize)]
struct Contracts {
    contracts: Vec<DescribedContract>,
}

pub(super) async fn all(State(served): State<ServerState>) -> Result<Response, Refusal> {
    report(served, |control| Contracts { contracts: control.contracts() }).await
}

pub(super) async fn one(
    State(served): State<ServerState>,
    contract: PathOf<String>,
) -> Result<Response, Refusal> {
    let Path(name) = contract?;
    try_report(served, move |control| {
        let mut contracts = control.contracts();
        contracts.retain(|described| described.contract.as_str() == name);
        if contracts.is_empty() {
            let name = harmless(&name, MAX_NAME);
            let message = format!("nothing that runs describes `{name}`");
            return Err(Refusal::new(StatusCode::NOT_FOUND, "not-described", message));
        }
        Ok(Contracts { contracts })
    })
    .await
}

/// What the arguments of a call are checked by.
pub(super) struct Check {
    descriptions: Arc<Descriptions>,
    contract: String,
    operation: String,
}

/// The check that a caller asks for by `Prefer: handling=strict` of RFC 7240. `None` if it does not ask, or nothing is
/// described. Refuses an operation that the provider does not describe. Does not wait for metrics and reports.
pub(super) async fn check_of(
    served: &ServerState,
    headers: &HeaderMap,
    (contract, operation): (&str, &str),
    provider: Option<&str>,
) -> Result<Option<Check>, Refusal> {
    let is_strict = |value: &HeaderValue| {
        let mut preferences = value.to_str().unwrap_or_default().split(',');
        preferences.any(|one| one.trim().eq_ignore_ascii_case("handling=strict"))
    };
    if !headers.get_all("prefer").iter().any(is_strict) {
        return Ok(None);
    }
    let Some(descriptions) = served.control.descriptions(contract, provider) else { return Ok(None) };
    let is_parsed = descriptions.is_parsed();
    let check = Check { descriptions, contract: contract.to_owned(), operation: operation.to_owned() };
    let known = move || check.knows_operation().map(|()| Some(check));
    if is_parsed { known() } else { beside(served.checks.clone(), known).await }
}

/// Returns the arguments of a call if they fit the check.
pub(super) async fn checked(
    served: &ServerState,
    check: Option<Check>,
    arguments: HeldBody,
) -> Result<HeldBody, Refusal> {
    let Some(check) = check else { return Ok(arguments) };
    let is_short = arguments.bytes.len() <= MAX_CHECKED_HERE;
    let fit = move || check.fits(&arguments.bytes).map(|()| arguments);
    if is_short { fit() } else { beside(served.checks.clone(), fit).await }
}

impl Check {
    fn knows_operation(&self) -> Result<(), Refusal> {
        let Some(document) = self.descriptions.of_provider(&self.contract) else { return Ok(()) };
        if document.method(&self.operation).is_some() {
            return Ok(());
        }
        let names = document.methods.iter().map(|method| format!("`{}`", method.name));
        let mut known: Vec<String> = names.take(MAX_SHOWN).collect();
        if document.methods.len() > known.len() {
            known.push("…".to_owned());
        }
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let operation = harmless(&self.operation, MAX_NAME);
        Err(misfit(format!("`{}` has no operation `{operation}`; it has {known}", document.contract)))
    }

    fn fits(&self, arguments: &[u8]) -> Result<(), Refusal> {
        let Some(document) = self.descriptions.of_provider(&self.contract) else { return Ok(()) };
        let fit = document.check_arguments(&self.operation, arguments, Unknown::Refused);
        fit.map_err(|place| misfit(format!("the arguments do not fit: {place}")))
    }
}

fn misfit(message: String) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "misfit", message)
}
