//! Descriptions of contracts, from a running Main.

use anyhow::Context;
use bytes::Bytes;
use hyper::Method;
use serde::Deserialize;
use weir_host::openrpc::{Document, Json};

use crate::client::{Client, Patience, Route, unless};

/// What a contract or a file says.
#[derive(Debug)]
pub(crate) struct Described {
    /// What serves it, if Main says so.
    pub(crate) provider: Option<String>,
    pub(crate) document: Document,
}

/// Main's answer.
#[derive(Deserialize)]
struct Answer {
    contracts: Vec<Contract>,
}

#[derive(Deserialize)]
struct Contract {
    provider: String,
    document: Json,
}

/// What is described to Main of this contract, at least one document, or of all that they serve.
pub(crate) async fn of_main(
    client: &mut Client,
    contract: Option<&str>,
    patience: Patience,
) -> anyhow::Result<Vec<Described>> {
    let segments: Vec<&str> = ["contracts"].into_iter().chain(contract).collect();
    let answer = client.ask(Method::GET, &Route::named(&segments)?, Bytes::new(), patience).await?;
    let not_read = "cannot read what Main describes; is it of another version?";
    let Answer { contracts } = serde_json::from_slice(&answer).context(not_read)?;
    let described = |Contract { provider, document }: Contract| {
        let document = Document::from_json(&document).context(not_read)?;
        Ok(Described { provider: Some(provider), document })
    };
    contracts.into_iter().map(described).collect()
}

/// As [`of_main`]. Empty if nothing describes the contract, or Main is too old to say.
pub(crate) async fn of_main_if_any(
    client: &mut Client,
    contract: &str,
    patience: Patience,
) -> anyhow::Result<Vec<Described>> {
    let described = of_main(client, Some(contract), patience).await;
    Ok(unless(&["not-described", "no-such-route"], described)?.unwrap_or_default())
}
