//! Arguments of a call, checked against what the provider describes before they are sent.

use anyhow::Context;
use bytes::Bytes;
use hyper::Method;
use serde::Deserialize;
use weir_host::openrpc::{Document, Json, Unknown};

use super::Args;
use crate::{
    client::{Client, Patience, Route, unless},
    exit::Usage,
    output::printable,
};

const NOT_READ: &str = "cannot read what Main describes; is it of another version?";

#[derive(Deserialize)]
struct Answer {
    contracts: Vec<Contract>,
}

#[derive(Deserialize)]
struct Contract {
    provider: String,
    document: Json,
}

/// Operations in a message.
const MAX_SHOWN: usize = 12;

/// Finds arguments that the provider would refuse, or ignore as unknown. What nobody describes fits.
pub(super) async fn check(
    client: &mut Client,
    args: &Args,
    arguments: &[u8],
    patience: Patience,
) -> anyhow::Result<()> {
    let route = Route::named(&["contracts", &args.contract])?;
    let answer = client.ask(Method::GET, &route, Bytes::new(), patience).await;
    let Some(answer) = unless(&["not-described", "no-such-route"], answer)? else { return Ok(()) };
    let Answer { mut contracts } = serde_json::from_slice(&answer).context(NOT_READ)?;
    if let Some(provider) = &args.provider {
        contracts.retain(|described| described.provider == *provider);
    }
    let Some(described) = contracts.first() else { return Ok(()) };
    let document = &Document::from_json(&described.document).context(NOT_READ)?;
    let fault = match document.method(&args.operation) {
        None => Some(unknown(document, &args.operation)),
        Some(_) => {
            let fit = document.check_arguments(&args.operation, arguments, Unknown::Refused);
            fit.err().map(|misfit| format!("the arguments do not fit: {misfit}"))
        }
    };
    match fault {
        None => Ok(()),
        Some(fault) => Err(Usage(format!("{fault}; `--no-check` sends them all the same")).into()),
    }
}

fn unknown(document: &Document, operation: &str) -> String {
    let names: Vec<String> = document
        .methods
        .iter()
        .take(MAX_SHOWN)
        .map(|method| format!("`{}`", printable(&method.name)))
        .collect();
    let more = if document.methods.len() > names.len() { ", …" } else { "" };
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") + more };
    format!("`{}` has no operation `{}`; it has {known}", document.contract, printable(operation))
}
