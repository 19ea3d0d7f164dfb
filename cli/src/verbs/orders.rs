//! `weir start`, `stop` and `restart`: orders to extensions, one after another.

use clap_complete::engine::ArgValueCompleter;
use serde_json::Value;
use weir_host::control::ExtensionStatus;

use super::ps::Extensions;
use crate::{
    args::Target,
    client::{Client, Refused, Route, read},
    complete, exit, output,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The extensions
    #[arg(value_name = "ID", required_unless_present = "all")]
    #[arg(add = ArgValueCompleter::new(complete::extension))]
    ids: Vec<String>,
    /// All configured extensions
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: Target,
}

/// Sends the order to each extension. A refusal does not stop the others.
pub(super) async fn run(Args { ids, all, json, target }: Args, verb: &str) -> anyhow::Result<()> {
    let mut client = Client::connect(&target).await?;
    let ids = if all { configured(&mut client).await? } else { ids };
    // Extensions are stopped in reverse order, since most come after those that they require.
    let ids: Vec<String> = if all && verb == "stop" { ids.into_iter().rev().collect() } else { ids };
    let mut refused = None;
    for id in ids {
        match order(&mut client, &id, verb, json).await {
            Err(error) if error.is::<Refused>() => {
                if let Some(before) = refused.replace(error) {
                    exit::say(&before);
                }
            }
            other => other?,
        }
    }
    refused.map_or(Ok(()), Err)
}

async fn configured(client: &mut Client) -> anyhow::Result<Vec<String>> {
    let Extensions { extensions } = client.get(&Route::new(&["extensions"])).await?;
    Ok(extensions.into_iter().map(|extension| extension.id.to_string()).collect())
}

/// Sends an order to one extension. Main's deadlines bound the time that it takes.
pub(super) async fn order(client: &mut Client, id: &str, verb: &str, json: bool) -> anyhow::Result<()> {
    let route = Route::named(&["extensions", id, verb])?;
    let body = client.post(&route).await?;
    if json {
        return output::json(&serde_json::from_slice::<Value>(&body)?);
    }
    let ExtensionStatus { id, state, .. } = read(&body)?;
    output::line(&format!("`{id}` is {state}"))
}
